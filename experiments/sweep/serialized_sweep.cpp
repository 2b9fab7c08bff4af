// Serializes resolved sweeps: sorted keys, every setting by value. Settings that all experiments share are written
// once.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "experiments/config/inputs.hpp"
#include "experiments/settings/required_settings.hpp"
#include "experiments/sweep/experiment.hpp"
#include "experiments/text/json.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::OptionInfo;
using core::OptionValue;
using nlohmann::json;
using Kind = OptionInfo::Kind;

constexpr const char* kFormat = "manyworlds-sweep-2";
constexpr const char* kResolvedSweep = "resolved sweep";                  // name in messages
constexpr const char* kKinds[] = {"boolean", "integer", "real", "text"};  // in the order of OptionInfo::Kind

json encoded(const std::vector<OptionValue>& row) {
  json result = json::array();
  for (const OptionValue& value : row) {
    const auto* real = std::get_if<double>(&value);
    result.push_back(real && std::isnan(*real) ? json(nullptr) : to_json(value));
  }
  return result;
}

json encoded(const Settings& settings) {
  json result = json::object();
  for (const auto& [key, value] : settings) result[key] = to_json(value);
  return result;
}

/// Visits the settings that `others` lacks or has with another value. Both maps are walked once, in parallel.
template <class Visit>
void for_each_difference(const Settings& subject, const Settings& others, const Visit& visit) {
  auto other = others.begin();
  for (const auto& setting : subject) {
    while (other != others.end() && other->first < setting.first) ++other;
    if (other == others.end() || *other != setting) visit(setting);
  }
}

json encoded_own(const Settings& settings, const Settings& common_values) {
  json result = json::object();
  for_each_difference(settings, common_values, [&](const auto& own) { result[own.first] = to_json(own.second); });
  return result;
}

json encoded_columns(const std::vector<AxisColumn>& columns) {
  json result = json::array();
  for (const AxisColumn& column : columns)
    result.push_back({{"name", column.name},
                      {"kind", kKinds[static_cast<std::size_t>(column.kind)]},
                      {"unit", column.unit},
                      {"description", column.description}});
  return result;
}

OptionValue decoded(const json& value) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (value.is_boolean()) return value.get<bool>();
  constexpr std::uint64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMaxInteger)
    throw InputError(fmt::format("{} is more than any setting may be", value.get<std::uint64_t>()), kResolvedSweep);
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) return value.get<double>();
  return value.get<std::string>();
}

std::vector<OptionValue> decoded_row(const json& from, std::size_t columns) {
  std::vector<OptionValue> row;
  for (const json& value : from) row.push_back(decoded(value));
  if (row.size() != columns)
    throw InputError(fmt::format("a row of {} values for {} columns", row.size(), columns), kResolvedSweep);
  return row;
}

/// Adds settings; each must be known to this program, of its option's type and inside its range.
void decode_settings(const json& from, Settings& settings) {
  import::Node place;
  place.file = std::make_shared<const std::string>(kResolvedSweep);
  for (const auto& [key, value] : from.items()) {
    settings[key] = decoded(value);
    const Target target = find_key(key, place);
    const OptionInfo* info = target.option;
    if (target.choice_section)
      for (const Choice& candidate : target.choice_section->choices)
        if (!info) info = find_option(candidate.options, target.member);
    if (!info) continue;  // the name of a component, which check_complete() checks
    if (settings[key].index() != info->default_value.index())
      place.fail(fmt::format("'{}' must be {}, not {}", key, import::expected_text(*info), value.dump()));
    import::check_range(settings[key], *info, key, place);
  }
}

void check_complete(const Settings& settings) {
  for (const Section& section : config_schema().subsections) {
    if (section.choices.empty()) continue;
    const auto found = settings.find(section.name);
    const auto* name = found == settings.end() ? nullptr : std::get_if<std::string>(&found->second);
    if (!name || !find_choice(section, *name))
      throw InputError(fmt::format("an experiment has no known '{}'", section.name), kResolvedSweep);
  }
  if (!settings.count("cluster.gpus_per_node"))
    throw InputError("an experiment has no 'cluster.gpus_per_node'", kResolvedSweep);
  if (const auto [key, what] = missing_required(settings); !key.empty()) throw InputError(what, kResolvedSweep);
}

/// Checks that the files that an experiment names are included.
void check_inputs(const Settings& settings, const Inputs& inputs) {
  for (const NamedFile& file : named_files(settings))
    if ((file.required || !file.path.empty()) && inputs.count(file.path) == 0)
      throw InputError(fmt::format("the file of '{}' is not in it", file.key), kResolvedSweep);
}

Experiment decode_experiment(const json& own, const CommonSettings& common) {
  Experiment experiment;
  experiment.settings = common.settings;
  decode_settings(own, experiment.settings);
  check_complete(experiment.settings);
  check_inputs(experiment.settings, *common.inputs);
  experiment.inputs = common.inputs;
  return experiment;
}

json encoded_inputs(const std::shared_ptr<const Inputs>& inputs) {
  return inputs ? json(static_cast<const std::map<std::string, std::string>&>(*inputs)) : json::object();
}

CommonSettings deserialize_common(const json& from) {
  CommonSettings common;
  auto inputs = std::make_shared<Inputs>();
  for (const auto& [path, text] : from.at("inputs").items()) inputs->emplace(path, text.get<std::string>());
  common.inputs = std::move(inputs);
  decode_settings(from.at("shared"), common.settings);
  common.settings.share();
  return common;
}

/// Parses `text` and passes the document to `deserialize`.
template <class Decode>
auto decoded_from(std::string_view text, const Decode& deserialize) {
  try {
    return deserialize(import::parse_json(text, kResolvedSweep, text.size()));  // a sweep of any size is accepted
  } catch (const json::exception& error) {
    throw InputError(error.what(), kResolvedSweep);
  }
}

AxisColumn decode_column(const json& from) {
  AxisColumn column{from.at("name"), Kind::text, from.at("unit"), from.at("description")};
  const auto kind = from.at("kind").get<std::string>();
  bool known = false;
  for (std::size_t i = 0; i < std::size(kKinds); ++i)
    if (kind == kKinds[i]) column.kind = static_cast<Kind>(i), known = true;
  if (!known) throw InputError(fmt::format("unknown column kind '{}'", kind), kResolvedSweep);
  return column;
}

json encoded(const ListedSpace& space) {
  return {{"points", space.points},
          {"looked_at", space.looked_at},
          {"bound", space.bound ? json(*space.bound) : json(nullptr)}};
}

ListedSpace decode_space(const json& from) {
  ListedSpace space{from.at("points"), from.at("looked_at"), std::nullopt};
  if (!from.at("bound").is_null()) space.bound = from.at("bound").get<double>();
  return space;
}

Sweep decode_sweep(const json& from) {
  if (from.at("format") != kFormat)
    throw InputError(
        fmt::format("format {}, not '{}'; it was written by another version", from.at("format").dump(), kFormat),
        kResolvedSweep);
  Sweep sweep;
  sweep.name = from.at("name");
  sweep.objective = from.at("objective");
  sweep.best = from.value("best", 0u);
  sweep.gap = from.value("gap", 0.0);
  sweep.front = from.value("front", std::string());
  if (from.contains("space")) sweep.space = decode_space(from.at("space"));
  sweep.text = from.at("text");
  sweep.overrides = from.at("overrides").get<std::vector<std::string>>();
  sweep.single = from.at("single");
  sweep.assumed = from.at("assumed");
  sweep.where = from.at("where").get<std::vector<std::string>>();
  if (!from.at("measured").is_null())
    sweep.measured = MeasuredStep{from.at("measured").at("step_time_s"), from.at("measured").at("source")};
  for (const json& column : from.at("columns")) sweep.columns.push_back(decode_column(column));
  const CommonSettings common = deserialize_common(from);
  sweep.inputs = common.inputs;
  for (const json& one : from.at("experiments")) {
    Experiment& experiment = sweep.experiments.emplace_back(decode_experiment(one.at("settings"), common));
    experiment.id = static_cast<std::uint32_t>(sweep.experiments.size() - 1);
    experiment.axes = decoded_row(one.at("axes"), sweep.columns.size());
  }
  for (const json& one : from.at("excluded"))
    sweep.excluded.push_back({decoded_row(one.at("axes"), sweep.columns.size()), one.at("rule"), one.at("reason")});
  if (sweep.experiments.empty()) throw InputError("it holds no experiment", kResolvedSweep);
  return sweep;
}

}  // namespace

std::string serialize(const Sweep& sweep) {
  MANYWORLDS_CHECK(!sweep.experiments.empty(), "a sweep without experiments");
  const CommonSettings common = common_settings_of(sweep);
  json result{{"format", kFormat},
              {"name", sweep.name},
              {"objective", sweep.objective},
              {"text", sweep.text},
              {"single", sweep.single},
              {"assumed", sweep.assumed},
              {"overrides", sweep.overrides},
              {"where", sweep.where},
              {"measured", nullptr},
              {"columns", encoded_columns(sweep.columns)},
              {"inputs", encoded_inputs(common.inputs)},
              {"shared", encoded(common.settings)},
              {"experiments", json::array()},
              {"excluded", json::array()}};
  if (sweep.best > 0) result["best"] = sweep.best;
  if (sweep.gap > 0) result["gap"] = sweep.gap;
  if (!sweep.front.empty()) result["front"] = sweep.front;
  if (sweep.space) result["space"] = encoded(*sweep.space);
  if (sweep.measured)
    result["measured"] = {{"step_time_s", sweep.measured->step_time_s}, {"source", sweep.measured->source}};
  for (const Experiment& experiment : sweep.experiments)
    result["experiments"].push_back(
        {{"axes", encoded(experiment.axes)}, {"settings", encoded_own(experiment.settings, common.settings)}});
  for (const Excluded& one : sweep.excluded)
    result["excluded"].push_back({{"axes", encoded(one.axes)}, {"rule", one.rule}, {"reason", one.reason}});
  return result.dump() + "\n";
}

Sweep deserialize(std::string_view text) {
  return decoded_from(text, decode_sweep);
}

CommonSettings common_settings_of(const Sweep& sweep) {
  CommonSettings common{sweep.experiments.front().settings, sweep.inputs};
  for (const Experiment& experiment : sweep.experiments) {
    std::vector<std::string> differing;
    for_each_difference(common.settings, experiment.settings,
                        [&](const auto& setting) { differing.push_back(setting.first); });
    for (const std::string& key : differing) common.settings.erase(key);
  }
  return common;
}

std::string serialize(const CommonSettings& common) {
  return json{{"inputs", encoded_inputs(common.inputs)}, {"shared", encoded(common.settings)}}.dump();
}

CommonSettings deserialize_common(std::string_view text) {
  return decoded_from(text, [](const json& from) { return deserialize_common(from); });
}

std::string serialize_own_settings(const Experiment& experiment, const CommonSettings& common) {
  return encoded_own(experiment.settings, common.settings).dump();
}

Experiment deserialize_own_settings(std::string_view text, const CommonSettings& common) {
  return decoded_from(text, [&](const json& own) { return decode_experiment(own, common); });
}

}  // namespace manyworlds::experiments
