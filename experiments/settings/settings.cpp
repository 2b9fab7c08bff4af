// Walks vocabulary and document side by side.
#include "experiments/settings/settings.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "experiments/settings/other_names.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::OptionInfo;
using core::OptionValue;
using import::Entry;
using import::Node;

std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

bool is_open(const Settings& settings, const std::string& path) {
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

std::vector<std::string> option_names(const Branch& choice) {
  std::vector<std::string> names;
  for (const Alternative& alternative : choice.alternatives)
    for (const std::string& name : names_of(alternative.options))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

/// The rest of a dotted key behind a choice: an option, alone or after its component's name.
Target find_in_choice(const Branch& branch, const std::string& path, const std::vector<std::string>& rest,
                      const std::string& dotted, const Node& at) {
  Target target;
  target.path = join(path, rest.back());
  if (rest.size() == 1) {
    if (const Alternative* whole = alternative_called(branch, rest[0])) {
      target.path = path;
      target.branch = &branch;
      target.component = whole->name;
      return target;
    }
    const auto known = option_names(branch);
    if (std::find(known.begin(), known.end(), rest[0]) == known.end())
      at.fail(fmt::format("unknown key '{}'{}", dotted, suggestion(rest[0], known)));
    target.choice = &branch;
    target.member = rest[0];
    return target;
  }
  const Alternative* component = alternative_called(branch, rest[0]);
  if (!component)
    at.fail(
        fmt::format("unknown {} '{}' in '{}'{}", branch.name, rest[0], dotted, suggestion(rest[0], names_in(branch))));
  if (rest.size() == 2) target.option = find_option(component->options, rest[1]);
  if (!target.option)
    at.fail(fmt::format("unknown key '{}'{}", dotted, suggestion(rest[1], names_of(component->options))));
  target.component = component->name;
  return target;
}

Node entry_place(const Entry& entry) {
  Node at;
  at.file = entry.value.file;
  at.line = entry.line;
  return at;
}

/// What options are called, wherever they stand.
void collect_names(const Branch& branch, std::vector<std::string>& names) {
  for (const std::string& name : option_names(branch)) names.push_back(name);
  for (const Branch& child : branch.branches) {
    for (const std::string& name : names_of(child.options)) names.push_back(name);
    collect_names(child, names);
  }
}

/// Keys that end in ".ending", but those of sections that a sweep need not have, which tell again what others tell.
void collect_endings(const Branch& branch, const std::string& path, const std::string& ending,
                     std::vector<std::string>& found) {
  const auto look = [&](const std::string& name) {
    if (("." + join(path, name)).ends_with("." + ending)) found.push_back(join(path, name));
  };
  for (const OptionInfo& info : branch.options)
    if (info.name != "name") look(info.name);
  for (const std::string& name : option_names(branch)) look(name);
  for (const Branch& child : branch.branches) {
    if (child.optional) continue;
    look(child.name);
    collect_endings(child, join(path, child.name), ending, found);
  }
}

std::vector<std::string> keys_ending_in(const std::string& ending) {
  std::vector<std::string> found;
  collect_endings(vocabulary(), "", ending, found);
  return found;
}

/// What an unknown key of `branch` may have been meant to be.
std::string hint_beside(const Branch& branch, const std::string& dotted) {
  if (const std::string hint = hint_for(dotted); !hint.empty()) return hint;
  const std::string last = split(dotted).back();
  if (const auto elsewhere = keys_ending_in(last); elsewhere.size() == 1)
    return fmt::format("; did you mean '{}'?", elsewhere.front());
  auto known = names_in(branch);
  if (!branch.catalog.empty()) known.push_back("like");
  std::vector<std::string> every = known;
  if (last == dotted) collect_names(vocabulary(), every);  // at the top of base the last words of a key will do
  const std::string near = suggestion(last, every);
  return near.starts_with("; did") ? near : suggestion(last, known);
}

}  // namespace

Target find_key(const std::string& dotted, const Node& at) {
  const auto parts = split(dotted);
  const Branch* branch = &vocabulary();
  std::string path;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!branch->alternatives.empty())
      return find_in_choice(*branch, path, {parts.begin() + static_cast<std::ptrdiff_t>(i), parts.end()}, dotted, at);
    const std::string child_path = join(path, parts[i]);
    if (const OptionInfo* option = find_option(branch->options, parts[i]); option && i + 1 == parts.size()) {
      Target target;
      target.path = child_path;
      target.option = option;
      return target;
    }
    const Branch* child = find_branch(branch->branches, parts[i]);
    if (!child) {
      if (const std::string key = key_called(dotted); !key.empty()) return find_key(key, at);
      at.fail(fmt::format("unknown key '{}'{}", dotted, hint_beside(*branch, dotted)));
    }
    branch = child;
    path = child_path;
  }
  Target target;
  target.path = path;
  target.branch = branch;
  return target;
}

Target find_typed_key(const std::string& typed, const Node& at) {
  const std::string first = typed.substr(0, typed.find('.'));
  const auto top = names_in(vocabulary());
  if (std::find(top.begin(), top.end(), first) != top.end()) return find_key(typed, at);
  const std::vector<std::string> found = keys_ending_in(typed);
  if (found.size() == 1) return find_key(found.front(), at);
  if (!found.empty()) at.fail(fmt::format("'{}' may be {}; give one of them", typed, fmt::join(found, " or ")));
  return find_key(typed, at);
}

void Assigner::set(const std::string& path, OptionValue value, const Node& at) {
  settings_[path] = std::move(value);
  mark(path, at);
}

void Assigner::mark(const std::string& path, const Node& at) {
  if (!places_) return;
  Node place;
  place.file = at.file;
  place.line = at.line;
  (*places_)[path] = place;
}

void Assigner::defaults() {
  reset(vocabulary(), "");
}

/// Whether an option of `path` begins with its default.
bool Assigner::has_value(const std::string& path, const OptionInfo& option) const {
  return has_default(option) && (practice_ == Practice::of_2021 || !is_open_today(path));
}

/// Everything under `path` back to its defaults; what has none becomes absent.
void Assigner::reset(const Branch& branch, const std::string& path) {
  const std::string prefix = path.empty() ? "" : path + ".";
  std::erase_if(settings_, [&](const auto& setting) { return setting.first.starts_with(prefix); });
  for (const OptionInfo& info : branch.options)
    if (has_value(prefix + info.name, info)) settings_[prefix + info.name] = info.fallback;
  if (!branch.alternatives.empty()) {
    const std::string& of_2021 = branch.alternatives.front().name;
    const std::string first = practice_ == Practice::today ? first_component(path, of_2021) : of_2021;
    settings_[path] = first;
    for (const OptionInfo& info : find_alternative(branch, first)->options)
      if (has_value(prefix + info.name, info)) settings_[prefix + info.name] = info.fallback;
    if (practice_ == Practice::today && is_open_today(path)) settings_[open_mark(path)] = true;
  }
  for (const Branch& child : branch.branches)
    if (!child.optional) reset(child, prefix + child.name);
}

/// Optional branches on the way to `path` get their defaults, if they are not there yet.
void Assigner::open(const std::string& path) {
  const Branch* branch = &vocabulary();
  std::string at;
  for (const std::string& part : split(path)) {
    branch = find_branch(branch->branches, part);
    if (branch == nullptr) return;
    at = join(at, part);
    if (branch->optional && !is_open(settings_, at)) reset(*branch, at);
  }
}

void Assigner::assign(const Target& target, const Node& value) {
  open(target.path);
  if (target.branch && !target.component.empty()) {  // topology.fat_tree={…} is topology={fat_tree: {…}}
    Node named;
    named.kind = Node::Kind::mapping;
    named.file = value.file;
    named.line = value.line;
    named.entries.push_back({target.component, value.line, value});
    return fill(*target.branch, target.path, named);
  }
  if (target.branch) return fill(*target.branch, target.path, value);
  const OptionInfo* option = target.option;
  const std::string parent = target.path.substr(0, target.path.rfind('.'));
  if (target.choice) {
    const std::string& chosen = std::get<std::string>(settings_.at(parent));
    option = find_option(find_alternative(*target.choice, chosen)->options, target.member);
    if (!option)
      value.fail(
          fmt::format("'{}' means nothing to {} '{}', which is chosen here", target.path, target.choice->name, chosen));
  } else if (!target.component.empty()) {
    const std::string& chosen = std::get<std::string>(settings_.at(parent));
    if (chosen != target.component)
      value.fail(fmt::format("'{}' is an option of {} '{}', but '{}' is chosen here", target.path, parent,
                             target.component, chosen));
  }
  set(target.path, import::read_value(value, *option, target.path), value);
}

void Assigner::fill(const Branch& branch, const std::string& path, const Node& node) {
  mark(path, node);
  if (branch.optional) open(path);
  if (!branch.alternatives.empty()) return choose(branch, path, node);
  if (!branch.catalog.empty()) {
    if (node.kind == Node::Kind::scalar) return copy_catalog(branch, path, node.text, node);
    reset(branch, path);
  }
  if (node.kind != Node::Kind::mapping)
    node.fail(fmt::format("'{}' must be a mapping{}, not {}", path.empty() ? branch.name : path,
                          branch.catalog.empty() ? "" : " or a name from the catalog", import::describe(node)));
  if (!branch.catalog.empty()) {
    if (const Node* like = node.find("like")) {
      if (like->kind != Node::Kind::scalar)
        like->fail(fmt::format("'like' must be a name from the catalog, not {}", import::describe(*like)));
      copy_catalog(branch, path, like->text, *like);
    }
  }
  const auto is_typed = [&](const Entry& entry) {
    return path.empty() && !find_option(branch.options, entry.key) && !find_branch(branch.branches, entry.key);
  };
  std::map<std::string, std::string> typed_as;  // by key
  const auto once = [&](const std::string& key, const Entry& entry) {
    const auto [other, first] = typed_as.emplace(key, entry.key);
    if (!first) entry_place(entry).fail(fmt::format("'{}' and '{}' are one key; keep one", other->second, entry.key));
  };
  for (const Entry& entry : node.entries) {
    if ((entry.key == "like" && !branch.catalog.empty()) || is_typed(entry)) continue;
    const std::string key = join(path, entry.key), called = key_called(key);
    once(called.empty() ? key : called, entry);
    fill_entry(branch, path, entry);
  }
  // "strategy.tp" beside the sections goes before what its section says.
  for (const Entry& entry : node.entries) {
    if (!is_typed(entry)) continue;
    const Target target = find_typed_key(entry.key, entry_place(entry));
    once(target.path, entry);
    assign(target, entry.value);
  }
}

void Assigner::fill_entry(const Branch& branch, const std::string& path, const Entry& entry) {
  const std::string key = join(path, entry.key);
  if (const OptionInfo* option = find_option(branch.options, entry.key))
    return set(key, import::read_value(entry.value, *option, key), entry.value);
  if (const Branch* child = find_branch(branch.branches, entry.key)) return fill(*child, key, entry.value);
  if (const std::string called = key_called(key); !called.empty())
    return assign(find_key(called, entry_place(entry)), entry.value);
  throw InputError(fmt::format("unknown key '{}'{}", key, hint_beside(branch, key)), *entry.value.file, entry.line);
}

void Assigner::choose(const Branch& branch, const std::string& path, const Node& node) {
  const bool named = node.kind == Node::Kind::scalar;
  if (!named && (node.kind != Node::Kind::mapping || node.entries.size() != 1))
    node.fail(fmt::format("'{}' must be one name, or {{name: {{options}}}}, not {}", path,
                          node.kind == Node::Kind::mapping ? "a mapping of several" : import::describe(node)));
  const std::string& typed = named ? node.text : node.entries[0].key;
  const Alternative* chosen = alternative_called(branch, typed);
  if (!chosen) node.fail(fmt::format("unknown {} '{}'{}", branch.name, typed, suggestion(typed, names_in(branch))));
  const std::string& name = chosen->name;
  reset(branch, path);
  std::erase_if(settings_, [&](const auto& setting) { return setting.first.starts_with(path + "."); });
  set(path, name, node);
  for (const OptionInfo& info : chosen->options)
    if (const std::string key = join(path, info.name); has_value(key, info)) settings_[key] = info.fallback;
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

void Assigner::copy_catalog(const Branch& branch, const std::string& path, const std::string& name, const Node& at) {
  const auto& [called, entry] = catalog_.find_named(branch.catalog, name, at);
  reset(branch, path);
  mark(path, at);
  set(join(path, "name"), called, at);
  if (branch.catalog == "stacks" && practice_ == Practice::today) return;  // its switches are open
  for (const auto& [key, figure] : entry.figures) {
    if (const Branch* child = find_branch(branch.branches, key))
      copy_catalog(*child, join(path, key), std::get<std::string>(figure.value), at);
    else
      set(join(path, key), figure.value, at);
  }
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
      const auto names = core::several_of(std::get<std::string>(known->second));
      bf16 &= std::find(names.begin(), names.end(), "bf16") != names.end();
    }
  settings.emplace("strategy.stack.precision", bf16 ? "bf16" : "fp16");
}

namespace {

/// What `manyworlds net` has a use for: the machines' links.
bool network_needs(const std::string& key) {
  if (key.starts_with("model.")) return false;
  return !key.starts_with("cluster.gpu.") || key.starts_with("cluster.gpu.scale_up");
}

/// Whether anything of a section that the catalog may fill was given.
bool names_nothing(const Settings& settings, const Branch& branch, const std::string& section) {
  return std::none_of(branch.options.begin(), branch.options.end(), [&](const OptionInfo& info) {
    return info.name != "name" && !has_default(info) && settings.count(join(section, info.name)) > 0;
  });
}

std::string ask_for(const Settings& settings, const Branch& branch, const std::string& key, const OptionInfo& info) {
  const auto name = settings.find(key.substr(0, key.rfind('.')) + ".name");
  const std::string whose = name == settings.end() ? "" : std::get<std::string>(name->second);
  const std::string section = key.substr(0, key.rfind('.'));
  const bool told_by_many = branch.catalog == "models" || branch.catalog == "gpus";
  if (told_by_many && whose.empty() && names_nothing(settings, branch, section))
    return fmt::format(
        "'{}' is missing; name one of the catalog (`manyworlds list {}`), or give its figures, '{}' first", section,
        branch.catalog, info.name);
  if (branch.catalog.empty() || whose.empty())
    return fmt::format("'{}' is missing; give {}", key, import::wanted(info));
  return fmt::format("'{}' of {} is published nowhere; give {}, as in {{like: {}, {}: …}} or --set {}=…", key, whose,
                     import::wanted(info), whose, info.name, key);
}

/// Without these a world runs, and its answer lacks a column.
constexpr std::array<std::string_view, 10> kNoStepNeeds{"cluster.usd_per_gpu_hour",    "cluster.gpu.board_power_w",
                                                        "cluster.gpu.idle_power_w",    "cluster.host_power_w",
                                                        "cluster.switch_port_power_w", "cluster.pue",
                                                        "cluster.usd_per_gpu",         "cluster.lifetime_years",
                                                        "cluster.utilisation",         "cluster.usd_per_kwh"};
constexpr std::string_view kSectionNoStepNeeds = "training.";

/// Of more nodes the key that tells the same of the first ones.
std::string as_of_first_nodes(const std::string& key) {
  for (const std::string group : kNodeGroups)
    if (key.starts_with("cluster." + group + ".")) return "cluster." + key.substr(9 + group.size());
  return key;
}

std::pair<std::string, std::string> absent_in(const Settings& settings, Scope scope, const Branch& branch,
                                              const std::string& path) {
  const std::vector<OptionInfo>* options = &branch.options;
  if (!branch.alternatives.empty())
    options = &find_alternative(branch, std::get<std::string>(settings.at(path)))->options;
  for (const OptionInfo& info : *options) {
    const std::string given = join(path, info.name);
    if (settings.count(given)) continue;
    const std::string key = as_of_first_nodes(given);
    if (given != key && key == "cluster.nic_gbps") continue;  // as of those
    const bool alone = std::get<std::int64_t>(settings.at("cluster.gpus_per_node")) == 1;
    const bool read = std::get<std::string>(settings.at("topology")) == "graph";  // rates are those of the file
    if ((alone || read) && key == "cluster.gpu.scale_up_gb_per_s") continue;
    if (read && key == "cluster.nic_gbps") continue;
    if (std::find(kNoStepNeeds.begin(), kNoStepNeeds.end(), key) != kNoStepNeeds.end()) continue;
    if (key.starts_with(kSectionNoStepNeeds)) continue;
    if (scope == Scope::network && !network_needs(key)) continue;
    return {given, ask_for(settings, branch, given, info)};
  }
  for (const Branch& child : branch.branches) {
    if (child.optional && !is_open(settings, join(path, child.name))) continue;
    if (auto found = absent_in(settings, scope, child, join(path, child.name)); !found.first.empty()) return found;
  }
  return {};
}

nlohmann::json document_of(const Settings& settings, const Branch& branch, const std::string& path) {
  nlohmann::json made = nlohmann::json::object();
  const auto copy = [&](nlohmann::json& to, const std::vector<OptionInfo>& options) {
    for (const OptionInfo& info : options)
      if (const auto found = settings.find(join(path, info.name)); found != settings.end())
        to[info.name] = to_json(found->second);
  };
  if (!branch.alternatives.empty()) {
    const std::string& chosen = std::get<std::string>(settings.at(path));
    made[chosen] = nlohmann::json::object();
    copy(made[chosen], find_alternative(branch, chosen)->options);
    return made;
  }
  copy(made, branch.options);
  for (const Branch& child : branch.branches)
    if (!child.optional || is_open(settings, join(path, child.name)))
      made[child.name] = document_of(settings, child, join(path, child.name));
  return made;
}

}  // namespace

std::pair<std::string, std::string> absent_figure(const Settings& settings, Scope scope) {
  return absent_in(settings, scope, vocabulary(), "");
}

nlohmann::json to_json(const OptionValue& value) {
  return std::visit([](const auto& held) { return nlohmann::json(held); }, value);
}

nlohmann::json document(const Settings& settings) {
  return document_of(settings, vocabulary(), "");
}

}  // namespace manyworlds::experiments
