// An axis over mappings gives a column of labels and one column per leaf that differs between its values.
#include "experiments/sweep/columns.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "experiments/settings/network_lengths.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionInfo;
using core::OptionValue;
using import::Node;
using import::value_text;

bool is_axis(const std::vector<Factor>& factors, const std::string& path) {
  for (const Factor& factor : factors)
    for (const Axis& axis : factor.axes)
      if (axis.target.path == path) return true;
  return false;
}

/// Converts `value` to the column's kind, which is wider than the option's if some rows have no value.
OptionValue widen(const OptionValue& value, OptionInfo::Kind kind) {
  if (kind == OptionInfo::Kind::text) return value_text(value);
  if (kind == OptionInfo::Kind::real && std::holds_alternative<std::int64_t>(value))
    return static_cast<double>(std::get<std::int64_t>(value));
  return value;
}

}  // namespace

Columns::Columns(const std::vector<Factor>& factors, const Settings& base, const Catalog& catalog) : factors_(factors) {
  for (std::size_t f = 0; f < factors.size(); ++f)
    for (const Axis& axis : factors[f].axes) {
      if (!axis.target.section) {
        add_value(axis.target, true);
        continue;
      }
      columns_.push_back({axis.target.path, OptionInfo::Kind::text, "", axis.target.section->help});
      sources_.push_back({f, &axis, axis.target.path});
      const bool mappings = std::any_of(axis.values.begin(), axis.values.end(),
                                        [](const Node& value) { return value.kind == Node::Kind::mapping; });
      if (mappings) add_leaves(axis, base, catalog);
    }
}

void Columns::add_value(const Target& target, bool everywhere) {
  const OptionInfo* info = option_of(target);
  MANYWORLDS_CHECK(info, "'{}' is no option", target.path);
  OptionInfo::Kind kind = info->kind;
  if (!everywhere)
    kind = kind == OptionInfo::Kind::integer   ? OptionInfo::Kind::real
           : kind == OptionInfo::Kind::boolean ? OptionInfo::Kind::text
                                               : kind;
  columns_.push_back({target.path, kind, info->unit, info->help});
  sources_.push_back({0, nullptr, target.path});
}

void Columns::add_leaves(const Axis& axis, const Settings& base, const Catalog& catalog) {
  const std::string prefix = axis.target.path + ".";
  std::map<std::string, std::set<std::string>> seen;  // values by leaf, as text
  std::map<std::string, std::size_t> times;
  for (const Node& value : axis.values) {
    Settings settings = base;
    Assigner(catalog, settings, nullptr).assign(axis.target, value);
    assume_of_model_file(settings);
    forget_described_sequence(settings);
    derive(settings);
    for (auto at = settings.lower_bound(prefix); at != settings.end() && at->first.starts_with(prefix); ++at) {
      const std::string leaf(at->first);
      seen[leaf].insert(value_text(at->second));
      ++times[leaf];
    }
  }
  for (const auto& [path, values] : seen) {
    const bool everywhere = times[path] == axis.values.size();
    if (path.ends_with(".name") || path == "model.carried" || is_axis(factors_, path)) continue;
    const Target leaf = find_key(path, axis.place);
    // A default that only some components have is no information: the label names the component.
    const bool given = std::any_of(axis.values.begin(), axis.values.end(),
                                   [&](const Node& value) { return mentions(value, axis.target, leaf); });
    if (!option_of(leaf) || (values.size() == 1 && (everywhere || !given))) continue;
    add_value(leaf, everywhere);
  }
}

std::vector<OptionValue> Columns::row(const std::vector<std::size_t>& chosen, const Settings& settings) const {
  std::vector<OptionValue> values;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    if (source.labels) {
      values.emplace_back(label(source.labels->values[chosen[source.factor]]));
      continue;
    }
    const auto found = settings.find(source.path);
    if (found != settings.end())
      values.push_back(widen(found->second, columns_[i].kind));
    else if (columns_[i].kind == OptionInfo::Kind::real)
      values.emplace_back(std::numeric_limits<double>::quiet_NaN());
    else
      values.emplace_back(std::string());
  }
  return values;
}

}  // namespace manyworlds::experiments
