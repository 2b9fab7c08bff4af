// One experiment of a sweep, and the sweep itself: the user's document, expanded, resolved and stored by value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/compute/measured.hpp"
#include "experiments/config/graphs.hpp"
#include "experiments/settings/required_settings.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/validity/validity.hpp"

namespace manyworlds::experiments {

/// A result column that an axis adds. Its values are in Experiment::axes at the same index.
struct AxisColumn {
  std::string name;  // "strategy.tp"; an axis over mappings has "topology", and "topology.oversubscription" per leaf
  core::OptionInfo::Kind kind = core::OptionInfo::Kind::text;
  std::string unit;
  std::string description;
};

struct Experiment {
  std::uint32_t id = 0;                 // index among the valid points, in the order of the grid
  std::vector<core::OptionValue> axes;  // one per column; NaN or an empty text if a leaf does not apply
  Settings settings;
  std::shared_ptr<const Inputs> inputs;  // the sweep's; null if it has none

  /// Returns the settings as a configuration.
  ExperimentConfig config() const { return config_of(settings, inputs); }
};

/// A combination that a rule (or a `where`) excluded.
struct Excluded {
  std::vector<core::OptionValue> axes;
  std::string rule;  // name of a validity rule; "where" for a constraint of the user
  std::string reason;
};

/// A measurement of this very experiment, given by the user.
struct MeasuredStep {
  double step_time_s = 0;
  std::string source;
};

/// A space of which a sweep lists only the points with the best lower bounds.
struct ListedSpace {
  double points = 0;            // of all axes together, valid or not
  double looked_at = 0;         // points and groups of points for which a bound was computed
  std::optional<double> bound;  // no point that is not listed has a better objective; nullopt: none of these fits
};

struct Sweep {
  std::string name;
  std::string objective;               // result column to rank by
  std::uint32_t best = 0;              // simulate only what may be among so many best; 0: everything
  double gap = 0;                      // share by which another may be better than the last of the best
  std::string front;                   // simulate what fewer than `best` others are better than in this column too
  std::optional<ListedSpace> space;    // nullopt: the experiments are all valid points
  std::string text;                    // the document, verbatim
  std::vector<std::string> overrides;  // arguments of --set, in order
  bool single = false;                 // neither axes nor zip
  std::string assumed;                 // values filled in by today's practice, on one line
  std::vector<std::string> where;
  std::vector<AxisColumn> columns;
  std::vector<Experiment> experiments;
  std::vector<Excluded> excluded;
  std::vector<Experiment> refused;  // excluded by rules; empty unless ReadOptions::keep_refused is set
  std::uint64_t unvisited = 0;      // points that ReadOptions::is_over left no time for; they are not serialized
  std::optional<MeasuredStep> measured;
  std::shared_ptr<const Inputs> inputs;  // shared by the experiments
};

/// Returns the configuration that core simulates. Graphs are shared through `graphs`.
core::step::Configuration configure(const Experiment& experiment, GraphCache& graphs);
/// The same for one experiment of many.
core::step::Configuration configure(const Experiment& experiment, GraphCache& graphs, ConfigReader& reader);

/// Returns the table of measured times of the experiment's GPU; null if none is named.
std::shared_ptr<const core::compute::MeasuredTimes> measured_times(const Experiment& experiment);

/// A result column that a sweep may rank by, and whether more is better.
struct Objective {
  std::string name;
  bool more_is_better;
  /// Lists of settings: unless some experiment has all settings of one list, no row has a value. Empty: nothing is
  /// needed.
  std::vector<std::vector<std::string>> needs = {};
  /// Whether a step that takes longer, otherwise equal, is never better: then a lower bound of the step time bounds it.
  bool follows_step_time = true;
};
const std::vector<Objective>& objectives();
/// Returns the objective with this name, which must be one of them.
const Objective& objective_named(const std::string& name);

struct ReadOptions {
  Scope scope = Scope::step;
  std::size_t max_points = 1'000'000;   // of all axes together, or drawn by `sample`; a larger sweep is refused
  Practice practice = Practice::today;  // unless the document or `overrides` choose another
  bool keep_refused = false;            // excluded points also go to Sweep::refused, and none valid is no error
  /// Where it is set, points are visited in random order until it returns true: what was visited until then stands for
  /// all. None valid is no error then.
  std::function<bool()> is_over = nullptr;
};

/// Reads the sweep in the file at `path`, with every "key=value" of `overrides` applied and the catalog in
/// `catalog_folder` (may be empty) added to the compiled one. Throws InputError with file, line, key and what would be
/// right.
Sweep read_sweep(const std::string& path, const std::vector<std::string>& overrides = {},
                 const std::string& catalog_folder = {}, const ReadOptions& options = {});

/// Parses a sweep from text; `file` is its name in messages.
Sweep parse_sweep(const std::string& text, const std::string& file, const std::vector<std::string>& overrides,
                  const Catalog& catalog, const ReadOptions& options = {});

/// Returns canonical JSON of the whole sweep by value: the same sweep gives the same bytes on every machine.
std::string serialize(const Sweep& sweep);
/// Returns the sweep that serialize() wrote. Throws InputError for anything else.
Sweep deserialize(std::string_view json);

/// Settings and files that all experiments of a sweep share, for receivers of single experiments.
struct CommonSettings {
  Settings settings;
  std::shared_ptr<const Inputs> inputs;
};
CommonSettings common_settings_of(const Sweep& sweep);
/// Canonical JSON, and its inverse, which throws InputError for anything else.
std::string serialize(const CommonSettings& common);
CommonSettings deserialize_common(std::string_view json);

/// serialize_own_settings() returns canonical JSON of the settings that are not common. deserialize_own_settings()
/// returns the experiment without its id and axes, and throws InputError for anything else.
std::string serialize_own_settings(const Experiment& experiment, const CommonSettings& common);
Experiment deserialize_own_settings(std::string_view json, const CommonSettings& common);

}  // namespace manyworlds::experiments
