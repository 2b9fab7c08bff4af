// Traces of the PyTorch profiler (Kineto), recorded with shapes (profile(record_shapes=True)): the kernels of operators
// whose shapes tell what they compute become samples of kernels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/kernels/kernel_samples.hpp"

namespace manyworlds::experiments::import {

/// Returns whether the text begins as JSON does.
bool is_json(std::string_view text);

/// Returns a sample for each operator that launched kernels, in the order of the trace. Kernels of a step run under the
/// power limit, and their times are without launch. Operators that are not modelled, and kernels without an operator,
/// have the reason in `unsupported`. Throws InputError for what is no trace, and for one that has no kernel; `name` is
/// the file name in messages.
std::vector<KernelSample> parse_kineto_trace(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
