#include "experiments/profiler_events/operator_inputs.hpp"

namespace manyworlds::experiments::profiler {

void OperatorInputs::add(std::int64_t function, const std::string& name, const std::string& inputs) {
  const auto [known, is_new] =
      number_of_text_.try_emplace(name + '\n' + inputs, static_cast<std::uint32_t>(operators_.size()));
  if (is_new) operators_.push_back({name, inputs});
  number_of_function_.emplace(function, known->second);
}

const OperatorInputs::Operator* OperatorInputs::find(std::int64_t function) const {
  const auto known = number_of_function_.find(function);
  return known == number_of_function_.end() ? nullptr : &operators_[known->second];
}

}  // namespace manyworlds::experiments::profiler
