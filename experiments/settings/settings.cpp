// Resolves keys and assigns values by walking the config schema and the document in parallel.
#include "experiments/settings/settings.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "experiments/settings/key_aliases.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::OptionInfo;
using core::OptionValue;
using import::Entry;
using import::Node;

constexpr const char* kSequence = "model.sequence";

std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

bool is_present(const Settings& settings, const std::string& path) {
  const auto first = settings.lower_bound(path + ".");
  return first != settings.end() && first->first.starts_with(path + ".");
}

std::vector<std::string> split(const std::string& dotted) {
  std::vector<std::string> parts{""};
  for (const char c : dotted) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back().push_back(c);
  }
  return parts;
}

std::vector<std::string> names_of(const std::vector<OptionInfo>& options) {
  std::vector<std::string> names;
  for (const OptionInfo& info : options) names.push_back(info.name);
  return names;
}

std::vector<std::string> option_names(const Section& choice_section) {
  std::vector<std::string> names;
  for (const Choice& candidate : choice_section.choices)
    for (const std::string& name : names_of(candidate.options))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

/// Resolves the part of a dotted key behind a choice: an option, alone or after its component's name.
Target find_in_choice(const Section& section, const std::string& path, const std::vector<std::string>& rest,
                      const std::string& dotted, const Node& at) {
  Target target;
  target.path = join(path, rest.back());
  if (rest.size() == 1) {
    if (const Choice* component_named = choice_named(section, rest[0])) {
      target.path = path;
      target.section = &section;
      target.component = component_named->name;
      return target;
    }
    const auto known = option_names(section);
    if (std::find(known.begin(), known.end(), rest[0]) == known.end())
      at.fail(fmt::format("unknown key '{}'{}", dotted, suggestion(rest[0], known)));
    target.choice_section = &section;
    target.member = rest[0];
    return target;
  }
  const Choice* component = choice_named(section, rest[0]);
  if (!component)
    at.fail(fmt::format("unknown {} '{}' in '{}'{}", section.name, rest[0], dotted,
                        suggestion(rest[0], names_in(section))));
  if (rest.size() == 2) target.option = find_option(component->options, rest[1]);
  if (!target.option)
    at.fail(fmt::format("unknown key '{}'{}", dotted, suggestion(rest[1], names_of(component->options))));
  target.component = component->name;
  return target;
}

Node place_of_entry(const Entry& entry) {
  Node at;
  at.file = entry.value.file;
  at.line = entry.line;
  return at;
}

/// Collects the names of options below `section`, at any depth.
void collect_names(const Section& section, std::vector<std::string>& names) {
  for (const std::string& name : option_names(section)) names.push_back(name);
  for (const Section& child : section.subsections) {
    for (const std::string& name : names_of(child.options)) names.push_back(name);
    collect_names(child, names);
  }
}

/// Collects the keys that end in ".ending", except in optional sections, whose keys repeat those of other sections.
void collect_endings(const Section& section, const std::string& path, const std::string& ending,
                     std::vector<std::string>& found) {
  const auto look = [&](const std::string& name) {
    if (("." + join(path, name)).ends_with("." + ending)) found.push_back(join(path, name));
  };
  for (const OptionInfo& info : section.options)
    if (info.name != "name") look(info.name);
  for (const std::string& name : option_names(section)) look(name);
  for (const Section& child : section.subsections) {
    if (child.optional) continue;
    look(child.name);
    collect_endings(child, join(path, child.name), ending, found);
  }
}

std::vector<std::string> keys_ending_in(const std::string& ending) {
  std::vector<std::string> found;
  collect_endings(config_schema(), "", ending, found);
  return found;
}

/// Returns a hint about the intended key for an unknown key in `section`.
std::string hint_in_section(const Section& section, const std::string& dotted) {
  if (const std::string hint = unknown_key_hint(dotted); !hint.empty()) return hint;
  const std::string last = split(dotted).back();
  if (const auto elsewhere = keys_ending_in(last); elsewhere.size() == 1)
    return fmt::format("; did you mean '{}'?", elsewhere.front());
  auto known = names_in(section);
  if (!section.catalog.empty()) known.push_back("like");
  std::vector<std::string> candidates = known;
  if (last == dotted)
    collect_names(config_schema(), candidates);  // at the top of `base` the last words of a key suffice
  const std::string near_text = suggestion(last, candidates);
  return near_text.starts_with("; did") ? near_text : suggestion(last, known);
}

}  // namespace

Target find_key(const std::string& dotted, const Node& at) {
  const auto parts = split(dotted);
  const Section* section = &config_schema();
  std::string path;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!section->choices.empty())
      return find_in_choice(*section, path, {parts.begin() + static_cast<std::ptrdiff_t>(i), parts.end()}, dotted, at);
    const std::string child_path = join(path, parts[i]);
    if (const OptionInfo* option = find_option(section->options, parts[i]); option && i + 1 == parts.size()) {
      Target target;
      target.path = child_path;
      target.option = option;
      return target;
    }
    const Section* child = find_section(section->subsections, parts[i]);
    if (!child) {
      if (const std::string key = key_for_alias(dotted); !key.empty()) return find_key(key, at);
      at.fail(fmt::format("unknown key '{}'{}", dotted, hint_in_section(*section, dotted)));
    }
    section = child;
    path = child_path;
  }
  Target target;
  target.path = path;
  target.section = section;
  return target;
}

Target find_typed_key(const std::string& typed, const Node& at) {
  const std::string first = typed.substr(0, typed.find('.'));
  const auto top = names_in(config_schema());
  if (std::find(top.begin(), top.end(), first) != top.end()) return find_key(typed, at);
  const std::vector<std::string> found = keys_ending_in(typed);
  if (found.size() == 1) return find_key(found.front(), at);
  if (!found.empty()) at.fail(fmt::format("'{}' may be {}; give one of them", typed, fmt::join(found, " or ")));
  return find_key(typed, at);
}

void Assigner::set(const std::string& path, OptionValue value, const Node& at) {
  settings_[path] = std::move(value);
  if (path == kSequence) settings_.erase(deferred_mark(kSequence));
  record_place(path, at);
}

void Assigner::record_place(const std::string& path, const Node& at) {
  if (!places_) return;
  Node place;
  place.file = at.file;
  place.line = at.line;
  (*places_)[path] = place;
}

void Assigner::defaults() {
  reset(config_schema(), "");
}

/// Returns whether an option at `path` starts with its default.
bool Assigner::starts_with_default(const std::string& path, const OptionInfo& option) const {
  return has_default(option) && (practice_ == Practice::of_2021 || !is_deferred_today(path));
}

/// Resets everything under `path` to its defaults; options without a default become absent.
void Assigner::reset(const Section& section, const std::string& path) {
  const std::string prefix = path.empty() ? "" : path + ".";
  settings_.erase_if([&](const auto& setting) { return setting.first.starts_with(prefix); });
  for (const OptionInfo& info : section.options)
    if (starts_with_default(prefix + info.name, info)) settings_[prefix + info.name] = info.default_value;
  if (!section.choices.empty()) {
    const std::string& of_2021 = section.choices.front().name;
    const std::string first = practice_ == Practice::today ? default_component_today(path, of_2021) : of_2021;
    settings_[path] = first;
    for (const OptionInfo& info : find_choice(section, first)->options)
      if (starts_with_default(prefix + info.name, info)) settings_[prefix + info.name] = info.default_value;
    if (practice_ == Practice::today && is_deferred_today(path)) settings_[deferred_mark(path)] = true;
  }
  for (const Section& child : section.subsections)
    if (!child.optional) reset(child, prefix + child.name);
}

/// Gives absent optional sections on the way to `path` their defaults.
void Assigner::add_optional_sections(const std::string& path) {
  const Section* section = &config_schema();
  std::string at;
  for (const std::string& part : split(path)) {
    section = find_section(section->subsections, part);
    if (section == nullptr) return;
    at = join(at, part);
    if (section->optional && !is_present(settings_, at)) reset(*section, at);
  }
}

void Assigner::assign(const Target& target, const Node& value) {
  add_optional_sections(target.path);
  if (target.section && !target.component.empty()) {  // topology.fat_tree={…} means topology={fat_tree: {…}}
    Node named;
    named.kind = Node::Kind::mapping;
    named.file = value.file;
    named.line = value.line;
    named.entries.push_back({target.component, value.line, value});
    return assign_section(*target.section, target.path, named);
  }
  if (target.section) return assign_section(*target.section, target.path, value);
  const OptionInfo* option = target.option;
  const std::string parent = target.path.substr(0, target.path.rfind('.'));
  if (target.choice_section) {
    const std::string& chosen = std::get<std::string>(settings_.at(parent));
    option = find_option(find_choice(*target.choice_section, chosen)->options, target.member);
    if (!option)
      value.fail(fmt::format("'{}' means nothing to {} '{}', which is chosen here", target.path,
                             target.choice_section->name, chosen));
  } else if (!target.component.empty()) {
    const std::string& chosen = std::get<std::string>(settings_.at(parent));
    if (chosen != target.component)
      value.fail(fmt::format("'{}' is an option of {} '{}', but '{}' is chosen here", target.path, parent,
                             target.component, chosen));
  }
  set(target.path, import::read_value(value, *option, target.path), value);
}

void Assigner::assign_section(const Section& section, const std::string& path, const Node& node) {
  record_place(path, node);
  if (section.optional) add_optional_sections(path);
  if (!section.choices.empty()) return assign_choice(section, path, node);
  if (!section.catalog.empty()) {
    if (node.kind == Node::Kind::scalar) return assign_catalog_entry(section, path, node.text, node);
    reset(section, path);
  }
  if (node.kind != Node::Kind::mapping)
    node.fail(fmt::format("'{}' must be a mapping{}, not {}", path.empty() ? section.name : path,
                          section.catalog.empty() ? "" : " or a name from the catalog", import::describe(node)));
  if (!section.catalog.empty()) {
    if (const Node* like = node.find("like")) {
      if (like->kind != Node::Kind::scalar)
        like->fail(fmt::format("'like' must be a name from the catalog, not {}", import::describe(*like)));
      assign_catalog_entry(section, path, like->text, *like);
    }
  }
  const auto is_typed = [&](const Entry& entry) {
    if (find_option(section.options, entry.key) || find_section(section.subsections, entry.key)) return false;
    return path.empty() || entry.key.find('.') != std::string::npos;
  };
  std::map<std::string, std::string> typed_as;  // by key
  const auto check_once = [&](const std::string& key, const Entry& entry) {
    const auto [other, first] = typed_as.emplace(key, entry.key);
    if (!first)
      place_of_entry(entry).fail(fmt::format("'{}' and '{}' are one key; keep one", other->second, entry.key));
  };
  for (const Entry& entry : node.entries) {
    if ((entry.key == "like" && !section.catalog.empty()) || is_typed(entry)) continue;
    const std::string key = join(path, entry.key), resolved = key_for_alias(key);
    check_once(resolved.empty() ? key : resolved, entry);
    assign_entry(section, path, entry);
  }
  // A full or short key beside the sections, such as "strategy.tp", takes precedence over the value in its section, as
  // "stack.precision" in "strategy" does.
  for (const Entry& entry : node.entries) {
    if (!is_typed(entry)) continue;
    const Node at = place_of_entry(entry);
    const Target target = path.empty() ? find_typed_key(entry.key, at) : find_key(join(path, entry.key), at);
    check_once(target.path, entry);
    assign(target, entry.value);
  }
}

void Assigner::assign_entry(const Section& section, const std::string& path, const Entry& entry) {
  const std::string key = join(path, entry.key);
  if (const OptionInfo* option = find_option(section.options, entry.key))
    return set(key, import::read_value(entry.value, *option, key), entry.value);
  if (const Section* child = find_section(section.subsections, entry.key))
    return assign_section(*child, key, entry.value);
  if (const std::string resolved = key_for_alias(key); !resolved.empty())
    return assign(find_key(resolved, place_of_entry(entry)), entry.value);
  throw InputError(fmt::format("unknown key '{}'{}", key, hint_in_section(section, key)), *entry.value.file,
                   entry.line);
}

void Assigner::assign_choice(const Section& section, const std::string& path, const Node& node) {
  const bool named = node.kind == Node::Kind::scalar;
  if (!named && (node.kind != Node::Kind::mapping || node.entries.size() != 1))
    node.fail(fmt::format("'{}' must be one name, or {{name: {{options}}}}, not {}", path,
                          node.kind == Node::Kind::mapping ? "a mapping of several" : import::describe(node)));
  const std::string& typed = named ? node.text : node.entries[0].key;
  const Choice* chosen = choice_named(section, typed);
  if (!chosen) node.fail(fmt::format("unknown {} '{}'{}", section.name, typed, suggestion(typed, names_in(section))));
  const std::string& name = chosen->name;
  reset(section, path);
  settings_.erase_if([&](const auto& setting) { return setting.first.starts_with(path + "."); });
  set(path, name, node);
  for (const OptionInfo& info : chosen->options)
    if (const std::string key = join(path, info.name); starts_with_default(key, info))
      settings_[key] = info.default_value;
  if (named || node.entries[0].value.kind == Node::Kind::null) return;
  const Node& options = node.entries[0].value;
  if (options.kind != Node::Kind::mapping)
    options.fail(fmt::format("'{}.{}' must be a mapping of options, not {}", path, name, import::describe(options)));
  for (const Entry& entry : options.entries) {
    const OptionInfo* option = find_option(chosen->options, entry.key);
    const std::string key = fmt::format("{}.{}.{}", path, name, entry.key);
    if (!option)
      throw InputError(fmt::format("unknown key '{}'{}", key, suggestion(entry.key, names_of(chosen->options))),
                       *entry.value.file, entry.line);
    set(join(path, entry.key), import::read_value(entry.value, *option, key), entry.value);
  }
}

void Assigner::assign_catalog_entry(const Section& section, const std::string& path, const std::string& name,
                                    const Node& at) {
  const auto& [resolved, entry] = catalog_.find_named(section.catalog, name, at);
  reset(section, path);
  record_place(path, at);
  set(join(path, "name"), resolved, at);
  if (section.catalog == "stacks" && practice_ == Practice::today) return;  // its switches are deferred
  for (const auto& [key, sourced] : entry.values) {
    if (const Section* child = find_section(section.subsections, key))
      assign_catalog_entry(*child, join(path, key), std::get<std::string>(sourced.value), at);
    else
      set(join(path, key), sourced.value, at);
  }
  if (entry.note.empty()) return;
  settings_[deferred_mark(path)] = entry.note;
  if (entry.assumed_sequence > 0) settings_[deferred_mark(kSequence)] = entry.assumed_sequence;
}

void derive(Settings& settings) {
  const auto integer = [&](const char* key) -> std::int64_t {
    const auto found = settings.find(key);
    return found == settings.end() ? 0 : std::get<std::int64_t>(found->second);
  };
  if (integer("model.kv_heads") == 0 && integer("model.heads") > 0) settings["model.kv_heads"] = integer("model.heads");
  if (integer("model.ffn_hidden") == 0 && integer("model.hidden") > 0)
    settings["model.ffn_hidden"] = 4 * integer("model.hidden");
  bool bf16 = true;
  for (const char* nodes : {"cluster.", "cluster.second.", "cluster.third."})
    if (const auto known = settings.find(std::string(nodes) + "gpu.precisions"); known != settings.end()) {
      const auto names = core::split_list(std::get<std::string>(known->second));
      bf16 &= std::find(names.begin(), names.end(), "bf16") != names.end();
    }
  settings.add("strategy.stack.precision", bf16 ? "bf16" : "fp16");
}

namespace {

/// Returns whether `manyworlds net` uses a key: it needs the machines' links only.
bool network_needs(const std::string& key) {
  if (key.starts_with("model.")) return false;
  return !key.starts_with("cluster.gpu.") || key.starts_with("cluster.gpu.scale_up");
}

/// Returns whether no required value of a section that the catalog can fill was given.
bool is_section_empty(const Settings& settings, const Section& section, const std::string& section_path) {
  return std::none_of(section.options.begin(), section.options.end(), [&](const OptionInfo& info) {
    return info.name != "name" && !has_default(info) && settings.count(join(section_path, info.name)) > 0;
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

std::pair<std::string, std::string> missing_in(const Settings& settings, Scope scope, const Section& section,
                                               const std::string& path) {
  const std::vector<OptionInfo>* options = &section.options;
  if (!section.choices.empty()) options = &find_choice(section, std::get<std::string>(settings.at(path)))->options;
  for (const OptionInfo& info : *options) {
    const std::string given = join(path, info.name);
    if (settings.count(given)) continue;
    const std::string key = first_group_key(given);
    if (given != key && key == "cluster.nic_gbps") continue;  // as in the first group
    const bool single_gpu_node = std::get<std::int64_t>(settings.at("cluster.gpus_per_node")) == 1;
    const bool graph_is_read = std::get<std::string>(settings.at("topology")) == "graph";  // rates come from the file
    if ((single_gpu_node || graph_is_read) && key == "cluster.gpu.scale_up_gb_per_s") continue;
    if (graph_is_read && key == "cluster.nic_gbps") continue;
    if (std::find(kNotNeededByStep.begin(), kNotNeededByStep.end(), key) != kNotNeededByStep.end()) continue;
    if (key.starts_with(kSectionNotNeededByStep)) continue;
    if (scope == Scope::network && !network_needs(key)) continue;
    return {given, missing_message(settings, section, given, info)};
  }
  for (const Section& child : section.subsections) {
    if (child.optional && !is_present(settings, join(path, child.name))) continue;
    if (auto found = missing_in(settings, scope, child, join(path, child.name)); !found.first.empty()) return found;
  }
  return {};
}

nlohmann::json document_of(const Settings& settings, const Section& section, const std::string& path) {
  nlohmann::json result = nlohmann::json::object();
  const auto copy = [&](nlohmann::json& to, const std::vector<OptionInfo>& options) {
    for (const OptionInfo& info : options)
      if (const auto found = settings.find(join(path, info.name)); found != settings.end())
        to[info.name] = to_json(found->second);
  };
  if (!section.choices.empty()) {
    const std::string& chosen = std::get<std::string>(settings.at(path));
    result[chosen] = nlohmann::json::object();
    copy(result[chosen], find_choice(section, chosen)->options);
    return result;
  }
  copy(result, section.options);
  for (const Section& child : section.subsections)
    if (!child.optional || is_present(settings, join(path, child.name)))
      result[child.name] = document_of(settings, child, join(path, child.name));
  return result;
}

}  // namespace

std::pair<std::string, std::string> missing_required(const Settings& settings, Scope scope) {
  return missing_in(settings, scope, config_schema(), "");
}

nlohmann::json to_json(const OptionValue& value) {
  return std::visit([](const auto& held) { return nlohmann::json(held); }, value);
}

nlohmann::json document(const Settings& settings) {
  return document_of(settings, config_schema(), "");
}

}  // namespace manyworlds::experiments
