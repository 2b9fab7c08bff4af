// The CPU time of this process.
#pragma once

#include <ctime>

namespace manyworlds::io {

/// Returns the seconds of CPU time that this process has used so far.
inline double cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace manyworlds::io
