#include "experiments/torchtitan/stages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/shell/arithmetic.hpp"

namespace manyworlds::experiments::jobs::torchtitan {
namespace {

/// Returns N of "layers.N".
std::optional<std::int64_t> layer_of(const std::string& module) {
  constexpr std::string_view kPrefix = "layers.";
  return module.starts_with(kPrefix) ? shell::integer_of(module.substr(kPrefix.size())) : std::nullopt;
}

}  // namespace

std::vector<std::int64_t> stage_layers(const StageSplit& split, std::string& why) {
  const auto& [layers, stages, less_first, less_last] = split;
  if (stages == 1) return {layers};
  const std::int64_t counted = layers + less_first + less_last, each = counted / stages, more = counted % stages;
  if (each == 0)
    why = fmt::format("{} stages are more than {} layers, embedding and head counted", stages, counted);
  else if (less_first > each || less_last > each)
    why = fmt::format("embedding and head count as {} and {} layers, of which a stage has {}", less_first, less_last,
                      each);
  if (!why.empty()) return {};
  std::vector<std::int64_t> result;
  std::int64_t left = layers;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::int64_t less = stage == 0 ? less_first : stage == stages - 1 ? less_last : 0;
    result.push_back(std::clamp<std::int64_t>(each + (stage < more ? 1 : 0) - less, 0, left));
    left -= result.back();
  }
  return result;
}

std::optional<std::vector<std::int64_t>> stage_layers_of_modules(const std::vector<std::vector<std::string>>& parts,
                                                                 std::int64_t layers) {
  std::vector<std::int64_t> result;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t before = next;
    for (const std::string& module : parts[i]) {
      if (const auto layer = layer_of(module)) {
        if (*layer != next++) return std::nullopt;
      } else if (!(module == "tok_embeddings" && i == 0) &&
                 !((module == "norm" || module == "output" || module == "lm_head") && i + 1 == parts.size())) {
        return std::nullopt;
      }
    }
    result.push_back(next - before);
  }
  return next == layers ? std::optional(result) : std::nullopt;
}

std::vector<std::vector<std::string>> modules_of_stages(const std::vector<std::int64_t>& layers) {
  std::vector<std::vector<std::string>> parts(layers.size());
  std::int64_t next = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i == 0) parts[i].push_back("tok_embeddings");
    for (std::int64_t layer = 0; layer < layers[i]; ++layer) parts[i].push_back(fmt::format("layers.{}", next++));
    if (i + 1 == layers.size()) parts[i].insert(parts[i].end(), {"norm", "output"});
  }
  return parts;
}

std::optional<std::vector<std::int64_t>> stage_layers_of_points(const std::vector<std::string>& points,
                                                                std::int64_t layers) {
  std::vector<std::int64_t> result;
  std::int64_t before = 0;
  for (const std::string& point : points) {
    const auto layer = layer_of(point);
    if (!layer || *layer < before || *layer > layers) return std::nullopt;
    result.push_back(*layer - before);
    before = *layer;
  }
  result.push_back(layers - before);
  return result;
}

}  // namespace manyworlds::experiments::jobs::torchtitan
