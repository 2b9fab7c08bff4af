// Assigns values by walking the config schema and the document in parallel.
#include "experiments/settings/settings.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "experiments/key_contents/architecture.hpp"
#include "experiments/settings/key_aliases.hpp"
#include "experiments/settings/key_names.hpp"
#include "experiments/settings/network_lengths.hpp"
#include "experiments/settings/teacher.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::OptionInfo;
using core::OptionValue;
using import::Entry;
using import::Node;

constexpr const char* kModel = "model";
constexpr const char* kSequence = "model.sequence";
constexpr const char* kArchitecture = "model.architecture";
constexpr const char* kTeacher = "model.teacher";

/// Tells which components of a section have an option.
std::string owners_text(const Section& section, const std::string& option) {
  std::vector<std::string> owners;
  for (const Choice& one : section.choices)
    if (find_option(one.options, option)) owners.push_back(fmt::format("'{}'", one.name));
  return fmt::format("it is an option of {}", fmt::join(owners, " and "));
}

}  // namespace

void Assigner::set(const std::string& path, OptionValue value, const Node& at) {
  if (path == kArchitecture) check_architecture(at, std::get<std::string>(value));
  if (path == kTeacher) value = teacher_text(catalog_, std::get<std::string>(value), at);
  settings_.set(path, std::move(value));
  if (path == kSequence) settings_.erase(deferred_mark(kSequence));
  if (path == kArchitecture) forget_described_sequence(settings_);
  record_place(path, at);
}

void Assigner::record_place(const std::string& path, const Node& at) {
  if (!places_) return;
  Node place;
  place.file = at.file;
  place.line = at.line;
  (*places_)[path] = place;
}

/// They are found once for each practice; settings that begin with them share their block.
void Assigner::defaults() {
  const auto found = [this] {
    settings_ = {};
    reset(config_schema(), "");
    settings_.share();
    return settings_;
  };
  if (practice_ == Practice::today) {
    static const Settings today = found();
    settings_ = today;
  } else {
    static const Settings of_2021 = found();
    settings_ = of_2021;
  }
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
    if (starts_with_default(prefix + info.name, info)) settings_.set(prefix + info.name, info.default_value);
  if (!section.choices.empty()) {
    const std::string& of_2021 = section.choices.front().name;
    const std::string first = practice_ == Practice::today ? default_component_today(path, of_2021) : of_2021;
    settings_[path] = first;
    for (const OptionInfo& info : find_choice(section, first)->options)
      if (starts_with_default(prefix + info.name, info)) settings_.set(prefix + info.name, info.default_value);
    if (practice_ == Practice::today && is_deferred_today(path)) settings_[deferred_mark(path)] = true;
  }
  for (const Section& child : section.subsections)
    if (!child.optional) reset(child, prefix + child.name);
}

/// Gives absent optional sections on the way to `path` their defaults.
void Assigner::add_optional_sections(const std::string& path) {
  const std::vector<Section>* sections = &config_schema().subsections;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = std::string_view(path).substr(begin, end - begin);
    const auto section =
        std::find_if(sections->begin(), sections->end(), [&](const Section& one) { return one.name == part; });
    if (section == sections->end()) return;
    if (const std::string at = path.substr(0, end); section->optional && !settings_.has_below(at)) reset(*section, at);
    sections = &section->subsections;
    begin = end + 1;
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
      value.fail(fmt::format("'{}' means nothing to {} '{}', which is chosen here; {}", target.path,
                             target.choice_section->name, chosen, owners_text(*target.choice_section, target.member)));
  } else if (!target.component.empty()) {
    const std::string& chosen = std::get<std::string>(settings_.at(parent));
    if (chosen != target.component)
      value.fail(
          fmt::format("'{0}.{1}.{2}' is an option of {0} '{1}', but '{3}' is chosen here; choose '{1}' with it, "
                      "as in {0}={{{1}: {{{2}: {4}}}}}",
                      parent, target.component, target.option->name, chosen, import::flow_text(value)));
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
    const std::string key = join_key(path, entry.key), resolved = key_for_alias(key);
    check_once(resolved.empty() ? key : resolved, entry);
    assign_entry(section, path, entry);
  }
  if (path == kModel && node.find("architecture") != nullptr &&
      (node.find("sequence") != nullptr || node.find("like") != nullptr))
    remember_described_sequence(settings_);
  // A full or short key beside the sections, such as "strategy.tp", takes precedence over the value in its section, as
  // "stack.precision" in "strategy" does.
  for (const Entry& entry : node.entries) {
    if (!is_typed(entry)) continue;
    Node at = place_of_entry(entry);
    if (entry.value.kind == Node::Kind::scalar) at.kind = entry.value.kind, at.text = entry.value.text;  // for hints
    const Target target = path.empty() ? find_typed_key(entry.key, at) : find_key(join_key(path, entry.key), at);
    check_once(target.path, entry);
    assign(target, entry.value);
  }
}

void Assigner::assign_entry(const Section& section, const std::string& path, const Entry& entry) {
  const std::string key = join_key(path, entry.key);
  if (const OptionInfo* option = find_option(section.options, entry.key)) {
    if (entry.value.kind == Node::Kind::sequence && !option->is_list && !entry.value.items.empty())
      entry.value.fail(fmt::format("'{}' must be {}, not {}; several are an axis of a sweep, as in axes: {{{}: {}}}",
                                   key, import::expected_text(*option), import::describe(entry.value), key,
                                   import::flow_text(entry.value)));
    return set(key, import::read_value(entry.value, *option, key), entry.value);
  }
  if (const Section* child = find_section(section.subsections, entry.key))
    return assign_section(*child, key, entry.value);
  if (const std::string resolved = key_for_alias(key); !resolved.empty())
    return assign(find_key(resolved, place_of_entry(entry)), entry.value);
  throw InputError(fmt::format("unknown key '{}'{}", key, hint_in_section(section, key)), *entry.value.file,
                   entry.line);
}

namespace {

/// Returns whether one of the choices of a section has this option.
bool has_option(const Section& section, const std::string& name) {
  return std::any_of(section.choices.begin(), section.choices.end(),
                     [&](const Choice& choice) { return find_option(choice.options, name) != nullptr; });
}

}  // namespace

void Assigner::assign_choice(const Section& section, const std::string& path, const Node& node) {
  const bool named = node.kind == Node::Kind::scalar;
  if (!named && (node.kind != Node::Kind::mapping || node.entries.size() != 1))
    node.fail(fmt::format("'{}' must be one name, or {{name: {{options}}}}, not {}", path,
                          node.kind != Node::Kind::mapping ? import::describe(node)
                          : node.entries.empty()           ? "an empty mapping"
                                                           : "a mapping of several"));
  const std::string& typed = named ? node.text : node.entries[0].key;
  const Choice* chosen = choice_named(section, typed);
  if (!chosen)
    node.fail(fmt::format("unknown {} '{}'{}", section.name, typed,
                          named || !has_option(section, typed)
                              ? suggestion(typed, names_in(section))
                              : fmt::format(", but an option: {0}: {{NAME: {{{1}: …}}}} with the name of a {2}, or "
                                            "{0}.{1} beside the sections",
                                            path, typed, section.name)));
  const std::string& name = chosen->name;
  reset(section, path);
  settings_.erase_if([&](const auto& setting) { return setting.first.starts_with(path + "."); });
  set(path, name, node);
  for (const OptionInfo& info : chosen->options)
    if (const std::string key = join_key(path, info.name); starts_with_default(key, info))
      settings_.set(key, info.default_value);
  if (named || node.entries[0].value.kind == Node::Kind::null) return;
  const Node& options = node.entries[0].value;
  if (options.kind != Node::Kind::mapping)
    options.fail(fmt::format("'{}.{}' must be a mapping of options ({}), not {}", path, name,
                             fmt::join(names_of(chosen->options), ", "), import::describe(options)));
  for (const Entry& entry : options.entries) {
    const OptionInfo* option = find_option(chosen->options, entry.key);
    const std::string key = fmt::format("{}.{}.{}", path, name, entry.key);
    if (!option)
      throw InputError(fmt::format("unknown key '{}'{}", key, suggestion(entry.key, names_of(chosen->options))),
                       *entry.value.file, entry.line);
    set(join_key(path, entry.key), import::read_value(entry.value, *option, key), entry.value);
  }
}

void Assigner::assign_catalog_entry(const Section& section, const std::string& path, const std::string& name,
                                    const Node& at) {
  const auto& [resolved, entry] = catalog_.find_named(section.catalog, name, at);
  reset(section, path);
  record_place(path, at);
  set(join_key(path, "name"), resolved, at);
  if (section.catalog == "stacks" && practice_ == Practice::today) return;  // its switches are deferred
  for (const auto& [key, sourced] : entry.values) {
    if (const Section* child = find_section(section.subsections, key))
      assign_catalog_entry(*child, join_key(path, key), std::get<std::string>(sourced.value), at);
    else
      set(join_key(path, key), sourced.value, at);
  }
  if (!entry.note.empty()) {
    settings_[deferred_mark(path)] = entry.note;
    if (entry.assumed_sequence > 0) settings_[deferred_mark(kSequence)] = entry.assumed_sequence;
  }
  if (path == kModel) remember_described_sequence(settings_);
}

void derive(Settings& settings) {
  const auto integer = [&](const char* key) -> std::int64_t {
    const OptionValue* found = settings.value(key);
    return found == nullptr ? 0 : std::get<std::int64_t>(*found);
  };
  if (integer("model.kv_heads") == 0 && integer("model.heads") > 0)
    settings.set("model.kv_heads", integer("model.heads"));
  if (integer("model.ffn_hidden") == 0 && integer("model.hidden") > 0)
    settings.set("model.ffn_hidden", 4 * integer("model.hidden"));
  bool bf16 = true;
  for (const char* nodes : {"cluster.", "cluster.second.", "cluster.third."})
    if (const OptionValue* known = settings.value(std::string(nodes) + "gpu.precisions"); known != nullptr) {
      const auto names = core::split_list(std::get<std::string>(*known));
      bf16 &= std::find(names.begin(), names.end(), "bf16") != names.end();
    }
  settings.add("strategy.stack.precision", bf16 ? "bf16" : "fp16");
}

namespace {

nlohmann::json document_of(const Settings& settings, const Section& section, const std::string& path) {
  nlohmann::json result = nlohmann::json::object();
  const auto copy = [&](nlohmann::json& to, const std::vector<OptionInfo>& options) {
    for (const OptionInfo& info : options)
      if (const auto found = settings.find(join_key(path, info.name)); found != settings.end())
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
    if (!child.optional || settings.has_below(join_key(path, child.name)))
      result[child.name] = document_of(settings, child, join_key(path, child.name));
  return result;
}

}  // namespace

nlohmann::json to_json(const OptionValue& value) {
  return std::visit([](const auto& held) { return nlohmann::json(held); }, value);
}

nlohmann::json document(const Settings& settings) {
  return document_of(settings, config_schema(), "");
}

}  // namespace manyworlds::experiments
