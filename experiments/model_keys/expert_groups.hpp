// Groups of experts among which a router chooses first, in the words of DeepSeek-V2's and DeepSeek-V3's configurations,
// which their relatives share (Kimi K2, GLM-4.5, dots.llm1, Ling, Nemotron 3).
#pragma once

#include "experiments/model_keys/config_reader.hpp"

namespace manyworlds::experiments::models {

/// Sets expert_groups and groups_per_token from n_group and topk_group of a model whose experts were read. Nothing is
/// set where n_group is 1, or where topk_method is greedy, which takes the best of all experts. Throws InputError at a
/// key whose number does not go with the others.
void read_expert_groups(ConfigReader& reader);

}  // namespace manyworlds::experiments::models
