// A frozen sweep: sorted keys, every setting by value. Settings that all experiments share are written once.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "experiments/config/inputs.hpp"
#include "experiments/sweep/experiment.hpp"
#include "experiments/text/json.hpp"
#include "experiments/text/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::OptionInfo;
using core::OptionValue;
using nlohmann::json;
using Kind = OptionInfo::Kind;

constexpr const char* kFormat = "manyworlds-sweep-1";
constexpr const char* kFrozen = "frozen sweep";                           // in messages
constexpr const char* kKinds[] = {"boolean", "integer", "real", "text"};  // in the order of OptionInfo::Kind

json frozen(const std::vector<OptionValue>& row) {
  json made = json::array();
  for (const OptionValue& value : row) {
    const auto* real = std::get_if<double>(&value);
    made.push_back(real && std::isnan(*real) ? json(nullptr) : to_json(value));
  }
  return made;
}

json frozen(const Settings& settings) {
  json made = json::object();
  for (const auto& [key, value] : settings) made[key] = to_json(value);
  return made;
}

/// Visits those settings of `of` that `others` does not have, or has otherwise. Both are walked once, side by side.
template <class Visit>
void for_each_own(const Settings& of, const Settings& others, const Visit& visit) {
  auto other = others.begin();
  for (const auto& setting : of) {
    while (other != others.end() && other->first < setting.first) ++other;
    if (other == others.end() || *other != setting) visit(setting);
  }
}

json frozen_own(const Settings& settings, const Settings& shared) {
  json made = json::object();
  for_each_own(settings, shared, [&](const auto& own) { made[own.first] = to_json(own.second); });
  return made;
}

json frozen_columns(const std::vector<AxisColumn>& columns) {
  json made = json::array();
  for (const AxisColumn& column : columns)
    made.push_back({{"name", column.name},
                    {"kind", kKinds[static_cast<std::size_t>(column.kind)]},
                    {"unit", column.unit},
                    {"description", column.description}});
  return made;
}

OptionValue thawed(const json& value) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (value.is_boolean()) return value.get<bool>();
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMost)
    throw InputError(fmt::format("{} is more than any setting may be", value.get<std::uint64_t>()), kFrozen);
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) return value.get<double>();
  return value.get<std::string>();
}

std::vector<OptionValue> thawed_row(const json& from, std::size_t columns) {
  std::vector<OptionValue> row;
  for (const json& value : from) row.push_back(thawed(value));
  if (row.size() != columns)
    throw InputError(fmt::format("a row of {} values for {} columns", row.size(), columns), kFrozen);
  return row;
}

/// Every setting must be one that this program knows, of its type and inside its range.
void thaw_settings(const json& from, Settings& settings) {
  import::Node place;
  place.file = std::make_shared<const std::string>(kFrozen);
  for (const auto& [key, value] : from.items()) {
    settings[key] = thawed(value);
    const Target target = find_key(key, place);
    const OptionInfo* info = target.option;
    if (target.choice)
      for (const Alternative& alternative : target.choice->alternatives)
        if (!info) info = find_option(alternative.options, target.member);
    if (!info) continue;  // the name of a component; completeness is checked with the experiment
    if (settings[key].index() != info->fallback.index())
      place.fail(fmt::format("'{}' must be {}, not {}", key, import::wanted(*info), value.dump()));
    import::check_range(settings[key], *info, key, place);
  }
}

void check_complete(const Settings& settings) {
  for (const Branch& branch : vocabulary().branches) {
    if (branch.alternatives.empty()) continue;
    const auto found = settings.find(branch.name);
    const auto* name = found == settings.end() ? nullptr : std::get_if<std::string>(&found->second);
    if (!name || !find_alternative(branch, *name))
      throw InputError(fmt::format("an experiment has no known '{}'", branch.name), kFrozen);
  }
  if (!settings.count("cluster.gpus_per_node"))
    throw InputError("an experiment has no 'cluster.gpus_per_node'", kFrozen);
  if (const auto [key, what] = absent_figure(settings); !key.empty()) throw InputError(what, kFrozen);
}

/// A file that an experiment names must be there.
void check_inputs(const Settings& settings, const Inputs& inputs) {
  for (const NamedFile& file : named_files(settings))
    if ((file.needed || !file.path.empty()) && inputs.count(file.path) == 0)
      throw InputError(fmt::format("the file of '{}' is not in it", file.key), kFrozen);
}

Experiment thaw_experiment(const json& own, const Common& common) {
  Experiment experiment;
  experiment.settings = common.settings;
  thaw_settings(own, experiment.settings);
  check_complete(experiment.settings);
  check_inputs(experiment.settings, *common.inputs);
  experiment.inputs = common.inputs;
  return experiment;
}

json frozen_inputs(const std::shared_ptr<const Inputs>& inputs) {
  return inputs ? json(*inputs) : json::object();
}

Common thaw_common(const json& from) {
  Common common;
  common.inputs = std::make_shared<const Inputs>(from.at("inputs").get<Inputs>());
  thaw_settings(from.at("shared"), common.settings);
  return common;
}

/// Calls `thaw` with the document that `text` is.
template <class Thaw>
auto thawed_from(std::string_view text, const Thaw& thaw) {
  try {
    return thaw(import::parse_json(text, kFrozen, text.size()));  // as long as a sweep is large
  } catch (const json::exception& error) {
    throw InputError(error.what(), kFrozen);
  }
}

AxisColumn thaw_column(const json& from) {
  AxisColumn column{from.at("name"), Kind::text, from.at("unit"), from.at("description")};
  const auto kind = from.at("kind").get<std::string>();
  bool known = false;
  for (std::size_t i = 0; i < std::size(kKinds); ++i)
    if (kind == kKinds[i]) column.kind = static_cast<Kind>(i), known = true;
  if (!known) throw InputError(fmt::format("unknown column kind '{}'", kind), kFrozen);
  return column;
}

Sweep thaw_document(const json& from) {
  if (from.at("format") != kFormat)
    throw InputError(
        fmt::format("format {}, not '{}'; it was written by another version", from.at("format").dump(), kFormat),
        kFrozen);
  Sweep sweep;
  sweep.name = from.at("name");
  sweep.objective = from.at("objective");
  sweep.text = from.at("text");
  sweep.overrides = from.at("overrides").get<std::vector<std::string>>();
  sweep.single = from.at("single");
  sweep.assumed = from.at("assumed");
  sweep.where = from.at("where").get<std::vector<std::string>>();
  if (!from.at("measured").is_null())
    sweep.measured = Measured{from.at("measured").at("step_time_s"), from.at("measured").at("source")};
  for (const json& column : from.at("columns")) sweep.columns.push_back(thaw_column(column));
  const Common common = thaw_common(from);
  sweep.inputs = common.inputs;
  for (const json& one : from.at("experiments")) {
    Experiment& experiment = sweep.experiments.emplace_back(thaw_experiment(one.at("settings"), common));
    experiment.id = static_cast<std::uint32_t>(sweep.experiments.size() - 1);
    experiment.axes = thawed_row(one.at("axes"), sweep.columns.size());
  }
  for (const json& one : from.at("excluded"))
    sweep.excluded.push_back({thawed_row(one.at("axes"), sweep.columns.size()), one.at("rule"), one.at("reason")});
  if (sweep.experiments.empty()) throw InputError("it holds no experiment", kFrozen);
  return sweep;
}

}  // namespace

std::string freeze(const Sweep& sweep) {
  MANYWORLDS_CHECK(!sweep.experiments.empty(), "a sweep without experiments");
  const Common common = common_of(sweep);
  json made{{"format", kFormat},
            {"name", sweep.name},
            {"objective", sweep.objective},
            {"text", sweep.text},
            {"single", sweep.single},
            {"assumed", sweep.assumed},
            {"overrides", sweep.overrides},
            {"where", sweep.where},
            {"measured", nullptr},
            {"columns", frozen_columns(sweep.columns)},
            {"inputs", frozen_inputs(common.inputs)},
            {"shared", frozen(common.settings)},
            {"experiments", json::array()},
            {"excluded", json::array()}};
  if (sweep.measured)
    made["measured"] = {{"step_time_s", sweep.measured->step_time_s}, {"source", sweep.measured->source}};
  for (const Experiment& experiment : sweep.experiments)
    made["experiments"].push_back(
        {{"axes", frozen(experiment.axes)}, {"settings", frozen_own(experiment.settings, common.settings)}});
  for (const Excluded& one : sweep.excluded)
    made["excluded"].push_back({{"axes", frozen(one.axes)}, {"rule", one.rule}, {"reason", one.reason}});
  return made.dump() + "\n";
}

Sweep thaw(std::string_view text) {
  return thawed_from(text, thaw_document);
}

Common common_of(const Sweep& sweep) {
  Common common{sweep.experiments.front().settings, sweep.inputs};
  for (const Experiment& experiment : sweep.experiments) {
    std::vector<std::string> differing;
    for_each_own(common.settings, experiment.settings,
                 [&](const auto& setting) { differing.push_back(setting.first); });
    for (const std::string& key : differing) common.settings.erase(key);
  }
  return common;
}

std::string freeze(const Common& common) {
  return json{{"inputs", frozen_inputs(common.inputs)}, {"shared", frozen(common.settings)}}.dump();
}

Common thaw_common(std::string_view text) {
  return thawed_from(text, [](const json& from) { return thaw_common(from); });
}

std::string freeze_own(const Experiment& experiment, const Common& common) {
  return frozen_own(experiment.settings, common.settings).dump();
}

Experiment thaw_own(std::string_view text, const Common& common) {
  return thawed_from(text, [&](const json& own) { return thaw_experiment(own, common); });
}

}  // namespace manyworlds::experiments
