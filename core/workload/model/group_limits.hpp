// Routers that first choose groups of experts for a token, and its experts among those of these groups alone:
// device-limited (DeepSeek-AI 2024, DeepSeek-V2, arXiv 2405.04434, section 2.2.2) and node-limited routing
// (DeepSeek-V3, arXiv 2412.19437, section 2.1.2); Megatron-LM, core/transformer/moe/moe_utils.py, group_limited_topk().
#pragma once

#include "core/workload/model/model.hpp"

namespace manyworlds::core::workload {

/// Whether a token's experts lie in fewer groups than there are.
bool limits_groups(const Model& model);

/// Returns in how many of `parts` equal parts of the experts a token's experts are, averaged over all choices: every
/// set of groups_per_token groups is as likely as any other, and so is every set of experts_per_token experts of these
/// groups. Groups and parts are runs of consecutive experts; the one may be larger than the other, and need not divide
/// it. The model's router must limit groups.
double mean_parts_reached_in_groups(const Model& model, std::int64_t parts);

}  // namespace manyworlds::core::workload
