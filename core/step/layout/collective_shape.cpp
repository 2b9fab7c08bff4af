// The shapes of a step's collectives: the library's choice, or the kernels that the stack has for experts' tokens.
#include "core/collective/library/token_exchange.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "core/workload/parts/routed_experts.hpp"

namespace manyworlds::core::step {

namespace {

/// Describes an exchange of a layer's tokens, `bytes` of them on each of the group's members.
collective::TokenExchange token_exchange(const Configuration& configuration, const collective::Communicator& group,
                                         std::int64_t bytes, bool combine) {
  const workload::Model& model = configuration.model;
  const workload::Stack& stack = configuration.strategy.stack;
  collective::TokenExchange result;
  if (stack.dispatcher == workload::Dispatcher::deepep) result.kernels = collective::TokenKernels::deepep;
  result.combine = combine;
  result.bytes = bytes;
  result.row_bytes = 2 * model.hidden;
  result.ranks_reached = workload::mean_parts_reached(model, group.members);
  result.nodes_reached = workload::mean_parts_reached(model, group.members / group.per_node);
  result.units = static_cast<double>(stack.dispatcher_sms);
  result.experts_of_rank = static_cast<double>(model.experts) / group.members;
  return result;
}

}  // namespace

bool has_token_kernels(const Configuration& configuration, const GroupKind& group, collective::Kind kind) {
  return group.role == workload::Role::expert && kind == collective::Kind::all_to_all &&
         configuration.strategy.stack.dispatcher != workload::Dispatcher::all_to_all;
}

collective::Shape shape_of(const Configuration& configuration, const GroupKind& group, collective::Kind kind,
                           std::int64_t bytes, const collective::Split& split) {
  if (!has_token_kernels(configuration, group, kind))
    return collective::choose_shape(configuration.library_of(group.role), group.communicator, kind, bytes, split);
  return collective::token_exchange_shape(configuration.library_of(group.role), group.communicator,
                                          token_exchange(configuration, group.communicator, bytes, split.by_source));
}

}  // namespace manyworlds::core::step
