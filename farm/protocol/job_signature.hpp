// Two processes serve the same job when they are the same build and were told the same: this number says so.
#pragma once

#include <string_view>

#include "core/sharing/key.hpp"

namespace manyworlds::farm {

inline std::uint64_t job_signature(std::string_view common) {
  return core::sharing::Writer("job").text(common).finish().digest[0];  // the build's fingerprint is in every key
}

}  // namespace manyworlds::farm
