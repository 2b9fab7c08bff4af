#include "core/step/compile/tuner_choices.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include "core/network/fabric/router.hpp"
#include "core/network/transports/registry.hpp"
#include "core/step/compile/step_summary.hpp"
#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::core::step {

std::vector<TunerChoice> tuner_choices(const Configuration& configuration) {
  network::PathChoice choice = network::path_choice_of(configuration.transport);
  choice.routing = network::routing_of(configuration.transport);
  const RankLayout layout(parallel_config_of(configuration),
                          std::make_shared<network::Router>(configuration.graph, choice));
  const StepOperations operations(configuration);
  std::set<TunerChoice> choices;
  for (const GroupKind& group : layout.kinds()) {
    const collective::Communicator& members = group.communicator;
    if (members.members < 2) continue;
    const collective::Library& library = configuration.library_of(group.role);
    for (const Operation& one : operations.of(group)) {
      if (one.kind == collective::Kind::send || has_token_kernels(configuration, group, one.kind)) continue;
      const collective::TunerRule* rule =
          one.split.even() ? collective::rule_for(library, members, one.kind, one.bytes) : nullptr;
      if (rule == nullptr && one.kind == collective::Kind::all_to_all) continue;
      TunerChoice chosen{one.kind, one.bytes, members.members, members.members / members.per_node};
      if (rule != nullptr) chosen.line = rule->line, chosen.file = rule->file;
      choices.insert(std::move(chosen));
    }
  }
  return {choices.begin(), choices.end()};
}

}  // namespace manyworlds::core::step
