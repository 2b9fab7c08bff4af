#include "experiments/settings/required_settings.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "experiments/config/config_schema.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {

using core::OptionInfo;

namespace {

/// Returns whether `manyworlds net` uses a key: it needs the machines' links only.
bool network_needs(const std::string& key) {
  if (key.starts_with("model.")) return false;
  return !key.starts_with("cluster.gpu.") || key.starts_with("cluster.gpu.scale_up");
}

/// Returns whether no required value of a section that the catalog can fill was given.
bool is_section_empty(const Settings& settings, const Section& section, const std::string& section_path) {
  return std::none_of(section.options.begin(), section.options.end(), [&](const OptionInfo& info) {
    return info.name != "name" && !has_default(info) && settings.count(join_key(section_path, info.name)) > 0;
  });
}

std::string missing_message(const Settings& settings, const Section& section, const std::string& key,
                            const OptionInfo& info) {
  const auto name = settings.find(key.substr(0, key.rfind('.')) + ".name");
  const std::string whose = name == settings.end() ? "" : std::get<std::string>(name->second);
  const std::string section_path = key.substr(0, key.rfind('.'));
  const bool has_named_entries = section.catalog == "models" || section.catalog == "gpus";
  if (has_named_entries && whose.empty() && is_section_empty(settings, section, section_path))
    return fmt::format(
        "'{}' is missing; name one of the catalog (`manyworlds list {}`), or give its values, '{}' first", section_path,
        section.catalog, info.name);
  if (section.catalog.empty() || whose.empty())
    return fmt::format("'{}' is missing; give {}", key, import::expected_text(info));
  return fmt::format("'{}' of {} is not published; give {}, as in {{like: {}, {}: …}} or --set {}=…", key, whose,
                     import::expected_text(info), whose, info.name, key);
}

/// Without these keys a step can run, but its results lack a column.
constexpr std::array<std::string_view, 10> kNotNeededByStep{"cluster.usd_per_gpu_hour",    "cluster.gpu.board_power_w",
                                                            "cluster.gpu.idle_power_w",    "cluster.host_power_w",
                                                            "cluster.switch_port_power_w", "cluster.pue",
                                                            "cluster.usd_per_gpu",         "cluster.lifetime_years",
                                                            "cluster.utilisation",         "cluster.usd_per_kwh"};
constexpr std::string_view kSectionNotNeededByStep = "training.";

/// Returns the corresponding key of the first node group; other keys are returned unchanged.
std::string first_group_key(const std::string& key) {
  for (const std::string group : kNodeGroups)
    if (key.starts_with("cluster." + group + ".")) return "cluster." + key.substr(9 + group.size());
  return key;
}

bool step_needs(const std::string& key) {
  return std::find(kNotNeededByStep.begin(), kNotNeededByStep.end(), key) == kNotNeededByStep.end() &&
         !key.starts_with(kSectionNotNeededByStep);
}

/// Returns whether there is one node, which no traffic leaves; hot experts are weighed against the NIC all the same.
bool is_one_node(const Settings& settings) {
  const core::OptionValue *nodes = settings.value("cluster.nodes"), *hot = settings.value("strategy.hot_experts");
  const bool more = std::any_of(std::begin(kNodeGroups), std::end(kNodeGroups),
                                [&](const std::string& group) { return settings.has_below("cluster." + group); });
  return !more && nodes != nullptr && std::get<std::int64_t>(*nodes) == 1 && (hot == nullptr || !std::get<bool>(*hot));
}

void collect_plain_keys(const Section& section, const std::string& path, std::vector<std::string>& keys) {
  if (section.choices.empty())
    for (const OptionInfo& info : section.options)
      if (const std::string key = join_key(path, info.name); step_needs(key)) keys.push_back(key);
  for (const Section& child : section.subsections)
    if (!child.optional) collect_plain_keys(child, join_key(path, child.name), keys);
}

/// Returns whether `settings` has all of the sorted `keys`. Sweeps ask this of every point, and so keys and settings
/// are gone through once, side by side.
bool has_all(const Settings& settings, const std::vector<std::string>& keys) {
  auto at = settings.lower_bound(keys.front());
  for (const std::string& key : keys) {
    while (at != settings.end() && at->first < key) ++at;
    if (at == settings.end() || at->first != key) return false;
  }
  return true;
}

/// Returns the keys below `path` of the sections that are always there and have no components, sorted.
std::vector<std::string> plain_keys(const Section& section, const std::string& path) {
  std::vector<std::string> keys;
  collect_plain_keys(section, path, keys);
  std::sort(keys.begin(), keys.end());
  return keys;
}

bool has_plain_sections(const Settings& settings) {
  static const std::vector<std::string> keys = plain_keys(config_schema(), "");
  return has_all(settings, keys);
}

/// `has_plain`: whether nothing is missing in sections without components.
std::pair<std::string, std::string> missing_in(const Settings& settings, Scope scope, const Section& section,
                                               const std::string& path, bool has_plain) {
  const std::vector<OptionInfo>* options = &section.options;
  if (!section.choices.empty()) options = &find_choice(section, std::get<std::string>(settings.at(path)))->options;
  if (!has_plain || !section.choices.empty()) {
    for (const OptionInfo& info : *options) {
      const std::string given = join_key(path, info.name);
      if (settings.count(given)) continue;
      const std::string key = first_group_key(given);
      if (given != key && key == "cluster.nic_gbps") continue;  // as in the first group
      const bool single_gpu_node = std::get<std::int64_t>(settings.at("cluster.gpus_per_node")) == 1;
      const bool graph_is_read = std::get<std::string>(settings.at("topology")) == "graph";  // rates are the file's
      if ((single_gpu_node || graph_is_read) && key == "cluster.gpu.scale_up_gb_per_s") continue;
      if (key == "cluster.nic_gbps" && (graph_is_read || is_one_node(settings))) continue;
      const core::OptionValue* described = settings.value("model.architecture");
      if (key == "model.heads" && described != nullptr && !std::get<std::string>(*described).empty()) continue;
      if (!step_needs(key) || (key.starts_with("model.") && has_programs(settings))) continue;
      if (scope == Scope::network && !network_needs(key)) continue;
      return {given, missing_message(settings, section, given, info)};
    }
  }
  for (const Section& child : section.subsections) {
    if (child.optional && !settings.has_below(join_key(path, child.name))) continue;
    auto found = missing_in(settings, scope, child, join_key(path, child.name), has_plain && !child.optional);
    if (!found.first.empty()) return found;
  }
  return {};
}

}  // namespace

std::pair<std::string, std::string> missing_required(const Settings& settings, Scope scope) {
  return missing_in(settings, scope, config_schema(), "", has_plain_sections(settings));
}

bool lacks_no_more(const Settings& settings, const Settings& complete) {
  static const std::vector<std::string> keys =
      plain_keys(*find_section(config_schema().subsections, "strategy"), "strategy");
  return settings.same_outside("strategy.", complete) && !complete.empty() && has_all(settings, keys);
}

}  // namespace manyworlds::experiments
