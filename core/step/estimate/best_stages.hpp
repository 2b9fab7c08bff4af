// The best of all ways to deal out a model's layers to the ranks of a pipeline, and to recompute some of each rank's: a
// lower bound of them all, and one that has it. Memory ties the two: what does not fit recomputes, which takes time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/step/estimate/rank_work.hpp"
#include "core/step/layout/configuration.hpp"
#include "core/step/layout/memory_requirement.hpp"

namespace manyworlds::core::step {

/// What is chosen for each pipeline rank. The layers of a rank with several chunks, and those of them that recompute,
/// are dealt out to its chunks as equally as they can, the first chunks getting one more.
struct StageChoices {
  bool layers = false;     // Strategy::stage_layers
  bool recompute = false;  // Strategy::stage_recompute_layers, if recompute or recompute_modules names something

  bool any() const { return layers || recompute; }
};

/// Of all configurations that a bound stands for, the one that needs least memory, and parts of its footprints that
/// another may do without.
struct LeastMemory {
  Configuration configuration;
  std::vector<std::int64_t memory::Footprint::*> uncounted;

  bool fits(const MemoryRequirement& requirement) const;
};

struct BestStages {
  Time bound_ps = 0;  // no step falls below it, whatever is chosen
  /// By virtual stage, in the order of the model: a choice that comes close to the bound. Empty: as in the
  /// configuration.
  std::vector<std::int64_t> stage_layers, stage_recompute_layers;
};

/// How many layers a rank of a pipeline may have.
struct LayerRange {
  std::int64_t least = 0, most = 0;
};

/// Returns them by rank: at least one layer for each of its chunks, but for a first or last stage with embedding or
/// head alone; where layers are not chosen, those that the strategy gives it.
std::vector<LayerRange> layer_ranges(const workload::Model& model, const workload::Strategy& strategy,
                                     const StageChoices& choices);

/// Returns by virtual stage what ranks have together, as equally as StageChoices says.
std::vector<std::int64_t> dealt_to_stages(const workload::Strategy& strategy, const std::vector<std::int64_t>& by_rank);

/// Returns why nothing can be chosen for the ranks of such a pipeline, for people; empty if it can.
std::string why_stages_are_fixed(const workload::Model& model, const workload::Strategy& strategy);

/// Returns how many choices there are, whether they fit or not.
double count_of_choices(const Configuration& configuration, const StageChoices& choices);

/// Returns the least time, in picoseconds, that a step takes at least with any choice that fits; nullopt if none does.
/// Every rank computes m micro-batches, after the first has passed the stages before and until the last has come back
/// through them (LowerBounds has the same sums); the choice for one rank decides how many layers are left to those
/// behind, and what passes through it take, so that all are found rank by rank (dynamic programming over the layers
/// dealt out, as AdaPipe does: Sun et al., ASPLOS 2024, section 5). A rank recomputes as few layers as let it fit:
/// fewer do not, and more take longer. `memory` is what must fit, `times` what takes least: they are one, unless keys
/// are open. Stages must not be fixed.
std::optional<BestStages> best_stages(const Configuration& times, const LeastMemory& memory,
                                      const StageChoices& choices, const Links& links,
                                      Replicas replicas = Replicas::counted);

}  // namespace manyworlds::core::step
