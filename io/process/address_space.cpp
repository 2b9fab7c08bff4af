#include "io/process/address_space.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#if defined(__SANITIZE_ADDRESS__)
#define MANYWORLDS_ADDRESS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MANYWORLDS_ADDRESS_SANITIZED
#endif
#endif

namespace manyworlds::io {

std::uint64_t address_space_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool can_limit_address_space() {
#ifdef MANYWORLDS_ADDRESS_SANITIZED
  return false;
#else
  return true;
#endif
}

void limit_address_space(std::uint64_t bytes) {
  if (!can_limit_address_space()) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_cur);
  ::setrlimit(RLIMIT_AS, &limit);
}

}  // namespace manyworlds::io
