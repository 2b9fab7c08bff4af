// The option table of a parallel strategy. dp is not an option: it follows from the number of GPUs.
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {
namespace {

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleType& type : schedules()) names.push_back(type.name);
  return names;
}

}  // namespace

const OptionTable<Strategy>& strategy_options() {
  static const OptionTable<Strategy> table{
      option("tp", &Strategy::tp, "tensor-parallel size", {1, 1'024}),
      option("pp", &Strategy::pp, "pipeline-parallel size", {1, 1'024}),
      option("cp", &Strategy::cp, "context-parallel size: ranks that share the tokens of a sample", {1, 1'024}),
      option("ep", &Strategy::ep, "expert-parallel size: ranks of a stage that share a layer's experts", {1, 131'072}),
      option("etp", &Strategy::etp, "expert tensor-parallel size: ranks that an expert is sharded over; divides tp",
             {1, 1'024}),
      option("micro_batch", &Strategy::micro_batch, "samples of one micro-batch", {1, 65'536}),
      option("global_batch", &Strategy::global_batch, "samples of one step over all replicas", {1, 16'777'216}),
      option("virtual_stages", &Strategy::virtual_stages,
             "model chunks per pipeline rank: two or more for interleaved, 2 for V-shaped schedules and DualPipe",
             {1, 1'024}),
      choice("schedule", &Strategy::schedule, schedule_names(), "pipeline schedule"),
      choice(
          "split", &Strategy::split,
          {"even", "light_ends", "light_last", "by_cost", "by_parameters", "by_time", "by_memory"},
          "distribution of layers over the pp x virtual_stages chunks. even: the same number in each; light_ends: "
          "one fewer in the first and the last, which have embedding and head; light_last: the last chunk has the "
          "remaining layers; by_cost: layers and head in order, each chunk until its share of their weights is "
          "passed (nanotron); by_parameters, by_time, by_memory: the largest chunk has as few parameters (DeepSpeed), "
          "takes as little modelled time forward and backward, or needs as little memory on its rank as can be"),
      integer_list("stage_layers", &Strategy::stage_layers,
                   "layers of each of the pp x virtual_stages virtual stages (dualpipe: pp), in model order; none: as "
                   "split distributes them",
                   {0, 1'000'000}),
      option("empty_layers", &Strategy::empty_layers,
             "layers without cost after the model's own, so that all virtual stages can have the same number of layers",
             {0, 1'000'000}, "layers"),
      choice("recompute", &Strategy::recompute, {"none", "selective", "full", "per_op"},
             "activations recomputed in the backward pass; selective: the attention core; per_op: all but the "
             "attention core and, in 16 bits, every other GEMM (torchtitan's selective_ac_option op)"),
      flag_list("recompute_modules", &Strategy::recompute_modules, recompute_module_names(),
                "modules of a layer that are recomputed in the backward pass (Megatron-Core's recompute_modules); "
                "layernorm, mla_up_proj, mlp_act and moe_act drop their outputs, the others save only their inputs"),
      option("recompute_layers", &Strategy::recompute_layers,
             "number of first layers of each chunk to which recompute and recompute_modules apply (Megatron-LM's block "
             "method); 0: all",
             {0, 1'000'000}, "layers"),
      option("recompute_stages", &Strategy::recompute_stages,
             "number of first pipeline ranks to which recompute and recompute_modules apply; 0: all", {0, 1'024},
             "stages"),
      integer_list("stage_recompute_layers", &Strategy::stage_recompute_layers,
                   "numbers of first layers of each of the pp x virtual_stages virtual stages (dualpipe: pp), in model "
                   "order, to which recompute and recompute_modules apply; none: as recompute_layers and "
                   "recompute_stages say",
                   {0, 1'000'000}),
      flag_list(
          "offload_modules", &Strategy::offload_modules, offload_module_names(),
          "parts of a layer whose inputs are in the host's memory between forward and backward pass (Megatron-Core's "
          "offload_modules)"),
      option("offload_layers", &Strategy::offload_layers,
             "number of first layers of each chunk to which offload_modules applies; 0: all", {0, 1'000'000}, "layers"),
      option("offload_stages", &Strategy::offload_stages,
             "number of first pipeline ranks to which offload_modules applies; 0: all", {0, 1'024}, "stages"),
      option("sequence_parallel", &Strategy::sequence_parallel,
             "norms and dropouts are sharded along the sequence over the tensor-parallel group"),
      flag_list("data_parts", &Strategy::data_parts, data_part_names(),
                "parts of a layer that tensor-parallel ranks share out by samples: each has all of their weights and a "
                "share of every micro-batch, as under data parallelism, while they shard all other weights"),
      option("zero", &Strategy::zero,
             "ZeRO stage: 1 shards the optimizer states over the replicas, 2 also the gradients, 3 (FSDP) also the "
             "parameters, which are gathered layer by layer",
             {0, 3}),
      option("zero_group", &Strategy::zero_group,
             "replicas of one ZeRO sharding group; each group holds everything, and groups all-reduce their gradient "
             "shards (HSDP); 0: all replicas",
             {0, 131'072}),
      option("bucket_parameters", &Strategy::bucket_parameters,
             "parameters of one gradient bucket; with zero 3 each layer is one bucket", {1, 1'000'000'000'000},
             "parameters"),
      option("overlap_grad_reduce", &Strategy::overlap_grad_reduce, "gradients are reduced during the backward pass"),
      choice("gradient_exchange", &Strategy::gradient_exchange, {"sums", "factors", "cheapest"},
             "how replicas get the gradients of a layer's weights: they sum them; or they all-gather the sufficient "
             "factors, inputs and gradients of outputs, and each computes the sum (factors, TAG's SFB); or by weight "
             "whatever brings a replica fewer bytes (cheapest)"),
      flag_list("factor_weights", &Strategy::factor_weights, factor_weight_names(),
                "weights of each layer whose factors gradient_exchange factors exchanges; qkv_linear: every linear "
                "layer before the attention core; none: all four"),
      choice("cp_comm", &Strategy::cp_comm, {"ring", "all_gather", "ulysses", "gathered_blocks"},
             "what context-parallel ranks exchange: keys and values around a ring (Megatron-LM's cp-comm-type p2p), or "
             "all-gathered before attention (all_gather), or tokens for heads by all-to-alls (ulysses, a2a), or keys "
             "and values all-gathered during the first block, then read block by block (gathered_blocks, PyTorch)"),
      option("capacity_factor", &Strategy::capacity_factor,
             "maximum rows of an expert over the rows of a balanced one; 0: nothing is dropped", {0, 1'000}),
      choice("token_drop", &Strategy::token_drop, {"probs", "position"},
             "which tokens an expert drops beyond its capacity: those of the lowest probability, or the last ones"),
      option("pad_to_capacity", &Strategy::pad_to_capacity, "experts below their capacity receive empty rows up to it"),
      choice("expert_gemm", &Strategy::expert_gemm, {"grouped", "batched"},
             "GEMMs of a rank's experts: one for each, of its own tokens; or one of all, padded to capacity"),
      option("expert_recompute_tokens", &Strategy::expert_recompute_tokens,
             "a rank whose experts get more rows of a micro-batch than this in a layer saves only their inputs and "
             "recomputes them in the backward pass; 0: never",
             {0, 1'000'000'000'000}, "tokens"),
      option("hot_experts", &Strategy::hot_experts,
             "every rank has copies of the experts whose tokens take longer to send and compute than the copies "
             "(FasterMoE's shadow experts)"),
      option("hot_expert_spread", &Strategy::hot_expert_spread,
             "no copies in layers whose experts' loads have a standard deviation below this share of their mean",
             {0, 1'000}),
      option("hot_expert_tflops", &Strategy::hot_expert_tflops,
             "compute rate of a GPU that the rule for copies assumes; 0: matrix_tflops x gemm_efficiency", {0, 1e6},
             "TFLOP/s"),
      option("hot_expert_gbps", &Strategy::hot_expert_gbps,
             "network rate of a GPU that the rule for copies assumes; 0: nic_gbps", {0, 1e6}, "Gb/s"),
  };
  return table;
}

}  // namespace manyworlds::core::workload
