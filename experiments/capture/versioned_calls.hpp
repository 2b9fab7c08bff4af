// What calls do whose signature or layout is that of a major version of CUDA: the rooms cuda12 and cuda13 have the
// functions themselves.
#pragma once

#include <cstddef>

#include "experiments/capture/runtime_types.hpp"

namespace manyworlds::experiments::capture {

/// cudaGetDeviceProperties, for DeviceProperties12 or DeviceProperties13.
template <class Properties>
Error get_device_properties(Properties* out, int device);

/// cudaPointerAttributes, as CUDA 12 has them; null: an invalid value.
Error get_pointer_attributes(PointerAttributes12* out, const void* pointer);

/// Whether a stream is captured, and a number of its own for the graph. What is asked for beside these, the graph and
/// what its next node waits for, ends the capture with the name of the function, as nodes of a capture are not told.
Error get_capture_info(const char* call, void* stream, int* status, unsigned long long* id, bool asks_for_nodes);

/// Advice on managed memory, which is the host's here, has no effect.
Error advise(const void* address, std::size_t bytes, int advice);

/// Makes the n-th of `to` wait for the n-th of `from`, all of them nodes of the graph.
Error add_dependencies(void* graph, void* const* from, void* const* to, std::size_t count);

/// Ends the capture unless the kinds of edges are all the default one, a whole operation after another:
/// cudaGraphEdgeData is 8 bytes, which are zero for it; null stands for that kind.
void check_default_edges(const char* call, const void* edges, std::size_t count);

}  // namespace manyworlds::experiments::capture
