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
      option("etp", &Strategy::etp, "expert tensor-parallel size: ranks that an expert is cut over; divides tp",
             {1, 1'024}),
      option("micro_batch", &Strategy::micro_batch, "samples of one micro-batch", {1, 65'536}),
      option("global_batch", &Strategy::global_batch, "samples of one step over all replicas", {1, 16'777'216}),
      option("virtual_stages", &Strategy::virtual_stages,
             "model chunks per pipeline rank: two or more for interleaved, 2 for V-shaped schedules and DualPipe",
             {1, 1'024}),
      choice("schedule", &Strategy::schedule, schedule_names(), "pipeline schedule"),
      choice(
          "split", &Strategy::split, {"even", "light_ends", "light_last"},
          "layers of the pp x virtual_stages chunks: as many in each; one fewer in the first and the last, which have "
          "embedding and head; or as many as fit evenly, the last taking what is left"),
      integer_list(
          "section_layers", &Strategy::section_layers,
          "layers of each of the pp x virtual_stages sections (dualpipe: pp), in the order of the model; none: as "
          "split has it",
          {0, 1'000'000}),
      option("empty_layers", &Strategy::empty_layers,
             "layers behind the model's own that cost nothing, so that sections can be alike", {0, 1'000'000},
             "layers"),
      choice("recompute", &Strategy::recompute, {"none", "selective", "full"},
             "activations computed again in the backward pass; selective: the attention core"),
      flag_list(
          "recompute_modules", &Strategy::recompute_modules, recompute_module_names(),
          "parts of a layer that run forward again in the backward pass (Megatron-Core's recompute_modules); of "
          "layernorm, mla_up_proj, mlp_act and moe_act what comes out is dropped, of the others all but what goes "
          "in"),
      option("recompute_layers", &Strategy::recompute_layers,
             "layers that recompute and recompute_modules are of, the first of each chunk (Megatron-LM's block method);"
             " 0: all",
             {0, 1'000'000}, "layers"),
      option("recompute_stages", &Strategy::recompute_stages,
             "pipeline ranks that recompute and recompute_modules are of, the first ones; 0: all", {0, 1'024},
             "stages"),
      flag_list(
          "offload_modules", &Strategy::offload_modules, offload_module_names(),
          "parts of a layer whose inputs are in the host's memory between forward and backward pass (Megatron-Core's "
          "offload_modules)"),
      option("offload_layers", &Strategy::offload_layers,
             "layers that offload_modules is of, the first of each chunk; 0: all", {0, 1'000'000}, "layers"),
      option("offload_stages", &Strategy::offload_stages,
             "pipeline ranks that offload_modules is of, the first ones; 0: all", {0, 1'024}, "stages"),
      option("sequence_parallel", &Strategy::sequence_parallel,
             "norms and dropouts are cut along the sequence over the tensor-parallel group"),
      option("zero", &Strategy::zero,
             "ZeRO stage: 1 cuts the optimizer states over the replicas, 2 the gradients too, 3 (FSDP) the parameters "
             "too, which are gathered layer by layer",
             {0, 3}),
      option("zero_group", &Strategy::zero_group,
             "replicas among which ZeRO shares out; each group of so many holds everything, and groups add up their "
             "gradients share by share (HSDP); 0: all replicas",
             {0, 131'072}),
      option("bucket_parameters", &Strategy::bucket_parameters,
             "parameters of one gradient bucket; zero 3 takes layers instead", {1, 1'000'000'000'000}, "parameters"),
      option("overlap_grad_reduce", &Strategy::overlap_grad_reduce, "gradients leave while the backward pass goes on"),
      choice("cp_comm", &Strategy::cp_comm, {"ring", "all_gather", "ulysses"},
             "what context-parallel ranks exchange: keys and values round a ring (Megatron-LM's cp-comm-type p2p), or "
             "gathered before attention (all_gather), or tokens for heads by all-to-alls (ulysses, a2a)"),
      option("capacity_factor", &Strategy::capacity_factor,
             "rows that an expert takes at most over those of a balanced one; 0: nothing is dropped", {0, 1'000}),
      choice("token_drop", &Strategy::token_drop, {"probs", "position"},
             "which tokens an expert drops beyond its capacity: those of the lowest probability, or the last ones"),
      option("pad_to_capacity", &Strategy::pad_to_capacity,
             "experts below their capacity are sent empty rows up to it"),
      choice("expert_gemm", &Strategy::expert_gemm, {"grouped", "batched"},
             "GEMMs of a rank's experts: one for each, of its own tokens; or one of all, padded to capacity"),
      option("expert_recompute_tokens", &Strategy::expert_recompute_tokens,
             "a rank whose experts get more rows of a micro-batch than this in a layer keeps their inputs alone, and "
             "computes them again in the backward pass; 0: never",
             {0, 1'000'000'000'000}, "tokens"),
      option("hot_experts", &Strategy::hot_experts,
             "every rank has copies of those experts whose tokens take longer to travel and to compute than the copies "
             "(FasterMoE's shadow experts)"),
      option("hot_expert_spread", &Strategy::hot_expert_spread,
             "no copies in layers whose experts' loads have a standard deviation below this share of their mean",
             {0, 1'000}),
      option("hot_expert_tflops", &Strategy::hot_expert_tflops,
             "what the rule for copies takes a GPU to compute; 0: matrix_tflops x gemm_efficiency", {0, 1e6},
             "TFLOP/s"),
      option("hot_expert_gbps", &Strategy::hot_expert_gbps,
             "what it takes the network of one GPU to carry; 0: nic_gbps", {0, 1e6}, "Gb/s"),
  };
  return table;
}

}  // namespace manyworlds::core::workload
