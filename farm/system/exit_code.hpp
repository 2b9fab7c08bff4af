// Exit codes of the program, in one list so that every command uses them in the same way.
#pragma once

namespace manyworlds::farm {

inline constexpr int kExitDone = 0;
inline constexpr int kExitUnusable = 1;  // of `doctor`: sweeps do not work on this machine
inline constexpr int kExitInput = 2;     // bad usage or bad input
inline constexpr int kExitFailed = 3;    // some experiments failed, or none of them fits into memory
inline constexpr int kExitInternal = 70;
inline constexpr int kExitIo = 74;
inline constexpr int kExitDrained = 75;  // stopped on request; `resume` continues the run

}  // namespace manyworlds::farm
