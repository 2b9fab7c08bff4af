// The address space of this process: its size and its limit.
#pragma once

#include <cstdint>

namespace manyworlds::io {

/// Returns the mapped bytes of this process; 0 where the system does not report them.
std::uint64_t address_space_bytes();

/// Returns whether a limit can be set: address-sanitized builds reserve terabytes for themselves.
bool can_limit_address_space();

/// Limits the address space of this process to `bytes` where possible; never raises an existing limit.
void limit_address_space(std::uint64_t bytes);

}  // namespace manyworlds::io
