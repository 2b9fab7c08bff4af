// A number that tells whether two processes serve the same job: it is equal if their builds and their job payloads are.
#pragma once

#include <string_view>

#include "core/sharing/key.hpp"

namespace manyworlds::farm {

inline std::uint64_t job_signature(std::string_view common_spec) {
  return core::sharing::KeyWriter("job")
      .text(common_spec)
      .finish()
      .digest[0];  // every key contains the build's fingerprint
}

}  // namespace manyworlds::farm
