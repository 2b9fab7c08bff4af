// How sure a predicted step time is: 80 % intervals by split conformal prediction (Lei et al. 2018), from how far off
// published steps of the same GPU and kind were, each family predicted with constants fitted to the others. Families
// count alike, whatever their rows, since a new user is a new family. docs/model.md says what that does and does not
// mean.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/world.hpp"
#include "experiments/measured/residuals.hpp"
#include "experiments/settings/catalog.hpp"

namespace manyworlds::experiments {

/// dense, experts (a mixture of them), or sharded (parameters too: ZeRO 3, FSDP).
std::string layout_kind(const core::step::Configuration& configuration);

/// The GPU of the catalog in whose file the constants of `gpu`'s chip stand; itself where there is none such.
std::string chip_of(const Catalog& catalog, const std::string& gpu);

struct Interval {
  double low = 1, high = 1;  // of the step time, as factors of the predicted one; at most 1 and at least 1
  double told_apart = 1;     // ratio of the step times of two layouts of one choice from which on they are told apart
  std::string chip, kind;    // chip_of() the GPU and the layout_kind(): what is looked for among what was measured
  std::string basis;         // of what residuals
};

class Uncertainty {
 public:
  /// How much wider an interval is where no step of its GPU, its kind or its library was measured.
  static constexpr double kWidening = 1.5;
  static constexpr double kShare = 0.8;

  Uncertainty(std::vector<measured::Residuals> residuals, const Catalog& catalog)
      : residuals_(std::move(residuals)), catalog_(catalog) {}
  /// With the residuals and the catalog that are compiled in.
  static Uncertainty compiled();

  /// Of the step time of `world`, which is world_of(settings).
  Interval of(const Settings& settings, const World& world) const;

 private:
  bool constants_are_the_catalogs(const Settings& settings, const std::string& gpu) const;

  std::vector<measured::Residuals> residuals_;
  Catalog catalog_;
};

}  // namespace manyworlds::experiments
