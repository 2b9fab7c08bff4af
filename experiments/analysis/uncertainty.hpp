// Uncertainty of predicted step times: 80 % intervals by split conformal prediction (Lei et al. 2018), from the errors
// for published steps on the same GPU and of the same kind, each family predicted with constants fitted to the others.
// Families count equally, however many rows they have, since a new user is a new family, which nothing is known of yet.
// docs/model/uncertainty.md explains what the intervals mean.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "experiments/analysis/guesses.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/measured/residuals.hpp"

namespace manyworlds::experiments {

/// Returns "dense", "experts" (a mixture of experts) or "sharded" (parameters sharded too: ZeRO 3, FSDP).
std::string layout_kind(const core::step::Configuration& configuration);

/// Returns the GPU in whose catalog file the constants of `gpu`'s chip are; `gpu` itself if there is none.
std::string chip_of(const Catalog& catalog, const std::string& gpu);

struct Interval {
  double low = 1, high = 1;          // factors of the predicted step time, at most 1 and at least 1
  double distinguishable_ratio = 1;  // smallest ratio of step times in one comparison group that is distinguishable
  std::string chip, kind;            // chip_of() the GPU and layout_kind(), by which measurements are selected
  std::string basis;                 // the residuals that were used
  bool measured = false;             // steps of that chip and kind are among them
  GuessedTime guesses;               // by which with_guesses() has widened the bounds
  /// The same of the waits for two networks; NaN if no collectives over nodes were measured.
  double network_ratio = std::numeric_limits<double>::quiet_NaN();
};

class Uncertainty {
 public:
  /// Factor by which an interval is widened if no step of its GPU, its kind or its library was measured.
  static constexpr double kWidening = 1.5;
  static constexpr double kCoverage = 0.8;

  Uncertainty(std::vector<measured::Residuals> residuals, const Catalog& catalog);
  /// Returns an instance with the residuals and the catalog that are compiled in.
  static Uncertainty compiled();

  const Catalog& catalog() const { return catalog_; }
  /// Returns the interval of the step time of `config`, which must be config_of(settings).
  Interval of(const Settings& settings, const ExperimentConfig& config) const;
  /// Returns the same, wider by what the guesses of the catalog are worth where no such step of the chip was measured:
  /// errors of measured steps hold what their guesses are worth.
  Interval with_guesses(const Settings& settings, const ExperimentConfig& config) const;

  /// Returns how much of the distribution behind the interval with_guesses() is at or below `ratio`, a measured time
  /// over the predicted one.
  double share_below(double ratio, const Settings& settings, const ExperimentConfig& config) const;

  /// How the runs of one family differ among themselves: the standard deviation of the logarithm of measured over
  /// predicted time, its median over the families that of() takes, and how many of these have two runs or more.
  struct Scatter {
    double deviation = 0;
    std::size_t families = 0;
  };
  Scatter scatter_within_families(const Settings& settings, const ExperimentConfig& config) const;

 private:
  struct Evidence;
  Evidence evidence_of(const Settings& settings, const ExperimentConfig& config) const;
  bool uses_catalog_constants(const Settings& settings, const std::string& gpu) const;

  std::vector<measured::Residuals> residuals_, network_residuals_;  // of steps, and of collectives over nodes
  Catalog catalog_;
};

}  // namespace manyworlds::experiments
