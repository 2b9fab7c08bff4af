// How torchtitan splits layers over pipeline stages: pytorch/torchtitan v0.2.2,
// torchtitan/distributed/pipeline_parallel.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace manyworlds::experiments::jobs::torchtitan {

/// What stages follow from: `less_first` and `less_last` are the layers that embedding and head count as.
struct StageSplit {
  std::int64_t layers = 0, stages = 1, less_first = 1, less_last = 1;
};

/// Returns the layers of each stage (generate_llm_fqn_per_model_part); empty with a reason in `why` if torchtitan
/// refuses.
std::vector<std::int64_t> stage_layers(const StageSplit& split, std::string& why);

/// Returns the layers of each stage of lists of modules by name, [["tok_embeddings", "layers.0"], …]: none if they are
/// not all layers in order, the embedding first and the head last.
std::optional<std::vector<std::int64_t>> stage_layers_of_modules(const std::vector<std::vector<std::string>>& parts,
                                                                 std::int64_t layers);

/// Returns the names of the modules of stages with so many layers.
std::vector<std::vector<std::string>> modules_of_stages(const std::vector<std::int64_t>& layers);

/// Returns the layers of each stage if stages begin at layers such as "layers.4"; none if there is no such layer.
std::optional<std::vector<std::int64_t>> stage_layers_of_points(const std::vector<std::string>& points,
                                                                std::int64_t layers);

}  // namespace manyworlds::experiments::jobs::torchtitan
