#include "farm/search_space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"

namespace manyworlds::farm {
namespace {

using experiments::CatalogEntry;
using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kLongSequence = 8'192;  // tokens of a sample that one rank is left with, at least
constexpr std::int64_t kMostStages = 64;

const CatalogEntry& entry_of(const experiments::Catalog& catalog, const char* kind, const std::string& name,
                             const std::string& word) {
  experiments::import::Node at;
  at.file = std::make_shared<const std::string>(word);
  return catalog.find(kind, name, at);
}

std::int64_t figure(const CatalogEntry& entry, const std::string& name, std::int64_t otherwise) {
  const auto found = entry.figures.find(name);
  return found == entry.figures.end() ? otherwise : std::get<std::int64_t>(found->second.value);
}

/// Divisors of `whole`, ascending, at most `most`, that `fits` says yes to.
template <class Fits>
Sizes divisors(std::int64_t whole, std::int64_t most, const Fits& fits) {
  Sizes made;
  for (std::int64_t size = 1; size <= std::min(whole, most); ++size)
    if (whole % size == 0 && fits(size)) made.push_back(size);
  return made;
}

Sizes powers_of_two(std::int64_t most) {
  Sizes made;
  for (std::int64_t size = 1; size <= std::max<std::int64_t>(most, 1); size *= 2) made.push_back(size);
  return made;
}

std::string axis(const char* key, const Sizes& sizes) {
  return fmt::format("  strategy.{}: [{}]\n", key, fmt::join(sizes, ", "));
}

}  // namespace

SearchSpace search_space(const SearchWords& words, const experiments::Catalog& catalog) {
  const CatalogEntry& model = entry_of(catalog, "models", words.model, "--model");
  const CatalogEntry& cluster = entry_of(catalog, "clusters", words.cluster, "--cluster");
  const std::int64_t nodes = words.nodes.value_or(figure(cluster, "nodes", 1));
  const std::int64_t per_node = figure(cluster, "gpus_per_node", 8), gpus = nodes * per_node;
  const std::int64_t layers = figure(model, "layers", 0), heads = figure(model, "heads", 0);
  const std::int64_t kv_heads = figure(model, "kv_heads", heads), experts = figure(model, "experts", 0);
  const std::int64_t sequence = words.sequence.value_or(figure(model, "sequence", 0));
  for (const auto& [name, value] : {std::pair("layers", layers), std::pair("heads", heads)})
    if (value == 0) throw core::InputError(fmt::format("'{}' of {} is in no catalog", name, words.model), "--model");
  if (sequence == 0)
    throw core::InputError(fmt::format("{} has no sequence of its own; give one", words.model), "--sequence");
  const std::int64_t batch = words.global_batch.value_or(gpus);

  const Sizes tp = divisors(per_node, per_node, [&](std::int64_t t) { return heads % t == 0 && kv_heads % t == 0; });
  std::vector<const char*> parallel;
  for (const std::int64_t size : tp) parallel.push_back(size > 1 ? "true" : "false");
  std::string axes = axis(
      "pp", divisors(layers, std::min(gpus, kMostStages), [&](std::int64_t stages) { return gpus % stages == 0; }));
  if (sequence > kLongSequence) axes += axis("cp", powers_of_two(sequence / kLongSequence));
  axes += axis("micro_batch", powers_of_two(std::min<std::int64_t>(8, batch)));
  axes += "  strategy.recompute: [none, selective, full]\n";
  std::string where = "where:\n  - 'strategy.pp > 1 or strategy.schedule == \"1f1b\"'\n";
  if (experts > 0) {
    axes += axis("ep", divisors(experts, gpus, [&](std::int64_t size) { return gpus % size == 0; }));
    axes += axis("etp", tp);
    axes += "  strategy.stack.dispatcher: [all_to_all, hybrid_ep]\n";
    where += "  - strategy.etp == 1 or strategy.etp == strategy.tp\n";
    where += "  - 'strategy.ep > 1 or strategy.stack.dispatcher == \"all_to_all\"'\n";
  }
  std::vector<std::string> schedules{"1f1b", "zb_h1"};
  Sizes chunks{1, 1};
  for (const std::int64_t of : {2, 4})
    if (layers % (2 * of) == 0) schedules.emplace_back("interleaved"), chunks.push_back(of);
  if (layers % 4 == 0)
    for (const char* folded : {"zb_v", "dualpipev"}) schedules.emplace_back(folded), chunks.push_back(2);

  SearchSpace made;
  const auto gpu = cluster.figures.find("gpu");
  made.name = fmt::format("{}-on-{}-{}", words.model, gpus,
                          gpu == cluster.figures.end() ? words.cluster : std::get<std::string>(gpu->second.value));
  made.yaml = fmt::format(
      "# Layouts of {} on {}: the search `manyworlds search` makes of it.\n"
      "name: {}\n"
      "base:\n"
      "  model: {{like: {}, sequence: {}}}\n"
      "  cluster: {{like: {}, nodes: {}}}\n"
      "  topology: {}\n"
      "  fidelity: analytic\n"
      "  strategy: {{global_batch: {}, stack: {{like: {}}}}}\n"
      "axes:\n{}"
      "zip:\n"
      "  - {{strategy.tp: [{}], strategy.sequence_parallel: [{}]}}\n"
      "  - {{strategy.schedule: [{}], strategy.virtual_stages: [{}]}}\n"
      "  - {{strategy.zero: [0, 1, 3], strategy.stack.overlap_parameters: [false, true, false]}}\n"
      "{}"
      "objective: tokens_per_s_per_gpu\n",
      words.model, words.cluster, made.name, words.model, sequence, words.cluster, nodes, words.topology, batch,
      words.stack, axes, fmt::join(tp, ", "), fmt::join(parallel, ", "), fmt::join(schedules, ", "),
      fmt::join(chunks, ", "), where);
  return made;
}

std::string with_sample(const std::string& yaml, std::int64_t experiments, std::int64_t seed) {
  return yaml + fmt::format("sample: {{experiments: {}, seed: {}}}\n", experiments, seed);
}

}  // namespace manyworlds::farm
