// All types of parts, and the parts of a layer.
#pragma once

#include <string_view>
#include <vector>

#include "core/workload/model/architecture.hpp"
#include "core/workload/model/multi_token_prediction.hpp"
#include "core/workload/operators/part.hpp"
#include "core/workload/parts/attention.hpp"
#include "core/workload/parts/experts.hpp"
#include "core/workload/parts/feed_forward.hpp"
#include "core/workload/parts/multi_token_prediction.hpp"

namespace manyworlds::core::workload {

const std::vector<PartType>& part_types();
/// Returns null if there is none of this name.
const PartType* find_part_type(std::string_view name);

/// A part of a layer, with the options and the kind that concern it.
struct LayerBranch {
  const LayerPart& part;
  BranchOptions options;
  const Model& model;
  LayerKind kind;
};

/// Calls `visit` with the parts of a layer, in forward order: those of its block, or attention and a feed-forward
/// network or experts. Around these a layer for multi-token prediction has parts of its own.
template <class Visitor>
void for_each_branch(const Model& model, LayerKind kind, Visitor&& visit) {
  if (is_mtp(kind)) {
    constexpr BranchOptions kAlone{BranchNorms::none, false};
    visit(LayerBranch{mtp_input_part(), kAlone, model, kind});
    for_each_branch(model, inner_kind(model, kind), visit);
    visit(LayerBranch{mtp_output_part(), kAlone, model, kind});
    return;
  }
  if (!model.architecture) {
    visit(LayerBranch{attention_part(), {}, model, kind});
    visit(LayerBranch{kind.experts ? experts_part() : feed_forward_part(), {}, model, kind});
    return;
  }
  for (const Branch& each : model.architecture->block_of(kind).branches)
    visit(LayerBranch{
        *each.part, each.options, *each.model, {each.part->has_experts(), each.model->window > 0, kind.load}});
}

/// Returns the part on a rank: one that tensor-parallel ranks share out by samples, or by weights as all others.
inline PartOnRank part_on_rank(const LayerBranch& branch, const Strategy& strategy, std::int64_t expert_rank) {
  return {branch.model, strategy_of_part(strategy, branch.part.data_part()), branch.kind, expert_rank};
}

}  // namespace manyworlds::core::workload
