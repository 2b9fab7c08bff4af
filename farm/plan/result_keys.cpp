#include "farm/plan/result_keys.hpp"

#include "farm/plan/naming_experiment.hpp"
#include "farm/plan/plan.hpp"

namespace manyworlds::farm {

core::sharing::Key ResultKeys::of(const experiments::Sweep& sweep, std::uint32_t experiment, bool is_bound) {
  const auto [known, is_new] = known_.try_emplace({experiment, is_bound});
  core::sharing::Key& key = known->second;
  if (!is_new) return key;
  const experiments::Experiment& one = sweep.experiments.at(experiment);
  naming_experiment(sweep, one, [&] {
    core::step::Configuration configuration = configure(one, graphs_);
    if (is_bound) configuration = bound_of(std::move(configuration));
    key = context_.summary(configuration).step;
  });
  return key;
}

}  // namespace manyworlds::farm
