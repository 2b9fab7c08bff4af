// Device memory that holds nothing: addresses that are reserved, cannot be touched, and are counted against a capacity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "experiments/capture/runtime_types.hpp"

namespace manyworlds::experiments::capture {

/// An allocation, numbered from 1 in the order of the program's calls.
struct Allocation {
  std::uint64_t id = 0;
  std::size_t bytes = 0, counted_bytes = 0, mapped_bytes = 0;
  int device = 0;
  MemoryKind kind = MemoryKind::device;

  /// Bytes from its begin on that a device reaches without a fault: what it was asked for, and what rounding added.
  std::size_t reachable_bytes() const { return kind == MemoryKind::device ? counted_bytes : mapped_bytes; }
};

/// How the bytes that a call touches lie in an allocation: within what the program asked for, beyond it but where a
/// device does not notice, or where it would fault.
enum class Reach { within, beyond, fault };

/// Where a pointer points.
struct Place {
  const Allocation* allocation;
  std::size_t offset;

  Reach reach(std::size_t bytes_from_here) const {
    if (bytes_from_here <= allocation->bytes - offset) return Reach::within;
    return bytes_from_here <= allocation->reachable_bytes() - offset ? Reach::beyond : Reach::fault;
  }
};

/// The memory of one process on all its devices. Device memory is reserved without access and without backing, so that
/// a host that touches it faults as it does on a real device. Pinned and managed memory is the host's, and real.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  /// The address, or null if the device has too little left. An allocation of more than 1 MiB counts as whole pages of
  /// 2 MiB, a smaller one as whole 512 bytes: an assumption on the driver's rounding. Managed and pinned memory counts
  /// as none. Not for 0 bytes.
  void* allocate(std::size_t bytes, int device, MemoryKind kind);
  /// What stood at the address, which is released; nothing if no allocation begins there.
  std::optional<Allocation> release(void* address);
  /// The allocation that the address is in.
  std::optional<Place> find(const void* address) const;
  std::size_t used_bytes(int device) const;
  std::size_t capacity_bytes() const { return capacity_bytes_; }

 private:
  std::size_t capacity_bytes_;
  std::uint64_t next_id_ = 1;
  std::map<std::uintptr_t, Allocation> allocations_;  // by address
  std::map<int, std::size_t> used_bytes_;             // by device
};

}  // namespace manyworlds::experiments::capture
