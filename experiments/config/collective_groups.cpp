#include "experiments/config/collective_groups.hpp"

namespace manyworlds::experiments {

const std::vector<CollectiveGroup>& collective_groups() {
  using core::workload::Role;
  static const std::vector<CollectiveGroup> groups{
      {"tensor", "algorithms in tensor-parallel groups", {Role::tensor}},
      {"context", "algorithms in context-parallel groups that exchange without a ring", {Role::context}},
      {"data",
       "algorithms among replicas of the dense parameters, or of all of a model without experts",
       {Role::data, Role::data_inter_group}},
      {"expert", "algorithms in expert-parallel groups", {Role::expert}},
      {"expert_tensor", "algorithms among ranks that one expert is sharded over", {Role::expert_tensor}},
      {"expert_data", "algorithms among replicas of experts", {Role::expert_data, Role::expert_data_inter_group}},
      {"embedding", "algorithms between the first and the last stage, which share tied embeddings", {Role::embedding}}};
  return groups;
}

}  // namespace manyworlds::experiments
