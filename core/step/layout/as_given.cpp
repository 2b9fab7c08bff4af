#include "core/step/layout/as_given.hpp"

#include <map>
#include <memory>
#include <vector>

#include "core/base/error.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/step/layout/step_programs.hpp"

namespace manyworlds::core::step {
namespace {

using workload::DimensionKind;
using workload::Role;

DimensionKind kind_of(Role role) {
  if (role == Role::send_context) return DimensionKind::slowing_pairs;
  return workload::is_pipeline_transfer(role) ? DimensionKind::pairs : DimensionKind::groups;
}

/// Dimensions for the roles of a layout's groups, and the role in them for each role.
class Dimensions {
 public:
  explicit Dimensions(const RankLayout& layout) {
    for (const RankId rank : layout.rank_ids()) {
      ranks_->program_of_rank.push_back(layout.class_of(rank));
      ranks_->gpu_of_rank.push_back(layout.gpu_of(rank).value());
    }
    for (const Group& group : layout.groups()) {
      if (role_of_.count(group.role) == 0) add(group.role);
      auto& given = ranks_->groups.emplace_back();
      given.dimension = static_cast<std::uint32_t>(workload::dimension_of(role_of_.at(group.role)));
      for (const RankId rank : group.ranks) given.ranks.push_back(rank.value());
    }
  }

  Role role_of(Role role) const { return role_of_.at(role); }
  const std::shared_ptr<workload::GivenRanks>& ranks() const { return ranks_; }

 private:
  void add(Role role) {
    const DimensionKind kind = kind_of(role);
    std::vector<workload::Dimension>& dimensions = ranks_->dimensions;
    role_of_[role] = workload::role_in_dimension(dimensions.size(), kind);
    if (kind != DimensionKind::groups)
      role_of_[workload::receiver_of(role)] = workload::role_in_dimension(dimensions.size(), kind, true);
    dimensions.push_back({workload::kRoleNames[static_cast<std::size_t>(role)], kind, workload::exposed_part(role)});
  }

  std::shared_ptr<workload::GivenRanks> ranks_ = std::make_shared<workload::GivenRanks>();
  std::map<Role, Role> role_of_;
};

void set_slowed(workload::GivenPrograms& given, const Configuration& configuration) {
  const workload::Stack& stack = configuration.strategy.stack;
  if (stack.communication_engine == workload::CommunicationEngine::calibrated) return;
  given.slowed = workload::SlowedKernels::by_units;
  given.units_to_reduce = stack.communication_sms;
  given.units_to_move = stack.communication_engine == workload::CommunicationEngine::sm ? stack.communication_sms : 0;
}

}  // namespace

workload::GivenPrograms as_given(const Configuration& configuration, const RankLayout& layout) {
  const workload::Strategy& strategy = configuration.strategy;
  if (configuration.model.has_experts() && strategy.ep > 1 &&
      strategy.stack.dispatcher != workload::Dispatcher::all_to_all)
    throw InputError("a program has no form for the exchange of tokens but all_to_all", "strategy.stack.dispatcher");
  const Dimensions dimensions(layout);
  workload::GivenPrograms given;
  given.programs = build_programs(configuration, layout.classes());
  for (const workload::RankClass& one : layout.classes())
    given.kernels.push_back(workload::kernels_used(configuration.model, strategy, configuration.gpu_of(one), one));
  given.allocated.resize(given.programs.size());
  for (workload::Program& program : given.programs) {
    for (const workload::Dimension& dimension : dimensions.ranks()->dimensions)
      program.exposed_dimensions.push_back(dimension.exposed);
    for (workload::Op& op : program.ops)
      if (auto* call = std::get_if<workload::CollectiveCall>(&op.action)) call->role = dimensions.role_of(call->role);
  }
  given.ranks = dimensions.ranks();
  set_slowed(given, configuration);
  given.tokens_per_step = tokens_per_step(configuration);
  given.is_synchronised = !strategy.stack.post_validation;
  given.set_key();
  return given;
}

}  // namespace manyworlds::core::step
