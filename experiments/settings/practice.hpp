// Defaults of settings that the user did not give. Under today's practice they follow from other settings: the
// software's own recipe, a communication library that uses every NIC. Under that of 2021 they are the option tables'
// own defaults, whatever else is set.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {

enum class Practice : std::uint8_t { of_2021, today };

/// Returns "today" and "2021", in the order in which messages list them.
const std::vector<std::string>& practice_names();
Practice practice_named(const std::string& name);

/// Returns whether today's practice defers the default of a key until the other settings are known.
bool is_deferred_today(const std::string& path);
/// Returns the component with which a section begins under today's practice; `of_2021` is the one of 2021.
std::string default_component_today(const std::string& path, const std::string& of_2021);
/// Returns the key of a mark that a component is a default, which today's practice may replace. Naming a component
/// removes the mark, and so does assume_today().
std::string deferred_mark(const std::string& path);

/// Values that were filled in, by key, and what the file of a model left out; empty for a model of the catalog.
struct Assumptions {
  Settings values;
  std::string model_note;
  bool operator==(const Assumptions&) const = default;
};

/// Fills in what the file of a model does not say, and under today's practice all deferred settings.
Assumptions assume(Settings& settings, const Catalog& catalog, Practice practice);

/// Fills in the sequence, which the file of a model does not say.
Assumptions assume_of_model_file(Settings& settings);

/// Fills in deferred settings by today's practice and returns them by key, with the stack as a whole if none was named.
/// A switch of the stack without effect in the layout (such as overlap_parameters without an optimizer sharded over
/// replicas) is turned off and not returned.
Settings assume_today(Settings& settings, const Catalog& catalog);

/// Sets `key` of a layout and the settings that depend on it, as the software's arguments do: sequence parallelism
/// follows tp, states are sharded only if there are replicas, 1F1B has one chunk per rank, and switches without effect
/// are off.
void change_setting(Settings& settings, const std::string& key, core::OptionValue value);

/// Returns a note if leaf switches are oversubscribed but there is only one of them; otherwise empty.
std::string unused_oversubscription_note(const Settings& settings);

/// Returns a note if channels are set that a calibrated library does not heed; otherwise empty.
std::string unused_channels_note(const Settings& settings);

/// Returns a note if a tensor-parallel group takes several nodes; otherwise empty.
std::string tensor_over_nodes_note(const Settings& settings);

/// Returns a note if a cluster with its own graph is simulated on another topology; otherwise empty.
std::string unused_fabric_note(const Settings& settings);

/// Values that were assumed for the experiments of a sweep, by key.
class AssumedValues {
 public:
  void add(const Assumptions& assumptions);
  /// Adds a note, shown after the assumed values, about a setting that was given but has no effect.
  void note(const std::string& what);
  /// Returns one line, such as "strategy.stack=megatron-core, strategy.zero=0 or 1"; empty if nothing was assumed.
  std::string line() const;

 private:
  Assumptions last_;  // most points of a sweep assume what the point before them does
  std::map<std::string, std::set<std::string>> values_;
  std::set<std::string> notes_;
};

}  // namespace manyworlds::experiments
