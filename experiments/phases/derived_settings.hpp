// What the kind of a phase decides of its experiments, whatever else is written.
#pragma once

#include <cstdint>

#include "experiments/phase_files/phase_settings.hpp"
#include "experiments/phase_files/phases_file.hpp"
#include "experiments/rollouts/decoding_grid.hpp"

namespace manyworlds::experiments::phases {

/// Returns what a step of training or scoring has.
DerivedSettings kind_settings(const Phase& phase, const WrittenSettings& written);

/// Returns the heads of keys and values that the model of a phase has before ranks get copies of them; 0: as many as
/// heads of queries.
std::int64_t written_key_heads(const WrittenSettings& written);

/// Returns what all passes of a rollout have. Where there are fewer heads of keys and values than tensor ranks, each
/// rank has a copy of one, as in vLLM (model_executor/models/llama.py: "we replicate the KV heads across multiple
/// tensor parallel GPUs"): the model then has as many of them as ranks.
DerivedSettings replica_settings(const Phase& phase, const WrittenSettings& written);

/// Returns what one pass of each of a rollout's replicas has: so many samples with so many tokens in their caches, and
/// `sequence` new ones.
DerivedSettings pass_settings(const Phase& phase, const WrittenSettings& written, std::int64_t replicas,
                              const DecodingPoint& point, std::int64_t sequence);

/// Throws InputError for settings that a rollout gives itself and may not, and for a cache that ranks would share.
void refuse_what_follows(const Phase& phase, const WrittenSettings& written);

/// Whether the document or --set say how decoding steps are launched; else it is by CUDA graphs, as engines do it.
bool says_graphs(const WrittenSettings& written);

}  // namespace manyworlds::experiments::phases
