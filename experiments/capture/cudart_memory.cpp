// CUDA's functions of memory: allocation, copies and sets.
#include <cstring>

#include "experiments/capture/call_lines.hpp"
#include "experiments/capture/session.hpp"
#include "experiments/capture/versioned_calls.hpp"

namespace manyworlds::experiments::capture {
namespace {

/// A stream is given where the memory is of a pool.
Error allocate(const char* call, void** out, std::size_t bytes, MemoryKind kind, void* const* stream = nullptr) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Line line(call);
  line.number("bytes", static_cast<std::int64_t>(bytes));
  if (stream != nullptr) {
    line.number("stream", stream_number(*stream));
    if (stream_number(*stream) < 0) return recorded(line, kInvalidHandle);
  }
  if (out == nullptr) return recorded(line, kInvalidValue);
  *out = nullptr;
  if (bytes == 0) return recorded(line);
  *out = of.memory.allocate(bytes, thread_state().device, kind);
  if (*out == nullptr) {
    const auto used = static_cast<std::int64_t>(of.memory.used_bytes(thread_state().device));
    return recorded(line.number("used_bytes", used), kOutOfMemory);
  }
  const Allocation& allocation = *of.memory.find(*out)->allocation;
  line.number("allocation", static_cast<std::int64_t>(allocation.id));
  line.number("counted_bytes", static_cast<std::int64_t>(allocation.counted_bytes));
  return recorded(line.number("device", thread_state().device));
}

Error release(const char* call, void* address, bool of_host, void* const* stream = nullptr) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Line line(call);
  line.json("pointer", place(address));
  if (stream != nullptr) {
    line.number("stream", stream_number(*stream));
    if (stream_number(*stream) < 0) return recorded(line, kInvalidHandle);
  }
  if (address == nullptr) return recorded(line);
  const auto found = of.memory.find(address);
  const bool fits = found && found->offset == 0 && (found->allocation->kind == MemoryKind::host) == of_host;
  if (!fits) return recorded(line, kInvalidValue);
  return line.number("bytes", static_cast<std::int64_t>(of.memory.release(address)->bytes)), recorded(line);
}

bool on_device(const void* pointer) {
  const auto found = session().memory.find(pointer);
  return found && found->allocation->kind == MemoryKind::device;
}

bool agrees(CopyKind kind, const void* to, const void* from) {
  const bool device_to = kind == CopyKind::host_to_device || kind == CopyKind::device_to_device;
  const bool device_from = kind == CopyKind::device_to_host || kind == CopyKind::device_to_device;
  return (!on_device(to) || device_to) && (!on_device(from) || device_from);
}

Error copy(const char* call, void* to, const void* from, std::size_t bytes, int kind, void* stream) {
  const std::lock_guard lock(session().mutex);
  Line line(call);
  const Error error = describe_copy(line, to, from, bytes, kind);
  line.number("stream", stream_number(stream));
  if (stream_number(stream) < 0) return recorded(line, kInvalidHandle);
  if (error == kSuccess) move_for_host(to, from, bytes);
  return recorded(line, error);
}

Error set(const char* call, void* to, int value, std::size_t bytes, void* stream) {
  const std::lock_guard lock(session().mutex);
  Line line(call);
  const Error error = describe_set(line, to, static_cast<unsigned>(value), bytes);
  line.number("stream", stream_number(stream));
  if (stream_number(stream) < 0) return recorded(line, kInvalidHandle);
  if (error == kSuccess) set_for_host(to, static_cast<unsigned>(value), 1, bytes);
  return recorded(line, error);
}

}  // namespace

bool fits(const void* pointer, std::size_t bytes, Line& line) {
  const auto found = session().memory.find(pointer);
  if (!found) return true;
  const Reach reach = found->reach(bytes);
  if (reach == Reach::beyond) line.json("beyond_allocation", place(pointer));
  return reach != Reach::fault;
}

const char* direction(const void* to, const void* from) {
  if (on_device(to)) return on_device(from) ? "device_to_device" : "host_to_device";
  return on_device(from) ? "device_to_host" : "host_to_host";
}

bool is_direction(int kind, const void* to, const void* from) {
  const auto asked = static_cast<CopyKind>(kind);
  return kind >= 0 && kind <= 4 && (asked == CopyKind::any || agrees(asked, to, from));
}

Error describe_copy(Line& line, void* to, const void* from, std::size_t bytes, int kind) {
  line.json("to", place(to)).json("from", place(from)).number("bytes", static_cast<std::int64_t>(bytes));
  line.text("direction", direction(to, from));
  if (!is_direction(kind, to, from)) return kInvalidValue;
  return fits(to, bytes, line) && fits(from, bytes, line) ? kSuccess : kInvalidValue;
}

Error describe_set(Line& line, void* to, unsigned value, std::size_t bytes) {
  line.json("to", place(to)).number("value", static_cast<int>(value)).number("bytes", static_cast<std::int64_t>(bytes));
  return bytes > 0 && (!session().memory.find(to) || !fits(to, bytes, line)) ? kInvalidValue : kSuccess;
}

void move_for_host(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0 || on_device(to)) return;
  if (on_device(from)) {
    std::memset(to, 0, bytes);
  } else {
    std::memmove(to, from, bytes);
  }
}

void set_for_host(void* to, unsigned value, unsigned element_bytes, std::size_t bytes) {
  if (bytes == 0 || on_device(to)) return;
  if (element_bytes == 1) return static_cast<void>(std::memset(to, static_cast<unsigned char>(value), bytes));
  for (std::size_t at = 0; at + element_bytes <= bytes; at += element_bytes)
    std::memcpy(static_cast<char*>(to) + at, &value, element_bytes);
}

Error get_pointer_attributes(PointerAttributes12* out, const void* pointer) {
  const std::lock_guard lock(session().mutex);
  Line line("cudaPointerGetAttributes");
  if (out == nullptr) return recorded(line, kInvalidValue);
  const auto found = session().memory.find(pointer);
  void* address = const_cast<void*>(pointer);
  *out = {};
  if (!found) {
    out->device = -2;
    out->host_pointer = address;
  } else {
    out->kind = found->allocation->kind;
    out->device = found->allocation->device;
    out->device_pointer = address;
    out->host_pointer = out->kind == MemoryKind::device ? nullptr : address;
  }
  return recorded(line.json("pointer", place(pointer)));
}

/// cudaMemoryAdvise is from 1 to 6.
Error advise(const void* address, std::size_t bytes, int advice) {
  const std::lock_guard lock(session().mutex);
  Line line("cudaMemAdvise");
  line.json("pointer", place(address)).number("bytes", static_cast<std::int64_t>(bytes)).number("advice", advice);
  const auto found = session().memory.find(address);
  const bool is_managed = found && found->allocation->kind == MemoryKind::managed && fits(address, bytes, line);
  return recorded(line, is_managed && advice >= 1 && advice <= 6 ? kSuccess : kInvalidValue);
}

extern "C" {

Error cudaMalloc(void** out, std::size_t bytes) {
  return allocate("cudaMalloc", out, bytes, MemoryKind::device);
}
Error cudaMallocHost(void** out, std::size_t bytes) {
  return allocate("cudaMallocHost", out, bytes, MemoryKind::host);
}
Error cudaHostAlloc(void** out, std::size_t bytes, unsigned) {
  return allocate("cudaHostAlloc", out, bytes, MemoryKind::host);
}
Error cudaMallocManaged(void** out, std::size_t bytes, unsigned) {
  return allocate("cudaMallocManaged", out, bytes, MemoryKind::managed);
}
/// Rows begin at multiples of 512 bytes: an assumption on the driver, as alignments of textures and of memory are
/// smaller.
Error cudaMallocPitch(void** out, std::size_t* pitch, std::size_t width, std::size_t height) {
  if (pitch == nullptr) return allocate("cudaMallocPitch", nullptr, width * height, MemoryKind::device);
  *pitch = (width + 511) / 512 * 512;
  return allocate("cudaMallocPitch", out, *pitch * height, MemoryKind::device);
}
Error cudaFree(void* address) {
  return release("cudaFree", address, false);
}
Error cudaFreeHost(void* address) {
  return release("cudaFreeHost", address, true);
}

/// Memory of a pool is there, and free for others, in the order of the program's calls.
Error cudaMallocAsync(void** out, std::size_t bytes, void* stream) {
  return allocate("cudaMallocAsync", out, bytes, MemoryKind::device, &stream);
}
Error cudaMallocFromPoolAsync(void** out, std::size_t bytes, void*, void* stream) {
  return allocate("cudaMallocFromPoolAsync", out, bytes, MemoryKind::device, &stream);
}
Error cudaFreeAsync(void* address, void* stream) {
  return release("cudaFreeAsync", address, false, &stream);
}
/// A device has one pool, which keeps nothing that is free: its attributes have no effect.
Error cudaDeviceGetDefaultMemPool(void** out, int device) {
  const std::lock_guard lock(session().mutex);
  const Line line = Line("cudaDeviceGetDefaultMemPool").number("device", device);
  if (out == nullptr || device < 0 || device >= session().settings.devices) return recorded(line, kInvalidValue);
  *out = &session();
  return recorded(line);
}
Error cudaMemPoolSetAttribute(void* pool, int attribute, void*) {
  const std::lock_guard lock(session().mutex);
  const Line line = Line("cudaMemPoolSetAttribute").number("attribute", attribute);
  return recorded(line, pool == &session() ? kSuccess : kInvalidValue);
}
Error cudaMemPoolTrimTo(void* pool, std::size_t) {
  const std::lock_guard lock(session().mutex);
  return recorded(Line("cudaMemPoolTrimTo"), pool == &session() ? kSuccess : kInvalidValue);
}

Error cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  return copy("cudaMemcpy", to, from, bytes, kind, nullptr);
}
Error cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream) {
  return copy("cudaMemcpyAsync", to, from, bytes, kind, stream);
}
/// The devices of the two ends are those of their allocations.
Error cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, void* stream) {
  return copy("cudaMemcpyPeerAsync", to, from, bytes, static_cast<int>(CopyKind::any), stream);
}

Error cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return copy("cudaMemcpyPeer", to, from, bytes, static_cast<int>(CopyKind::any), nullptr);
}

/// Pinned memory is at one address for the host and for devices.
Error cudaHostGetDevicePointer(void** out, void* address, unsigned flags) {
  const std::lock_guard lock(session().mutex);
  const Line line = Line("cudaHostGetDevicePointer").json("pointer", place(address));
  if (out == nullptr || address == nullptr || flags != 0) return recorded(line, kInvalidValue);
  *out = address;
  return recorded(line);
}

/// Memory that the program pins stays the host's.
Error cudaHostRegister(void* address, std::size_t bytes, unsigned) {
  const std::lock_guard lock(session().mutex);
  const Line line = Line("cudaHostRegister").number("bytes", static_cast<std::int64_t>(bytes));
  return recorded(line, address == nullptr || bytes == 0 ? kInvalidValue : kSuccess);
}
Error cudaHostUnregister(void* address) {
  const std::lock_guard lock(session().mutex);
  return recorded(Line("cudaHostUnregister"), address == nullptr ? kInvalidValue : kSuccess);
}

Error cudaMemset(void* to, int value, std::size_t bytes) {
  return set("cudaMemset", to, value, bytes, nullptr);
}
Error cudaMemsetAsync(void* to, int value, std::size_t bytes, void* stream) {
  return set("cudaMemsetAsync", to, value, bytes, stream);
}

Error cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Line line("cudaMemGetInfo");
  if (free_bytes == nullptr || total_bytes == nullptr) return recorded(line, kInvalidValue);
  *total_bytes = of.memory.capacity_bytes();
  *free_bytes = *total_bytes - of.memory.used_bytes(thread_state().device);
  return recorded(line.number("free_bytes", static_cast<std::int64_t>(*free_bytes)));
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
