// What better hardware would bring to one experiment: it is simulated again, in its own fidelity, with one figure of
// its machines at a time 10 % better. Figures are settings, as a sweep would change them, so that what the catalog
// derived from other figures (as the constants of a library that were measured on another GPU) stays as it is.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep/experiment.hpp"
#include "farm/explain/explained_layout.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// How many times as fast, or as much, a better figure is; times are divided by it.
inline constexpr double kImprovement = 1.1;

/// A figure of the hardware, such as the rate of the NICs.
struct HardwareFigure {
  std::string name, description;
  std::vector<std::string> keys;        // the settings of the experiment that are scaled together
  std::string unknown;                  // why nobody can tell what it brings; empty: it can be simulated
  std::optional<std::size_t> row = {};  // in Sensitivity::results
};

struct Sensitivity {
  experiments::Experiment layout;
  std::vector<HardwareFigure> figures;  // without those of which the experiment has no setting
  experiments::Sweep sweep;             // the layout, then one experiment for each figure that is not unknown
  io::Results results;                  // of `sweep`, from simulate_here()
};

/// Lists the figures without simulating anything.
Sensitivity hardware_sensitivity(const experiments::Experiment& layout);

/// Returns the settings with these keys 10 % better.
void improve(experiments::Settings& settings, const std::vector<std::string>& keys);
/// Returns the keys by which the memory of GPUs is larger.
std::vector<std::string> memory_keys(const experiments::Settings& settings);

/// What a figure brings: the step with it, the step's relative change (-0.02: 2 % shorter), and the elasticity: the
/// share of the step that goes with this figure, which is the step's relative saving over that of a time that is
/// divided by kImprovement. Of steps whose times all add up, elasticities add up to 1; where times overlap, to less.
struct Improvement {
  double step_s = 0, change = 0, elasticity = 0;
};
/// Returns it; nullopt where either experiment did not run.
std::optional<Improvement> improvement_by(const Sensitivity& sensitivity, const HardwareFigure& figure);

std::string sensitivity_text(const Sensitivity& sensitivity);
nlohmann::ordered_json sensitivity_json(const Sensitivity& sensitivity);

}  // namespace manyworlds::farm
