// What all points of a sweep share: base, axes, conditions, overrides.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "experiments/catalog/cluster_files.hpp"
#include "experiments/settings/key_aliases.hpp"
#include "experiments/sweep/best.hpp"
#include "experiments/sweep/measured_step.hpp"
#include "experiments/sweep/sweep_reader.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/text.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using import::Entry;
using import::Node;

void clear_lines(Node& node) {
  node.line = 0;  // an override has no lines; its name identifies it
  for (Node& item : node.items) clear_lines(item);
  for (Entry& entry : node.entries) entry.line = 0, clear_lines(entry.value);
}

/// Returns a component with the options that are given to it: {zipf: {exponent: 1}} of routing.zipf={exponent: 1}.
Node component_node(const Target& target, const Node& options) {
  Node named;
  named.kind = Node::Kind::mapping;
  named.file = options.file, named.line = options.line;
  named.entries.push_back({target.component, options.line, options});
  return named;
}

constexpr const char* kSample = "sample";
constexpr const char* kAssume = "assume";

}  // namespace

void SweepReader::read(const std::string& text, const std::vector<std::string>& overrides) {
  sweep_.text = text;
  read_document(import::parse_yaml(text, file_), overrides);
}

void SweepReader::read(const ComposedDocument& document, const std::vector<std::string>& overrides) {
  sweep_.text = document.text;
  changes_ = document.changes;
  for (const auto& [path, text] : document.files) {
    input_bytes_ += text.size();
    inputs_->emplace(path, text);
  }
  read_document(document.root, overrides);
}

void SweepReader::read_document(const Node& root, const std::vector<std::string>& overrides) {
  sweep_.overrides = overrides;
  for (const std::string& given : overrides) read_assume_override(given);
  read_top(root);
  read_overrides(overrides);
}

void SweepReader::read_top(const Node& root) {
  if (root.kind != Node::Kind::mapping)
    root.fail(fmt::format("a sweep must be a mapping with 'base', not {}", import::describe(root)));
  const std::vector<std::string> known{"name",   "assume",    "base", "axes",  "zip", "where",
                                       "sample", "objective", "best", "front", "gap", "measured"};
  for (const Entry& entry : root.entries)
    if (std::find(known.begin(), known.end(), entry.key) == known.end()) {
      const bool inner =
          find_section(config_schema().subsections, entry.key) || find_option(config_schema().options, entry.key);
      const std::string hint = unknown_key_hint(entry.key);
      throw InputError(fmt::format("unknown key '{}'{}", entry.key,
                                   inner           ? "; it belongs under 'base'"
                                   : !hint.empty() ? hint
                                                   : suggestion(entry.key, known)),
                       file_, entry.line);
    }
  top_.file = root.file;
  top_.line = root.line;
  const Node *base = root.find("base"), *name = root.find("name"), *objective = root.find("objective");
  if (!base) root.fail("'base' is missing: the experiment that axes start from");
  sweep_.name = name ? import::read_line(*name, "name") : std::filesystem::path(file_).stem().string();
  std::vector<std::string> names;
  for (const Objective& one : objectives()) names.push_back(one.name);
  sweep_.objective = objective ? import::read_line(*objective, "objective", names) : names.front();
  if (objective) objective_place_ = *objective;
  const Node* front = root.find("front");
  front_place_ = front ? *front : top_;
  read_best(root.find("best"), front, root.find("gap"), sweep_);
  if (const Node* measured = root.find("measured")) sweep_.measured = read_measured(*measured);
  if (const Node* sample = root.find(kSample)) sample_ = read_sample(*sample);

  if (const Node* assume = root.find(kAssume)) read_assume(*assume);
  Assigner assigner(catalog_, base_, &places_, practice());
  assigner.defaults();
  assigner.assign_base(*base);
  for (const Node& change : changes_) assigner.assign_base(change);
  const Node *axes = root.find("axes"), *zip = root.find("zip"), *where = root.find("where");
  factors_ = read_factors(axes, zip);
  sweep_.single = factors_.empty();
  axes_place_ = axes ? *axes : zip ? *zip : top_;
  if (!where) return;
  if (where->kind != Node::Kind::sequence)
    where->fail(fmt::format("'where' must be a list of expressions, not {}", import::describe(*where)));
  for (const Node& expression : where->items) {
    conditions_.push_back(expression);
    constraints_.emplace_back(expression);
    sweep_.where.push_back(constraints_.back().text());
  }
}

/// Reads `assume` before anything else, since it decides with which components sections begin.
void SweepReader::read_assume_override(const std::string& given) {
  const std::string assume = std::string(kAssume) + "=";
  if (!given.starts_with(assume)) return;
  Node value = import::parse_yaml(given.substr(assume.size()), "--set " + given);
  clear_lines(value);
  if (practice_) value.fail("'assume' is set twice; keep one");
  read_assume(value);
}

/// The first value wins, so --set has precedence over the document.
void SweepReader::read_assume(const Node& node) {
  const Practice named = practice_named(import::read_line(node, kAssume, practice_names()));
  if (!practice_) practice_ = named;
}

void SweepReader::read_overrides(const std::vector<std::string>& overrides) {
  for (const std::string& given : overrides) read_override(given);
  set_zipped();
  check_overrides();
}

/// Gives the axes of a zip their values, which all of them must have.
void SweepReader::set_zipped() {
  for (std::size_t f = 0; f < factors_.size(); ++f) {
    std::vector<const ZippedOverride*> given(factors_[f].axes.size(), nullptr);
    const ZippedOverride* last = nullptr;
    for (const ZippedOverride& one : zipped_) {
      if (one.factor != f) continue;
      if (given[one.axis] != nullptr)
        one.value.fail(fmt::format("'{}' is set twice; keep one", factors_[f].axes[one.axis].target.path));
      given[one.axis] = last = &one;
    }
    if (last == nullptr) continue;
    std::vector<std::string> missing;
    for (std::size_t a = 0; a < given.size(); ++a)
      if (given[a] == nullptr) missing.push_back(factors_[f].axes[a].target.path);
    if (!missing.empty())
      last->value.fail(fmt::format("'{}' is varied together with others in a zip; set {} too, or edit the zip",
                                   factors_[f].axes[last->axis].target.path, fmt::join(missing, " and ")));
    for (std::size_t a = 0; a < given.size(); ++a) factors_[f].axes[a].values = {given[a]->value};
  }
}

std::vector<std::string> SweepReader::overrides_of(const Chosen& chosen) const {
  std::vector<std::string> all;
  const auto is_axis = [&](const std::string& given) {
    const std::string key = given.substr(0, given.find('='));
    if (key == kAssume || key == kSample || key.starts_with(std::string(kSample) + ".")) return false;
    const std::string path = find_typed_key(key, top_).path;
    return std::any_of(factors_.begin(), factors_.end(), [&](const Factor& factor) {
      return std::any_of(factor.axes.begin(), factor.axes.end(),
                         [&](const Axis& axis) { return axis.target.path == path; });
    });
  };
  for (const std::string& given : sweep_.overrides)
    if (!is_axis(given)) all.push_back(given);
  for (std::size_t f = 0; f < factors_.size(); ++f)
    for (const Axis& axis : factors_[f].axes)
      all.push_back(fmt::format("{}={}", axis.target.path, import::flow_text(axis.values[chosen[f]])));
  return all;
}

void SweepReader::read_override(const std::string& given) {
  const std::string shown = "--set " + given;
  const std::size_t equals = given.find('=');
  if (equals == std::string::npos || equals == 0) throw InputError("must be key=value, such as strategy.tp=8", shown);
  const bool is_empty = equals + 1 == given.size();
  Node value = import::parse_yaml(is_empty ? "''" : given.substr(equals + 1), shown);
  clear_lines(value);
  Node place = value;
  place.text.clear();
  if (const std::string section = std::string(kSample) + "."; given.starts_with(section)) {
    if (!sample_) sample_.emplace();
    return read_sample_entry(given.substr(section.size(), equals - section.size()), value, place, *sample_);
  }
  if (given.substr(0, equals) == kSample) {
    if (value.kind != Node::Kind::scalar || value.text != "none")
      value.fail("'sample' may be none, for all points; or give sample.experiments and sample.seed");
    sample_.reset();
    return;
  }
  if (given.substr(0, equals) == kAssume) return;  // handled by read_assume_override()
  const Target target = find_typed_key(given.substr(0, equals), value);
  if (is_empty && !takes_empty_text(target)) value.fail("has no value behind '='; give one, or leave --set out");
  for (const Override& other : overrides_)
    if (other.target.path == target.path) value.fail(fmt::format("'{}' is set twice; keep one", target.path));
  for (std::size_t f = 0; f < factors_.size(); ++f)
    for (std::size_t a = 0; a < factors_[f].axes.size(); ++a) {
      Axis& axis = factors_[f].axes[a];
      if (axis.target.path != target.path) continue;
      if (factors_[f].size() > 1 && factors_[f].axes.size() > 1) {
        zipped_.push_back({f, a, value});
        return;
      }
      axis.any = false;
      axis.values = {target.component.empty() || target.option != nullptr
                         ? value
                         : component_node(target, value)};  // an axis that is overridden stays a column, with one value
      return;
    }
  overrides_.push_back({target, std::move(value)});
}

void SweepReader::check_overrides() const {
  for (const Override& one : overrides_)
    for (const Factor& factor : factors_)
      for (const Axis& axis : factor.axes)
        if (mentions(one.value, one.target, axis.target))
          one.value.fail(
              fmt::format("'{}' is an axis; --set {}=… gives it one value", axis.target.path, axis.target.path));
}

Sweep parse_sweep(const std::string& text, const std::string& file, const std::vector<std::string>& overrides,
                  const Catalog& catalog, const ReadOptions& options) {
  const ExtendedCatalog extended(catalog, text, file, overrides);
  SweepReader reader(file, extended.get(), options);
  reader.read(text, overrides);
  return reader.list();
}

Sweep compose_sweep(const ComposedDocument& document, const std::string& file,
                    const std::vector<std::string>& overrides, const Catalog& catalog, const ReadOptions& options) {
  SweepReader reader(file, catalog, options);
  reader.read(document, overrides);
  return reader.list();
}

Sweep read_sweep(const std::string& path, const std::vector<std::string>& overrides, const std::string& catalog_folder,
                 const ReadOptions& options) {
  const std::string text = import::read_text(path);
  return parse_sweep(text, path, overrides, Catalog(catalog_folder), options);
}

}  // namespace manyworlds::experiments
