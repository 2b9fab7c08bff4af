#include "core/workload/model/modules.hpp"

namespace manyworlds::core::workload {

const std::vector<std::string>& recompute_module_names() {
  static const std::vector<std::string> names{"core_attn", "layernorm", "mla_up_proj",    "mlp_act",
                                              "mlp",       "moe_act",   "shared_experts", "moe"};
  return names;
}

const std::vector<std::string>& offload_module_names() {
  static const std::vector<std::string> names{"attn_norm",  "qkv_linear", "core_attn", "attn_proj",
                                              "mlp_norm",   "mlp_fc1",    "mlp_act",   "mlp_fc2",
                                              "expert_fc1", "moe_act",    "expert_fc2"};
  return names;
}

const std::vector<std::string>& factor_weight_names() {
  static const std::vector<std::string> names{"qkv_linear", "attn_proj", "mlp_fc1", "mlp_fc2"};
  return names;
}

const std::vector<std::string>& data_part_names() {
  static const std::vector<std::string> names{"attention", "feed_forward", "mixer"};
  return names;
}

const std::vector<std::string>& lora_weight_names() {
  static const std::vector<std::string> names{"linear_qkv", "linear_proj",     "linear_fc1",
                                              "linear_fc2", "linear_q",        "linear_k",
                                              "linear_v",   "linear_fc1_gate", "linear_fc1_up"};
  return names;
}

}  // namespace manyworlds::core::workload
