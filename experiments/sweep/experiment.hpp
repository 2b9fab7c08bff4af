// One experiment of a sweep, and the sweep they make: what the user wrote, expanded, resolved and by value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/compute/measured.hpp"
#include "experiments/config/graphs.hpp"
#include "experiments/rules/validity.hpp"
#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {

/// A column of the answer that an axis makes. Its values stand in Experiment::axes at the same index.
struct AxisColumn {
  std::string name;  // "strategy.tp"; of an axis over mappings "topology", and "topology.oversubscription" per leaf
  core::OptionInfo::Kind kind = core::OptionInfo::Kind::text;
  std::string unit;
  std::string description;
};

struct Experiment {
  std::uint32_t id = 0;                 // its index among the valid points, in spec order
  std::vector<core::OptionValue> axes;  // one per column; a real NaN or an empty text where a leaf does not apply
  Settings settings;
  std::shared_ptr<const Inputs> inputs;  // those of the sweep; null where it has none
};

/// A combination that a rule (or a `where`) left out.
struct Excluded {
  std::vector<core::OptionValue> axes;
  std::string rule;  // of validity; "where" for a constraint of the user's
  std::string reason;
};

/// What somebody measured for this very experiment.
struct Measured {
  double step_time_s = 0;
  std::string source;
};

struct Sweep {
  std::string name;
  std::string objective;               // the result column to rank by
  std::string text;                    // the document, verbatim
  std::vector<std::string> overrides;  // of --set, in their order
  bool single = false;                 // no axes, no zip
  std::string assumed;                 // what today's practice filled in, on one line
  std::vector<std::string> where;
  std::vector<AxisColumn> columns;
  std::vector<Experiment> experiments;
  std::vector<Excluded> excluded;
  std::vector<Experiment> refused;  // what rules left out, where ReadOptions asks for it
  std::optional<Measured> measured;
  std::shared_ptr<const Inputs> inputs;  // the experiments share them
};

/// What core simulates. Graphs are shared through `graphs`.
core::step::Configuration configure(const Experiment& experiment, GraphCache& graphs);

/// The times that the experiment's GPU takes from a table; null where it names none.
std::shared_ptr<const core::compute::MeasuredTimes> measured_times(const Experiment& experiment);

/// Figures a sweep may rank by, and whether more is better.
struct Objective {
  std::string name;
  bool more_is_better;
  /// Settings that some experiment must have all of, one of these lists, or no row has the figure. Empty: none.
  std::vector<std::vector<std::string>> needs = {};
};
const std::vector<Objective>& objectives();

struct ReadOptions {
  Scope scope = Scope::step;
  std::size_t most_points = 1'000'000;  // of all axes together, or drawn by `sample`; a sweep with more is refused
  Practice practice = Practice::today;  // where neither the document nor `overrides` say what to assume
  bool keep_refused = false;            // what rules leave out goes to Sweep::refused too, and none valid is no error
};

/// The sweep in the file at `path`, with every "key=value" of `overrides` applied and the catalog in `catalog_folder`
/// (may be empty) beside ours. Throws InputError: file, line, key and what would be right.
Sweep read_sweep(const std::string& path, const std::vector<std::string>& overrides = {},
                 const std::string& catalog_folder = {}, const ReadOptions& options = {});

/// As read_sweep, from text that is already here; `file` names it in messages.
Sweep parse_sweep(const std::string& text, const std::string& file, const std::vector<std::string>& overrides,
                  const Catalog& catalog, const ReadOptions& options = {});

/// Canonical JSON of the whole sweep, everything by value: the same sweep gives the same bytes, anywhere.
std::string freeze(const Sweep& sweep);
/// The sweep that freeze() wrote. Throws InputError on anything else.
Sweep thaw(std::string_view json);

/// What all experiments of a sweep have in common, for whoever is given them one by one.
struct Common {
  Settings settings;
  std::shared_ptr<const Inputs> inputs;
};
Common common_of(const Sweep& sweep);
/// Canonical JSON, and back. Throws InputError on anything else.
std::string freeze(const Common& common);
Common thaw_common(std::string_view json);

/// The settings of `experiment` that are not common, as canonical JSON, and the experiment with these settings (without
/// its id and axes). Throws InputError on anything else.
std::string freeze_own(const Experiment& experiment, const Common& common);
Experiment thaw_own(std::string_view json, const Common& common);

}  // namespace manyworlds::experiments
