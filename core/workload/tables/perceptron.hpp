// Linear layers with biases, each followed by a ReLU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {

struct Perceptron {
  std::int64_t inputs = 0;
  std::vector<std::int64_t> widths;  // outputs of each layer

  std::int64_t parameters() const;
  /// Returns the sum of inputs times outputs over the layers, which is also half of a sample's FLOPs, as a formula.
  std::string products_formula() const;
  std::string parameters_formula() const;
  /// Returns the bytes of the gradients on both sides of the layer where they are largest.
  std::int64_t working_bytes(const RankShapes& shapes) const;
};

/// Appends the layers. Every tensor-parallel rank has all of each. `of_data`: nothing needs a gradient of the input.
void add_perceptron(std::vector<Operator>& operators, const PartOnRank& on, const Perceptron& layers,
                    std::string_view name, bool of_data);

PartType perceptron_type();

}  // namespace manyworlds::core::workload
