// The sweep that a search stands for: every layout of a model on a cluster that is worth pricing, as a document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/settings/catalog.hpp"

namespace manyworlds::farm {

struct SearchWords {
  std::string model;
  std::string cluster;  // a name of the catalog; or, where it is empty, the catalog's cluster of `gpu`
  std::string gpu;
  std::string stack = "megatron-core";
  std::string topology = "rail_optimized";
  std::optional<std::int64_t> gpus;          // instead of nodes: whole ones, or fewer than one has
  std::optional<std::int64_t> nodes;         // default: as many as the cluster has
  std::optional<std::int64_t> global_batch;  // default: a sample for each GPU
  std::optional<std::int64_t> sequence;      // default: the model's
  bool all_schedules = false;                // also those that the stack does not offer
  std::vector<std::string> set;  // "key=value": what a key is, or, of one that is searched, the values tried
};

struct SearchSpace {
  std::string name;  // "mixtral-8x7b-on-1024-h100_sxm"
  std::string yaml;  // with everything that the words say
};

/// Sizes that divide what they cut (heads, layers, experts, GPUs), the schedules that the stack offers, recomputation,
/// ZeRO stages and, of models with experts, dispatchers; rules and `where` leave out what cannot be, or is another
/// layout under a second name. Fidelity analytic. Throws InputError for names that the catalog lacks, figures that it
/// needs, and values of searched keys that no layout of the space has.
SearchSpace search_space(const SearchWords& words, const experiments::Catalog& catalog);

/// `yaml` with a line that draws so many of its valid points.
std::string with_sample(const std::string& yaml, std::int64_t experiments, std::int64_t seed);

}  // namespace manyworlds::farm
