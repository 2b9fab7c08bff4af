// How a model is sharded over ranks. The terms are Megatron-LM's: tensor (tp), pipeline (pp) and data parallel (dp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/options.hpp"
#include "core/workload/model/modules.hpp"
#include "core/workload/schedule/schedule.hpp"
#include "core/workload/schedule/stage_map.hpp"
#include "core/workload/schedule/written_schedule.hpp"
#include "core/workload/strategy/stack.hpp"

namespace manyworlds::core::workload {

/// per_op: all but the attention core and, in 16 bits, every other GEMM (torchtitan's selective_ac_option op).
enum class Recompute : std::uint8_t { none, selective, full, per_op };
/// Distribution of the layers over the virtual stages. even: the same number in each; light_ends: one fewer in the
/// first and in the last, which have embedding and head (Megatron-LM's account-for-embedding- and
/// -loss-in-pipeline-split); light_last: the last has the layers that remain when the others are full; by_cost: layers
/// and head are dealt out by the weights of their GEMMs (nanotron; see split_by_cost()); by_parameters, by_time and
/// by_memory: the largest sum of a stage's parameters, modelled times or memory is as small as can be.
enum class LayerSplit : std::uint8_t { even, light_ends, light_last, by_cost, by_parameters, by_time, by_memory };
/// How context-parallel ranks exchange tokens: keys and values move around a ring, or are gathered before attention, or
/// all-to-alls trade shares of the tokens for shares of the heads and back (DeepSpeed Ulysses), or keys and values are
/// gathered during attention to the rank's own block and read block by block (PyTorch's context_parallel).
enum class ContextExchange : std::uint8_t { ring, all_gather, ulysses, gathered_blocks };
/// Which tokens an expert drops beyond its capacity: those with the lowest probability, or the last ones.
enum class TokenDrop : std::uint8_t { probs, position };
/// GEMMs of a rank's experts: one for each expert, on its own tokens (Transformer Engine's GroupedLinear); or one
/// batched GEMM of experts that are all padded to their capacity.
enum class ExpertGemm : std::uint8_t { grouped, batched };

/// How replicas get the sum of a weight's gradients: they sum them; or they gather the sufficient factors of all
/// replicas, inputs X and gradients of outputs dY, and each computes the sum of X^T dY itself (Xie et al. 2014; Zhang
/// et al. 2023, TAG, which calls it SFB); or by weight whatever brings a replica fewer bytes.
enum class GradientExchange : std::uint8_t { sums, factors, cheapest };

struct Strategy {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;   // follows from the number of GPUs; never given by the user
  std::int64_t cp = 1;   // context parallel: ranks that share the tokens of a sample
  std::int64_t ep = 1;   // expert parallel: ranks that share a layer's experts, out of those of a stage
  std::int64_t etp = 1;  // expert tensor parallel: ranks that one expert is sharded over; divides tp
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;
  std::int64_t virtual_stages = 1;  // model chunks per pipeline rank, as the schedule requires
  ScheduleKind schedule{};
  std::shared_ptr<const WrittenSchedule> written = nullptr;  // contents of schedule_file, for the schedule `written`
  LayerSplit split = LayerSplit::even;
  std::vector<std::int64_t> stage_layers = {};  // layers of each virtual stage; empty: as `split` distributes them
  std::int64_t empty_layers = 0;                // layers without cost, behind the model's own
  Recompute recompute = Recompute::none;
  Modules recompute_modules = 0;                          // a set of workload::recompute
  std::int64_t recompute_layers = 0;                      // first layers of each chunk that recompute; 0: all
  std::int64_t recompute_stages = 0;                      // first pipeline ranks that recompute; 0: all
  std::vector<std::int64_t> stage_recompute_layers = {};  // first layers of each virtual stage that recompute; or empty
  Modules offload_modules = 0;                            // a set of workload::offload
  std::int64_t offload_layers = 0;  // first layers of each chunk, and first pipeline ranks, that offload; 0: all
  std::int64_t offload_stages = 0;
  bool sequence_parallel = false;
  Modules data_parts = 0;                       // a set of workload::data_part: data-parallel over tensor ranks
  std::int64_t zero = 0;                        // ZeRO stage
  std::int64_t zero_group = 0;                  // replicas of one sharding group; 0: all
  std::int64_t bucket_parameters = 40'000'000;  // parameters of one gradient bucket (Megatron's ddp-bucket-size)
  bool overlap_grad_reduce = true;              // buckets are reduced during the backward pass
  GradientExchange gradient_exchange = GradientExchange::sums;
  Modules factor_weights = 0;  // a set of workload::factor_weight, of those that exchange factors; none: all
  ContextExchange cp_comm = ContextExchange::ring;
  double capacity_factor = 0;  // maximum rows of an expert over those of a balanced one; 0: nothing is dropped
  TokenDrop token_drop = TokenDrop::probs;
  bool pad_to_capacity = false;
  ExpertGemm expert_gemm = ExpertGemm::grouped;
  std::int64_t expert_recompute_tokens = 0;  // a rank whose experts get more recomputes their activations; 0: never
  bool hot_experts = false;                  // every rank has copies of the experts for which copies pay (FasterMoE)
  double hot_expert_spread = 0;              // no copies below this standard deviation of the load over its mean
  double hot_expert_tflops = 0;              // GPU and network speed that the rule for copies assumes
  double hot_expert_gbps = 0;
  Stack stack;

  /// Number of ranks of a stage that hold the same dense parameters, or the same experts, and sum their gradients.
  std::int64_t replicas() const { return dp * cp * stage_copies(); }
  std::int64_t expert_replicas() const { return tp * cp * dp * stage_copies() / (ep * etp); }
  /// Sharding groups of replicas, each of which holds everything once under ZeRO, and the ranks of one group.
  std::int64_t zero_groups() const { return zero_group > 0 ? replicas() / zero_group : 1; }
  std::int64_t shards() const { return replicas() / zero_groups(); }
  std::int64_t expert_shards() const { return expert_replicas() / zero_groups(); }
  /// Micro-batches of one pipeline in a step, and those that run through one chunk of a rank.
  std::int64_t micro_batches() const { return global_batch / (dp * micro_batch); }
  std::int64_t chunk_micro_batches() const { return micro_batches() / stage_copies(); }

  StagePlacement stage_placement() const {
    const ScheduleType& type = schedule_type(schedule);
    return type.chunks == ScheduleType::kAsWritten && written ? written->stage_placement : type.stage_placement;
  }
  Pipeline pipeline() const { return {pp, micro_batches(), virtual_stages, {}, written.get()}; }
  StageMap stages() const { return {stage_placement(), pp, virtual_stages}; }
  /// Number of pipeline ranks that hold the same virtual stage.
  std::int64_t stage_copies() const { return stage_placement() == StagePlacement::bidirectional ? 2 : 1; }
};

const OptionTable<Strategy>& strategy_options();

}  // namespace manyworlds::core::workload
