// How an experiment's router spreads tokens over experts: balanced, by Zipf's law, or as somebody measured it.
#pragma once

#include <memory>
#include <string>

#include "core/workload/model/model.hpp"
#include "core/workload/model/routing.hpp"
#include "experiments/config/vocabulary.hpp"
#include "experiments/config/world.hpp"

namespace manyworlds::experiments {

inline constexpr std::int64_t kMostLoads = 2'000'000;  // experts of all layers together

/// The choice of a routing, for the vocabulary.
Branch routing_branch();

struct RoutingChoice {
  std::shared_ptr<const core::workload::Routing> routing;  // null: balanced, or something is wrong
  std::string fault;                                       // what; empty: nothing
};
/// What these settings choose, for that model. `inputs` has the text of a measured table; where it is null, that is
/// left out.
RoutingChoice routing_of(const Settings& settings, const Inputs* inputs, const core::workload::Model& model);

}  // namespace manyworlds::experiments
