// The address space of this process: what it has, and how much it may take.
#pragma once

#include <cstdint>

namespace manyworlds::io {

/// What this process has mapped now; 0 where the system does not tell.
std::uint64_t address_space_bytes();

/// Lets this process map no more than `bytes` in all; never raises a limit. Address-sanitized builds are not limited:
/// they reserve terabytes for themselves.
void limit_address_space(std::uint64_t bytes);

}  // namespace manyworlds::io
