// What each argument that Megatron-DeepSpeed has beyond Megatron-LM's means here.
#pragma once

#include "experiments/jobs/known_names.hpp"

namespace manyworlds::experiments::jobs::deepspeed {

const KnownNames& known_arguments();

/// Returns whether an argument counts only with experts.
bool is_of_experts(const std::string& name);

}  // namespace manyworlds::experiments::jobs::deepspeed
