// What the program's exit says to scripts. One list, so that every command means the same.
#pragma once

namespace manyworlds::farm {

inline constexpr int kExitDone = 0;
inline constexpr int kExitInput = 2;   // bad usage or bad input
inline constexpr int kExitFailed = 3;  // some experiments failed, or none of them fits into memory
inline constexpr int kExitInternal = 70;
inline constexpr int kExitIo = 74;
inline constexpr int kExitDrained = 75;  // stopped on request; resume goes on

}  // namespace manyworlds::farm
