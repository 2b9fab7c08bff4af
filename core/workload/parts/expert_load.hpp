// The load of a layer's experts: where the router sends the tokens of a micro-batch, what the experts' capacity drops
// or pads, which experts are copied to every rank, and what each rank computes.
//
// Every rank routes its own tokens by the weights of Model::routing, in the same way for all micro-batches of a step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/collective/dag/split.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Rows of one rank's tokens: one row for each expert that a token goes to.
struct ExpertLoad {
  std::int64_t routed = 0;           // tokens x experts_per_token
  std::int64_t dropped = 0;          // rows beyond capacity
  std::int64_t padded = 0;           // empty rows up to capacity
  std::vector<std::int64_t> rows;    // by expert, after dropping and padding; empty: all experts have equally many
  std::vector<std::int64_t> copied;  // experts that every rank computes itself, the hottest first

  std::int64_t all_rows() const { return routed - dropped + padded; }
};

/// Whether each tensor-parallel rank has all tokens of a micro-batch, as where one token of a sample is generated: then
/// it computes what its own experts, or its share of them, make of all tokens, and the ranks sum their results.
bool experts_get_all_tokens(const Model& model, const Strategy& strategy);

/// Returns the load of a layer whose `kind` has experts.
ExpertLoad expert_load(const Model& model, const Strategy& strategy, LayerKind kind);

/// Returns the maximum number of rows that an expert takes from one rank: ceil(routed / experts x capacity_factor), and
/// at most the number of tokens (Megatron-LM, moe_utils.py: get_capacity and apply_router_token_dropping).
std::int64_t expert_capacity(const Model& model, const Strategy& strategy, std::int64_t tokens);

/// The share of one rank in the load.
struct RankLoad {
  std::int64_t sent = 0;      // rows that it sends, including those to itself
  std::int64_t received = 0;  // rows that it receives, before the tensor-parallel ranks of its experts gather theirs
  std::int64_t computed = 0;  // rows that its experts compute
  std::vector<std::int64_t> experts;  // rows by own expert, then by copy; empty: equally many
  collective::Split to_ranks;         // rows from every rank to each rank; empty: equally many
};
RankLoad rank_load(const Model& model, const Strategy& strategy, const ExpertLoad& load, std::int64_t expert_rank);

/// Whether a rank with such a load saves only the inputs of its experts.
bool recomputes_experts(const Strategy& strategy, const RankLoad& load);

/// Whether the ranks that share a layer's experts, or embedding tables, have unequal loads, and therefore different
/// programs.
bool expert_ranks_differ(const Model& model, const Strategy& strategy);

/// Times in FasterMoE's model of an expert's copies (He et al., PPoPP 2022, section 4.2; laekov/fastmoe,
/// fmoe/fastermoe/shadow_policy.py).
struct CopyCosts {
  double forward_s = 0;  // one token through the expert's GEMMs
  double send_s = 0;     // one token to another rank
  double copy_s = 0;     // broadcast of the expert's weights
};
CopyCosts copy_costs(const Model& model, const Strategy& strategy);

/// Returns the experts to copy, the hottest first. With k copies a step takes 3 forward_s B_k + 4 send_s B_k + k
/// copy_s, where B_k is the number of tokens of the hottest expert without a copy; copies are added while this time
/// decreases. `tokens` has the tokens of all ranks by expert. Nothing is copied if their standard deviation is below
/// `spread` times their mean.
std::vector<std::int64_t> experts_to_copy(std::span<const std::int64_t> tokens, const CopyCosts& costs, double spread);

/// Summary of a step's routing over its layers with experts.
struct RoutingSummary {
  double drop_rate = 0;     // dropped rows over routed ones
  double imbalance = 1;     // rows of a layer's busiest rank over those of its mean rank, averaged over layers
  std::int64_t copies = 0;  // copies of hot experts on each rank, summed over the model's layers
};
RoutingSummary routing_summary(const Model& model, const Strategy& strategy);

}  // namespace manyworlds::core::workload
