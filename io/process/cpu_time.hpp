// How long this process has computed.
#pragma once

#include <ctime>

namespace manyworlds::io {

/// Seconds of CPU that this process took so far.
inline double cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace manyworlds::io
