// What becomes of a micro-batch's tokens in a layer with experts: where the router sends them, what the experts'
// capacity drops or pads, of which experts every rank has a copy, and what that leaves each rank to compute.
//
// Every rank routes its own tokens with the shares of Model::routing, and all micro-batches of a step alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/collective/dag/split.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Of the tokens of one rank, a row for each expert that a token goes to.
struct ExpertLoad {
  std::int64_t routed = 0;           // tokens x experts_per_token
  std::int64_t dropped = 0;          // of these, beyond capacity
  std::int64_t padded = 0;           // empty rows, up to capacity
  std::vector<std::int64_t> rows;    // by expert, kept and padded; empty: all experts have as many
  std::vector<std::int64_t> copied;  // experts that every rank computes itself, the hottest first

  std::int64_t all_rows() const { return routed - dropped + padded; }
};

/// Of a layer whose `kind` has experts.
ExpertLoad expert_load(const Model& model, const Strategy& strategy, LayerKind kind);

/// Rows that an expert takes of one rank's tokens at most: ceil(routed / experts x capacity_factor), and no more than
/// there are tokens (Megatron-LM, moe_utils.py: get_capacity and apply_router_token_dropping).
std::int64_t expert_capacity(const Model& model, const Strategy& strategy, std::int64_t tokens);

/// One rank's part in it.
struct RankLoad {
  std::int64_t sent = 0;              // rows that it sends, those to itself included
  std::int64_t received = 0;          // rows that come to it, before tensor ranks of its experts share theirs
  std::int64_t computed = 0;          // rows that its experts compute
  std::vector<std::int64_t> experts;  // of these each expert's, its copies of others behind; empty: all have as many
  collective::Split to_ranks;         // rows that every rank sends to each; empty: as many to each
};
RankLoad rank_load(const Model& model, const Strategy& strategy, const ExpertLoad& load, std::int64_t expert_rank);

/// Whether a rank with such a load keeps its experts' inputs alone.
bool makes_experts_again(const Strategy& strategy, const RankLoad& load);

/// Whether the ranks that share a layer's experts have unequal loads, and so programs of their own.
bool expert_ranks_differ(const Model& model, const Strategy& strategy);

/// Times of an expert's copy as FasterMoE reckons with them (He et al., PPoPP 2022, section 4.2; laekov/fastmoe,
/// fmoe/fastermoe/shadow_policy.py).
struct CopyCosts {
  double forward_s = 0;  // of a token in the expert's GEMMs
  double send_s = 0;     // of a token to another rank
  double copy_s = 0;     // of the expert's weights
};
CopyCosts copy_costs(const Model& model, const Strategy& strategy);

/// The experts to copy, the hottest first: with k copies a step takes 3 forward_s B_k + 4 send_s B_k + k copy_s, B_k
/// being the tokens of the hottest that is not copied; copies are added while that falls. `tokens` by expert, of all
/// ranks. None where the tokens' standard deviation is below `spread` times their mean.
std::vector<std::int64_t> experts_to_copy(std::span<const std::int64_t> tokens, const CopyCosts& costs, double spread);

/// What a step's routing comes to, over its layers with experts.
struct RoutingAccount {
  double drop_rate = 0;  // dropped rows over routed ones
  double imbalance = 1;  // rows that the busiest rank of a layer computes over those of the mean rank, mean over layers
  std::int64_t copies = 0;  // of hot experts, on every rank, all layers of the model together
};
RoutingAccount routing_account(const Model& model, const Strategy& strategy);

}  // namespace manyworlds::core::workload
