// How a model is cut over ranks. Terms are Megatron-LM's: tensor (tp), pipeline (pp) and data parallel (dp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/options.hpp"
#include "core/workload/model/modules.hpp"
#include "core/workload/schedule/schedule.hpp"
#include "core/workload/schedule/sections.hpp"
#include "core/workload/schedule/written_schedule.hpp"
#include "core/workload/strategy/stack.hpp"

namespace manyworlds::core::workload {

enum class Recompute : std::uint8_t { none, selective, full };
/// Layers of the model's chunks: even: as many in each; light_ends: one fewer in the first and the last, where
/// embedding and head are (Megatron-LM's account-for-embedding- and -loss-in-pipeline-split); light_last: the last
/// takes what is left when the others are full.
enum class Split : std::uint8_t { even, light_ends, light_last };
/// How context-parallel ranks see each other's tokens: keys and values go round a ring, or are gathered before
/// attention, or all-to-alls turn shares of the tokens into shares of the heads and back (DeepSpeed Ulysses).
enum class ContextExchange : std::uint8_t { ring, all_gather, ulysses };
/// Which tokens an expert drops beyond its capacity: those of the lowest probability, or the last ones.
enum class TokenDrop : std::uint8_t { probs, position };
/// The GEMMs of a rank's experts: as many as there are experts, each of its own tokens (Transformer Engine's
/// GroupedLinear); or one batched GEMM of experts that all have their capacity.
enum class ExpertGemm : std::uint8_t { grouped, batched };

struct Strategy {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;   // follows from the GPUs; never given by the user
  std::int64_t cp = 1;   // context parallel: ranks that share the tokens of a sample
  std::int64_t ep = 1;   // expert parallel: ranks that share a layer's experts, out of those of a stage
  std::int64_t etp = 1;  // expert tensor parallel: ranks that one expert is cut over; divides tp
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;
  std::int64_t virtual_stages = 1;  // model chunks per pipeline rank, as many as the schedule has
  ScheduleKind schedule{};
  std::shared_ptr<const WrittenSchedule> written = nullptr;  // the file's, of the schedule `written`
  Split split = Split::even;
  std::vector<std::int64_t> section_layers = {};  // layers of each section; empty: as `split` has it
  std::int64_t empty_layers = 0;                  // that cost nothing, behind the model's own
  Recompute recompute = Recompute::none;
  Modules recompute_modules = 0;      // of workload::again
  std::int64_t recompute_layers = 0;  // of each chunk the first so many, which `recompute` and modules are of; 0: all
  std::int64_t recompute_stages = 0;  // of the pipeline ranks likewise
  Modules offload_modules = 0;        // of workload::away
  std::int64_t offload_layers = 0;    // which have them offloaded, as above
  std::int64_t offload_stages = 0;
  bool sequence_parallel = false;
  std::int64_t zero = 0;                        // ZeRO stage
  std::int64_t zero_group = 0;                  // replicas that share out among themselves; 0: all
  std::int64_t bucket_parameters = 40'000'000;  // gradient bucket, parameters (Megatron's ddp-bucket-size)
  bool overlap_grad_reduce = true;              // buckets leave while the backward pass goes on
  ContextExchange cp_comm = ContextExchange::ring;
  double capacity_factor = 0;  // rows of an expert over those of a balanced one, at most; 0: nothing is dropped
  TokenDrop token_drop = TokenDrop::probs;
  bool pad_to_capacity = false;
  ExpertGemm expert_gemm = ExpertGemm::grouped;
  std::int64_t expert_recompute_tokens = 0;  // a rank whose experts get more makes their activations again; 0: none
  bool hot_experts = false;                  // every rank has copies of the experts that pay for it (FasterMoE)
  double hot_expert_spread = 0;              // none below this standard deviation of the load over its mean
  double hot_expert_tflops = 0;              // what the rule for copies takes a GPU and its network to reach
  double hot_expert_gbps = 0;
  Stack stack;

  /// Ranks of a stage that hold the same dense parameters, or the same experts: gradients are added up over them.
  std::int64_t replicas() const { return dp * cp * copies(); }
  std::int64_t expert_replicas() const { return tp * cp * dp * copies() / (ep * etp); }
  /// Groups of replicas of which each has everything once under ZeRO, and the ranks of one.
  std::int64_t zero_groups() const { return zero_group > 0 ? replicas() / zero_group : 1; }
  std::int64_t shards() const { return replicas() / zero_groups(); }
  std::int64_t expert_shards() const { return expert_replicas() / zero_groups(); }
  /// Micro-batches that one pipeline runs in a step, and those of them that a chunk of a rank runs.
  std::int64_t micro_batches() const { return global_batch / (dp * micro_batch); }
  std::int64_t chunk_micro_batches() const { return micro_batches() / copies(); }

  Folding folding() const {
    const ScheduleType& type = schedule_type(schedule);
    return type.chunks == ScheduleType::kAsWritten && written ? written->folding : type.folding;
  }
  Pipeline pipeline() const { return {pp, micro_batches(), virtual_stages, {}, written.get()}; }
  Sections sections() const { return {folding(), pp, virtual_stages}; }
  /// Pipeline ranks that hold a section.
  std::int64_t copies() const { return folding() == Folding::mirror ? 2 : 1; }
};

const OptionTable<Strategy>& strategy_options();

}  // namespace manyworlds::core::workload
