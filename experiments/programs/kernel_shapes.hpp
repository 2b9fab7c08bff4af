// Shapes of kernels as members of lines of the program file.
#pragma once

#include <string>

#include "experiments/programs/stream_program.hpp"
#include "experiments/text/json.hpp"

namespace manyworlds::experiments::programs {

/// Returns the shape that a line has: `gemm` with `dtype`, or `attention`, and `bytes`. Throws InputError, without a
/// file, for extents that are none, for more than 1e18 operations, and for a product and attention in one kernel.
KernelShape shape_of(const import::JsonView& line);

/// Returns the attention of a member: `class`, `queries`, `keys`, `width` and `batch`, and as options `key_batch` (as
/// many as batch), `causal` (true) and `dtype` (bf16). Throws as shape_of().
AttentionShape attention_of(const import::JsonView& value);

/// Returns the members of a shape, which shape_of() reads as the same one; empty if nothing of it is known.
std::string shape_text(const KernelShape& shape);

}  // namespace manyworlds::experiments::programs
