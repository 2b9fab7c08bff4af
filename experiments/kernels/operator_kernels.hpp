// What operators of PyTorch compute, by the shapes of their inputs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/compute/kernel.hpp"

namespace manyworlds::experiments::import {

struct OperatorKernel {
  core::compute::Kernel kernel;
  /// Why its time does not show what a GPU reaches, though it can be scaled to another; null if it does.
  const char* for_scaling_alone = nullptr;
};

/// Returns the kernel of an operator such as `aten::mm`. `arguments` is what the profiler records of it with
/// record_shapes=True, or null: `Input Dims`, `Input type`, `Input Strides` and `Concrete Inputs`, lists with an
/// element for each input. Tensors that are broadcast count once. Throws UnsupportedRow for an operator that is not
/// modelled, and for inputs that do not tell what it computes. An operator that launches several kernels is one here.
OperatorKernel kernel_of_operator(const std::string& name, const nlohmann::json* arguments);

}  // namespace manyworlds::experiments::import
