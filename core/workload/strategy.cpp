// The option table of a parallel strategy. dp is no option: it follows from the GPUs.
#include "core/workload/strategy.hpp"

namespace manyworlds::core::workload {

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
      option("virtual_stages", &Strategy::virtual_stages, "model chunks per pipeline rank; > 1 needs interleaved",
             {1, 1'024}),
      choice("schedule", &Strategy::schedule, {"gpipe", "1f1b", "interleaved"}, "pipeline schedule"),
      choice(
          "split", &Strategy::split, {"even", "light_ends", "light_last"},
          "layers of the pp x virtual_stages chunks: as many in each; one fewer in the first and the last, which have "
          "embedding and head; or as many as fit evenly, the last taking what is left"),
      choice("recompute", &Strategy::recompute, {"none", "selective", "full"},
             "activations computed again in the backward pass; selective: the attention core"),
      option("sequence_parallel", &Strategy::sequence_parallel,
             "norms and dropouts are cut along the sequence over the tensor-parallel group"),
      option("zero", &Strategy::zero,
             "ZeRO stage: 1 cuts the optimizer states over the replicas, 2 the gradients too, 3 (FSDP) the parameters "
             "too, which are gathered layer by layer",
             {0, 3}),
      option("bucket_parameters", &Strategy::bucket_parameters,
             "parameters of one gradient bucket; zero 3 takes layers instead", {1, 1'000'000'000'000}, "parameters"),
      option("overlap_grad_reduce", &Strategy::overlap_grad_reduce, "gradients leave while the backward pass goes on"),
  };
  return table;
}

}  // namespace manyworlds::core::workload
