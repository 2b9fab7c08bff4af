// How a compiled program registers its kernels and launches them: the functions that nvcc and clang call by themselves,
// as clang's CodeGen/CGCUDANV.cpp and the CUDA Runtime API reference (execution control) describe them.
#include <cstring>

#include "experiments/capture/call_lines.hpp"
#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture {
namespace {

std::string extent(const Extent3& of) {
  return "[" + std::to_string(of.x) + "," + std::to_string(of.y) + "," + std::to_string(of.z) + "]";
}

template <typename T>
T read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::string whole(const Parameter& parameter, const void* from) {
  const bool is_signed = parameter.form == ArgumentForm::signed_integer;
  switch (parameter.bytes) {
    case 1:
      return std::to_string(is_signed ? read<std::int8_t>(from) : read<std::uint8_t>(from));
    case 2:
      return std::to_string(is_signed ? read<std::int16_t>(from) : read<std::uint16_t>(from));
    case 4:
      return is_signed ? std::to_string(read<std::int32_t>(from)) : std::to_string(read<std::uint32_t>(from));
    default:
      return is_signed ? std::to_string(read<std::int64_t>(from)) : std::to_string(read<std::uint64_t>(from));
  }
}

/// A number as JSON; those that JSON has no number for, as a string.
std::string real(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  const bool is_number = value - value == 0;
  return is_number ? text : quoted(text);
}

std::string argument(const Parameter& parameter, const void* from) {
  switch (parameter.form) {
    case ArgumentForm::pointer:
      return place(read<const void*>(from));
    case ArgumentForm::float32:
      return real(read<float>(from));
    case ArgumentForm::float64:
      return real(read<double>(from));
    case ArgumentForm::boolean:
      return read<unsigned char>(from) != 0 ? "true" : "false";
    case ArgumentForm::signed_integer:
    case ArgumentForm::unsigned_integer:
      return whole(parameter, from);
    case ArgumentForm::unread:
      break;
  }
  return "{\"unread\":" + quoted(parameter.type) + "}";
}

std::string arguments(const Kernel& kernel, void** values) {
  std::string list = "[";
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i)
    list += (i == 0 ? "" : ",") + argument(kernel.parameters[i], values[i]);
  return list + "]";
}

bool is_launchable(const Extent3& grid, const Extent3& block) {
  const auto threads = std::uint64_t{block.x} * block.y * block.z;
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 2147483647u && grid.y <= 65535 && grid.z <= 65535 &&
         threads > 0 && threads <= 1024 && block.z <= 64;
}

Error launch(const char* call, const void* function, const LaunchShape& shape, void** values, unsigned attributes) {
  const std::lock_guard lock(session().mutex);
  Line line(call);
  line.number("stream", stream_number(shape.stream));
  if (attributes > 0) line.number("attributes", attributes);
  const Error error = describe_launch(call, line, function, shape, values);
  return recorded(line, stream_number(shape.stream) < 0 ? kInvalidHandle : error);
}

}  // namespace

const Kernel& registered_kernel(const char* call, const void* function) {
  const auto found = session().kernels.find(function);
  if (found == session().kernels.end())
    end_capture(std::string(call) +
                ": the kernel is not registered: it was compiled without its device code "
                "(clang needs -fcuda-include-gpubinary), or it is not a kernel");
  return found->second;
}

Error describe_launch(const char* call, Line& line, const void* function, const LaunchShape& shape, void** values) {
  const Kernel& kernel = registered_kernel(call, function);
  line.text("kernel", kernel.name).json("grid", extent(shape.grid)).json("block", extent(shape.block));
  line.number("shared_bytes", static_cast<std::int64_t>(shape.shared_bytes));
  if (!is_launchable(shape.grid, shape.block)) return kInvalidConfiguration;
  if (static_cast<std::int64_t>(shape.shared_bytes) > kernel.max_dynamic_shared_bytes) return kInvalidValue;
  if (kernel.are_parameters_known && (values != nullptr || kernel.parameters.empty()))
    line.json("arguments", arguments(kernel, values));
  return kSuccess;
}

// NOLINTBEGIN(bugprone-reserved-identifier): the names are those that compilers call
extern "C" {

/// The handle is any address of its own: what it holds is never read.
void** __cudaRegisterFatBinary(void*) {
  return new void*(nullptr);
}
void __cudaRegisterFatBinaryEnd(void**) {}
/// Programs call it at their end; the kernels stay, as other ends may still launch them.
void __cudaUnregisterFatBinary(void** handle) {
  delete handle;
}
char __cudaInitModule(void**) {
  return 1;
}

void __cudaRegisterFunction(void**, const char* function, char*, const char* device_name, int, void*, void*, void*,
                            void*, int*) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  Kernel kernel;
  kernel.name = demangled(device_name);
  kernel.parameters = parameters(kernel.name, kernel.are_parameters_known);
  of.kernels[function] = std::move(kernel);
}

unsigned __cudaPushCallConfiguration(Extent3 grid, Extent3 block, std::size_t shared_bytes, void* stream) {
  thread_state().pushed.push_back({grid, block, shared_bytes, stream});
  return 0;
}

Error __cudaPopCallConfiguration(Extent3* grid, Extent3* block, std::size_t* shared_bytes, void* stream) {
  std::vector<LaunchShape>& pushed = thread_state().pushed;
  if (pushed.empty()) end_capture("__cudaPopCallConfiguration: a launch without a configuration");
  const LaunchShape top = pushed.back();
  pushed.pop_back();
  *grid = top.grid, *block = top.block, *shared_bytes = top.shared_bytes;
  *static_cast<void**>(stream) = top.stream;
  return kSuccess;
}

Error cudaLaunchKernel(const void* function, Extent3 grid, Extent3 block, void** values, std::size_t shared_bytes,
                       void* stream) {
  return launch("cudaLaunchKernel", function, {grid, block, shared_bytes, stream}, values, 0);
}

Error cudaLaunchCooperativeKernel(const void* function, Extent3 grid, Extent3 block, void** values,
                                  std::size_t shared_bytes, void* stream) {
  return launch("cudaLaunchCooperativeKernel", function, {grid, block, shared_bytes, stream}, values, 0);
}

Error cudaLaunchKernelExC(const LaunchConfiguration* with, const void* function, void** values) {
  if (with == nullptr) return kInvalidValue;
  return launch("cudaLaunchKernelExC", function, {with->grid, with->block, with->shared_bytes, with->stream}, values,
                with->attribute_count);
}

/// nvcc of CUDA 13 registers a kernel and then asks for it; the capture's kernels are the functions themselves.
Error __cudaGetKernel(void** out, const void* function) {
  *out = const_cast<void*>(function);
  return kSuccess;
}
Error __cudaLaunchKernel(void* kernel, Extent3 grid, Extent3 block, void** values, std::size_t shared_bytes,
                         void* stream) {
  return launch("cudaLaunchKernel", kernel, {grid, block, shared_bytes, stream}, values, 0);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

}  // namespace manyworlds::experiments::capture
