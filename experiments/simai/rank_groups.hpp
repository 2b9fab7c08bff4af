// Groups of ranks in the order that SimAI and Megatron-LM number them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::simai {

/// Of tensor-parallel ranks; of ranks that share a layer's experts; of replicas of dense parameters, and of the same
/// experts; of ranks of tensor and expert parallelism; of stages; of the first and the last stage; of all ranks.
enum class GroupKind : std::uint8_t { tensor, expert, data, expert_data, expert_tensor, pipeline, embedding, all };

/// Ranks are numbered with the tensor-parallel rank fastest, then the expert-parallel one, then the replica, then the
/// stage ("tp-cp-ep-dp-pp"): SimAI's MockNcclGroup for tp, ep and dp, AICB's RankGenerator for all.
struct RankOrder {
  std::uint32_t gpus = 1, tp = 1, ep = 1, pp = 1;

  std::uint32_t dp() const { return gpus / (tp * pp); }
  std::uint32_t stage_ranks() const { return gpus / pp; }
  /// Throws InputError, without a file, unless tp pp divides gpus, and ep divides the replicas that follow.
  void check() const;
  std::uint32_t members(GroupKind kind) const;
  std::vector<std::vector<std::uint32_t>> groups(GroupKind kind) const;
};

/// Adds dimensions to programs when they are first used.
class Dimensions {
 public:
  Dimensions(const RankOrder& order, core::workload::GivenRanks& ranks) : order_(order), ranks_(ranks) {}

  /// Returns the dimension of groups of a kind; nothing if a group has one rank. Operations that nothing waits for have
  /// communicators of their own, as they run beside the others.
  std::optional<std::uint32_t> of(GroupKind kind, bool is_awaited);
  /// Returns the dimension of transfers from each stage to the next one, or to the previous one.
  std::uint32_t to_neighbour(bool is_next);

 private:
  std::uint32_t add(std::string_view name, core::workload::DimensionKind kind, core::workload::StepPart exposed);

  RankOrder order_;
  core::workload::GivenRanks& ranks_;
  std::map<std::pair<GroupKind, bool>, std::uint32_t> of_groups_;
  std::map<bool, std::uint32_t> of_pairs_;
};

/// Returns the name of the stream on which operations of a kind run: those that the next operation waits for are never
/// behind others.
std::string_view stream_name(GroupKind kind, bool is_awaited);

}  // namespace manyworlds::experiments::simai
