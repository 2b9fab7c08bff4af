// What lines say of the kernels of cuBLAS and of cuDNN: a matrix product, or operations on tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/records/call.hpp"
#include "experiments/text/json.hpp"

namespace manyworlds::experiments::captured {

/// Returns the product of a line. Throws InputError, without a file, for extents that are none, for more than 1e18
/// operations, and for other than three types.
Product product_of(const import::JsonView& line, Words& words);

/// A kernel of cuDNN: its name, an index in Words; its number in the list of the record; and a hash of both and its
/// shape.
struct NamedKernel {
  std::uint32_t name = 0, number = 0;
  std::uint64_t form = 0;
};

/// Adds the kernel of a line's operations to `kernels`. Throws as cudnn_graphs::operation_graph_of() and
/// graph_kernel().
NamedKernel library_kernel_of(const import::JsonView& line, Words& words, std::vector<LibraryKernel>& kernels);

}  // namespace manyworlds::experiments::captured
