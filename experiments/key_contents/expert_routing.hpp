// How the router of an experiment spreads tokens over experts: balanced, by Zipf's law, or as measured.
#pragma once

#include <memory>
#include <string>

#include "core/workload/distributions/expert_routing.hpp"
#include "core/workload/model/model.hpp"
#include "experiments/key_contents/programs.hpp"
#include "experiments/keys/section.hpp"

namespace manyworlds::experiments {

inline constexpr std::int64_t kMaxExpertLoads = 2'000'000;  // experts, summed over layers

/// Returns section `routing` of the config schema.
Section routing_section();

struct RoutingChoice {
  std::shared_ptr<const core::workload::Routing> routing;  // null: balanced, or an error
  std::string error;                                       // empty: no error
};
/// Returns the routing that the settings choose for `model`. `inputs` holds the text of a measured table; if it is
/// null, a measured routing is omitted.
RoutingChoice routing_of(const Settings& settings, const Inputs* inputs, const core::workload::Model& model);

}  // namespace manyworlds::experiments
