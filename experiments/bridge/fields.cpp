#include "experiments/bridge/fields.hpp"

#include <algorithm>

namespace manyworlds::experiments::jobs {

const std::vector<BridgeField>& bridge_fields() {
  // scripts/translate_mlm_to_bridge.py and src/megatron/bridge/recipes/gpt/h100/vanilla_gpt.py there; what the recipe
  // has otherwise are the defaults of Megatron-Core's TransformerConfig, of which Megatron-LM's arguments invert some.
  static const std::vector<BridgeField> fields{
      {"num-experts", "model.num_moe_experts"},
      {"num-virtual-stages-per-pipeline-rank", "model.virtual_pipeline_model_parallel_size"},
      {"microbatch-group-size-per-virtual-pipeline-stage", "model.microbatch_group_size_per_vp_stage"},
      {"decoder-first-pipeline-num-layers", "model.num_layers_in_first_pipeline_stage"},
      {"decoder-last-pipeline-num-layers", "model.num_layers_in_last_pipeline_stage"},
      {"disable-bias-linear", "model.add_bias_linear", true, "true"},
      {"untie-embeddings-and-output-weights", "model.share_embeddings_and_output_weights", true, "true"},
      {"no-rope-fusion", "model.apply_rope_fusion", true},
      {"no-bias-dropout-fusion", "model.bias_dropout_fusion", true},
      {"no-gradient-accumulation-fusion", "model.gradient_accumulation_fusion", true, "true"},
      {"no-overlap-p2p-communication", "model.overlap_p2p_comm", true},
      {"no-masked-softmax-fusion", "model.masked_softmax_fusion", true, "true"},
      {"cross-entropy-loss-fusion", "model.cross_entropy_loss_fusion", false, "true"},
      {"padded-vocab-size", "model.vocab_size"},
      {"norm-epsilon", "model.layernorm_epsilon"},
      {"rotary-seq-len-interpolation-factor", "model.seq_len_interpolation_factor"},
      {"use-rope-scaling", "model.rope_scaling"},
      {"micro-batch-size", "train.micro_batch_size", false, "2"},
      {"global-batch-size", "train.global_batch_size", false, "32"},
      {"seq-length", "dataset.seq_length", false, "1024"},
      {"tokenizer-type", "tokenizer.tokenizer_type", false, "NullTokenizer"},
      {"tokenizer-model", "tokenizer.tokenizer_model"},
      {"vocab-size", "tokenizer.vocab_size", false, "32000"},
      {"overlap-grad-reduce", "ddp.overlap_grad_reduce"},
      {"overlap-param-gather", "ddp.overlap_param_gather"},
      {"use-distributed-optimizer", "ddp.use_distributed_optimizer"},
      {"use-megatron-fsdp", "ddp.use_megatron_fsdp"},
      {"data-parallel-sharding-strategy", "ddp.data_parallel_sharding_strategy"},
      {"num-distributed-optimizer-instances", "ddp.num_distributed_optimizer_instances"},
      {"ddp-bucket-size", "ddp.bucket_size"},
      {"no-check-for-nan-in-loss-and-grad", "ddp.check_for_nan_in_grad", true, "true"},
      {"ckpt-format", "checkpoint.ckpt_format", false, "torch_dist"},
  };
  return fields;
}

std::string field_of(const std::string& argument) {
  for (const BridgeField& one : bridge_fields())
    if (one.argument == argument) return one.field;
  std::string name = argument;
  std::replace(name.begin(), name.end(), '-', '_');
  return "model." + name;
}

}  // namespace manyworlds::experiments::jobs
