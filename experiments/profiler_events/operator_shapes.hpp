// Shapes of kernels, from what the profiler recorded of the operators that launched them.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "experiments/profiler_events/rank_trace.hpp"

namespace manyworlds::experiments::profiler {

class OperatorShapes {
 public:
  /// Adds an operator, whose kernels have its `external` id. `inputs` are the members of its arguments that tell of its
  /// inputs, as they stand in the trace; an operator that is not modelled (import::kernel_of_operator) has no shape.
  void add(std::int64_t external, const std::string& name, const std::string& inputs);

  /// Gives the kernels of a trace their shapes.
  void give_to(RankTrace& trace);

 private:
  std::uint32_t shape_of(const std::string& name, const std::string& inputs);

  std::vector<programs::KernelShape> shapes_;
  std::unordered_map<std::string, std::uint32_t> known_;              // index in shapes_, by name and inputs
  std::vector<std::pair<std::int64_t, std::uint32_t>> of_operators_;  // by external id; those that have one
};

}  // namespace manyworlds::experiments::profiler
