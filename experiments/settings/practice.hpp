// What a setting means that nobody gave. Today's practice follows from the other settings: the software's own recipe,
// a communication library that uses every NIC. That of 2021 is the option tables' own defaults, whatever else is set.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/config/world.hpp"
#include "experiments/settings/catalog.hpp"

namespace manyworlds::experiments {

enum class Practice : std::uint8_t { of_2021, today };

/// "today" and "2021", in the order that messages list them.
const std::vector<std::string>& practice_names();
Practice practice_called(const std::string& name);

/// Whether today's practice leaves a key open until the other settings are known.
bool is_open_today(const std::string& path);
/// The component that a section begins with today; in 2021 it was `of_2021`.
std::string first_component(const std::string& path, const std::string& of_2021);
/// A setting that says of a component that it is the default, which today's practice may change; naming one takes it
/// away, and assume_today() does.
std::string open_mark(const std::string& path);

/// Fills in what is still open, by today's practice. What was filled in is returned: key to value, the stack as a
/// whole where nobody named one. A switch of the stack that the layout has no use for (overlap_parameters without an
/// optimizer that is cut over replicas, say) is off and is not among it.
Settings assume_today(Settings& settings, const Catalog& catalog);

/// Gives `key` of a layout another value, and what hangs on it its own, as the software's arguments do: sequence
/// parallelism follows tp, states are cut where there are replicas, 1F1B has one chunk on a rank, and switches that the
/// layout has no more use for are off.
void change(Settings& settings, const std::string& key, core::OptionValue value);

/// What is to be said where leaf switches are oversubscribed and there is but one of them; else empty.
std::string idle_oversubscription(const Settings& settings);

/// What the experiments of a sweep were assumed to be, by key.
class Assumed {
 public:
  void add(const Settings& filled_in);
  /// Something that a setting was given for and that is not so, to be said behind what was assumed.
  void note(const std::string& what);
  /// One line, such as "strategy.stack=megatron-core, strategy.zero=0 or 1"; empty where nothing was assumed.
  std::string line() const;

 private:
  std::map<std::string, std::set<std::string>> values_;
  std::set<std::string> notes_;
};

}  // namespace manyworlds::experiments
