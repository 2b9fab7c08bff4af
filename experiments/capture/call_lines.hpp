// What lines say of kernels, copies and sets, which are given to streams and are nodes of graphs. The mutex is held.
#pragma once

#include <cstddef>

#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture {

/// The kernel of a host's function. Ends the capture, with the name of the call, if there is none.
const Kernel& registered_kernel(const char* call, const void* function);

/// Adds a kernel, its grid, block, shared memory and arguments, and returns what the runtime says of such a launch:
/// more blocks, threads or shared memory than a device has are an error of the program. Ends the capture if the
/// function is no kernel.
Error describe_launch(const char* call, Line& line, const void* function, const LaunchShape& shape, void** values);

/// Adds both ends of a copy, its bytes and its direction, and returns what the runtime says of it. `kind` is
/// cudaMemcpyKind.
Error describe_copy(Line& line, void* to, const void* from, std::size_t bytes, int kind);

/// Which way a copy goes, as the record says it, and whether `kind` (cudaMemcpyKind) says the same.
const char* direction(const void* to, const void* from);
bool is_direction(int kind, const void* to, const void* from);

/// Whether a device touches `bytes` from `pointer` on without a fault, if the pointer is in an allocation. Bytes beyond
/// what the program asked for are an error of the program that devices do not report: the line says so.
bool fits(const void* pointer, std::size_t bytes, Line& line);

/// Adds where a set begins, its value and its bytes, and returns what the runtime says of it.
Error describe_set(Line& line, void* to, unsigned value, std::size_t bytes);

/// What the host sees of a copy: data of its own, or zeros for what no device computed.
void move_for_host(void* to, const void* from, std::size_t bytes);

/// What the host sees of a set of elements of 1, 2 or 4 bytes, if the memory is its own.
void set_for_host(void* to, unsigned value, unsigned element_bytes, std::size_t bytes);

}  // namespace manyworlds::experiments::capture
