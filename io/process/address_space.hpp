// The address space of this process: what it has, and how much it may take.
#pragma once

#include <cstdint>

namespace manyworlds::io {

/// What this process has mapped now; 0 where the system does not tell.
std::uint64_t address_space_bytes();

/// Whether a limit can be set: address-sanitized builds reserve terabytes for themselves.
bool address_space_can_be_limited();

/// Lets this process map no more than `bytes` in all, where that can be; never raises a limit.
void limit_address_space(std::uint64_t bytes);

}  // namespace manyworlds::io
