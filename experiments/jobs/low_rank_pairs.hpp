// Pairs of low rank beside frozen weights (LoRA), as jobs ask for them: a rank, and the modules that have one, by the
// names of Megatron-Core or of Hugging Face's models.
#pragma once

#include <string>
#include <vector>

#include "experiments/jobs/job.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::jobs {

struct LowRankPairs {
  Text rank;                  // a whole number; no text: there are no pairs
  std::vector<Text> modules;  // names, or patterns with * before the end of a name
  bool magnitudes = false;    // norms of weights are trained too (DoRA)
};

enum class ModuleNames : std::uint8_t { megatron, hugging_face };

/// Returns the words of a list, or of a text in which they stand between commas, with or without brackets. Throws
/// InputError at a node that is neither, as `name`.
std::vector<Text> module_words(const std::string& name, const import::Node& node);

/// Returns the modules of Megatron-Core's LoRA by default, or, as CanonicalLoRA has them, those of each projection.
std::vector<Text> megatron_modules(bool canonical, const Place& place);

/// Sets model.lora_rank, model.lora_weights and, with magnitudes, model.lora_magnitudes of a job whose model is known.
/// Modules with Hugging Face's names are linear layers of their own, so that a job with pairs beside projections has no
/// projection_fusion. Throws InputError at the place of a rank that is no whole number from 1 on, and of a module that
/// is no linear layer of attention or of a feed-forward network, with those that are.
void put_pairs(Job& job, const LowRankPairs& pairs, ModuleNames names);

}  // namespace manyworlds::experiments::jobs
