// Variables of device code (__device__ and __constant__), which programs reach by their symbols: CUDA Runtime API
// reference, cudaMemcpyToSymbol and its neighbours. Each has memory of its own on each device, from the first call that
// asks for it.
#include "experiments/capture/call_lines.hpp"
#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture {
namespace {

/// The variable of a symbol, with its name in the line; null if no module has it.
Variable* variable(Line& line, const void* symbol) {
  const auto found = session().variables.find(symbol);
  if (found == session().variables.end()) return nullptr;
  line.text("symbol", found->second.name);
  return &found->second;
}

/// Where the variable is on the device of this thread; null if the device has no memory left.
char* address_of(Variable& of) {
  void*& address = of.addresses[thread_state().device];
  if (address == nullptr) address = session().memory.allocate(of.bytes, thread_state().device, MemoryKind::device);
  return static_cast<char*>(address);
}

enum class Way { to_symbol, from_symbol };

struct SymbolCopy {
  const void* symbol;
  std::size_t bytes, offset;
  int kind;
  void* stream;
};

Error copy(const char* call, Way way, const SymbolCopy& asked, void* to, const void* from) {
  const std::lock_guard lock(session().mutex);
  Line line(call);
  Variable* of = variable(line, asked.symbol);
  if (of == nullptr) return recorded(line, kInvalidSymbol);
  if (asked.offset > of->bytes || asked.bytes > of->bytes - asked.offset) return recorded(line, kInvalidValue);
  char* const address = address_of(*of);
  if (address == nullptr) return recorded(line, kOutOfMemory);
  if (way == Way::to_symbol)
    to = address + asked.offset;
  else
    from = address + asked.offset;
  const Error error = describe_copy(line, to, from, asked.bytes, asked.kind);
  line.number("stream", stream_number(asked.stream));
  if (stream_number(asked.stream) < 0) return recorded(line, kInvalidHandle);
  if (error == kSuccess) move_for_host(to, from, asked.bytes);
  return recorded(line, error);
}

}  // namespace

extern "C" {

// NOLINTNEXTLINE(bugprone-reserved-identifier): compilers call it by this name
void __cudaRegisterVar(void**, char* of_host, char*, const char* name, int, std::size_t bytes, int, int) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  of.variables[of_host] = {demangled(name), bytes, {}};
}

Error cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset, int kind) {
  return copy("cudaMemcpyToSymbol", Way::to_symbol, {symbol, bytes, offset, kind, nullptr}, nullptr, from);
}
Error cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes, std::size_t offset, int kind,
                              void* stream) {
  return copy("cudaMemcpyToSymbolAsync", Way::to_symbol, {symbol, bytes, offset, kind, stream}, nullptr, from);
}
Error cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset, int kind) {
  return copy("cudaMemcpyFromSymbol", Way::from_symbol, {symbol, bytes, offset, kind, nullptr}, to, nullptr);
}
Error cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes, std::size_t offset, int kind,
                                void* stream) {
  return copy("cudaMemcpyFromSymbolAsync", Way::from_symbol, {symbol, bytes, offset, kind, stream}, to, nullptr);
}

Error cudaGetSymbolAddress(void** out, const void* symbol) {
  const std::lock_guard lock(session().mutex);
  Line line("cudaGetSymbolAddress");
  Variable* of = variable(line, symbol);
  if (of == nullptr) return recorded(line, kInvalidSymbol);
  if (out == nullptr) return recorded(line, kInvalidValue);
  *out = address_of(*of);
  return recorded(line.json("pointer", place(*out)), *out == nullptr ? kOutOfMemory : kSuccess);
}
Error cudaGetSymbolSize(std::size_t* out, const void* symbol) {
  const std::lock_guard lock(session().mutex);
  Line line("cudaGetSymbolSize");
  const Variable* of = variable(line, symbol);
  if (of == nullptr) return recorded(line, kInvalidSymbol);
  if (out == nullptr) return recorded(line, kInvalidValue);
  *out = of->bytes;
  return recorded(line.number("bytes", static_cast<std::int64_t>(of->bytes)));
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
