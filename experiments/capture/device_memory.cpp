#include "experiments/capture/device_memory.hpp"

#include <sys/mman.h>

namespace manyworlds::experiments::capture {
namespace {

constexpr std::size_t kPage = 2u << 20, kLargestSmall = 1u << 20, kSmallUnit = 512, kHostPage = 4096;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* DeviceMemory::allocate(std::size_t bytes, int device, MemoryKind kind) {
  constexpr std::size_t kBeyondAnyDevice = std::size_t{1} << 46;
  if (bytes > kBeyondAnyDevice) return nullptr;
  const bool on_device = kind == MemoryKind::device;
  const std::size_t counted = on_device ? rounded_up(bytes, bytes > kLargestSmall ? kPage : kSmallUnit) : 0;
  if (counted > capacity_bytes_ - used_bytes_[device]) return nullptr;
  const std::size_t mapped = rounded_up(bytes, kHostPage);
  void* address = mmap(nullptr, mapped, on_device ? PROT_NONE : PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  used_bytes_[device] += counted;
  allocations_[reinterpret_cast<std::uintptr_t>(address)] = {next_id_++, bytes, counted, mapped, device, kind};
  return address;
}

std::optional<Allocation> DeviceMemory::release(void* address) {
  const auto found = allocations_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == allocations_.end()) return std::nullopt;
  const Allocation allocation = found->second;
  munmap(address, allocation.mapped_bytes);
  used_bytes_[allocation.device] -= allocation.counted_bytes;
  allocations_.erase(found);
  return allocation;
}

std::optional<Place> DeviceMemory::find(const void* address) const {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  auto after = allocations_.upper_bound(value);
  if (after == allocations_.begin()) return std::nullopt;
  --after;
  const std::size_t offset = value - after->first;
  if (offset >= after->second.bytes) return std::nullopt;
  return Place{&after->second, offset};
}

std::size_t DeviceMemory::used_bytes(int device) const {
  const auto found = used_bytes_.find(device);
  return found == used_bytes_.end() ? 0 : found->second;
}

}  // namespace manyworlds::experiments::capture
