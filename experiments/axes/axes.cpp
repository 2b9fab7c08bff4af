// Reads axes and zip groups. Ranges are expanded to value nodes here, so that later stages see lists only.
#include "experiments/axes/axes.hpp"

#include <algorithm>
#include <set>

#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::OptionInfo;
using core::OptionValue;
using import::Entry;
using import::Node;

constexpr std::size_t kMaxAxisValues = 10'000;  // per axis

Node key_place(const Entry& entry) {
  Node place;
  place.kind = Node::Kind::scalar;
  place.text = entry.key;
  place.file = entry.value.file;
  place.line = entry.line;
  return place;
}

Node scalar(const Node& at, std::string text) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = std::move(text);
  node.file = at.file;
  node.line = at.line;
  return node;
}

struct Step {
  char kind = '*';
  OptionValue increment;
};

Step read_step(const Node& node, const OptionInfo& info) {
  const auto fail_step = [&] {
    node.fail(fmt::format("the step of a range must be \"*N\" with N > 1 or \"+N\" with N > 0, not {}",
                          import::describe(node)));
  };
  if (node.kind != Node::Kind::scalar || node.text.size() < 2 || (node.text[0] != '*' && node.text[0] != '+'))
    fail_step();
  OptionInfo plain;
  plain.kind = info.kind;
  plain.unit = node.text[0] == '+' ? info.unit : "";
  Step step{node.text[0], import::read_value(scalar(node, node.text.substr(1)), plain, "range")};
  const double increment = std::holds_alternative<double>(step.increment)
                               ? std::get<double>(step.increment)
                               : static_cast<double>(std::get<std::int64_t>(step.increment));
  if (increment <= (step.kind == '*' ? 1 : 0)) fail_step();
  return step;
}

template <class Number>
std::vector<Node> count_up(const Node& node, Number first, Number last, const Step& step) {
  if (first > last || (step.kind == '*' && first <= 0))
    node.fail(fmt::format("a range must begin at most where it ends{}: {} to {}",
                          step.kind == '*' ? ", and above 0 to multiply" : "", first, last));
  const Number increment = std::get<Number>(step.increment);
  std::vector<Node> values;
  Number value = first;
  while (value <= last) {
    if (values.size() >= kMaxAxisValues) node.fail(fmt::format("a range of more than {} values", kMaxAxisValues));
    values.push_back(scalar(node, fmt::format("{}", value)));
    if constexpr (std::is_integral_v<Number>) {
      Number next = 0;
      if (step.kind == '*' ? __builtin_mul_overflow(value, increment, &next)
                           : __builtin_add_overflow(value, increment, &next))
        break;
      value = next;
    } else {
      // Sums start from the first value, so that rounding errors do not add up; a relative slack of 1e-12 keeps the
      // last value.
      value = step.kind == '*' ? value * increment : first + static_cast<double>(values.size()) * increment;
      if (value > last && value <= last * (1 + 1e-12)) value = last;
    }
  }
  return values;
}

std::vector<Node> read_range(const Node& node, const Target& target) {
  const OptionInfo* info = option_of(target);
  if (!info || (info->kind != OptionInfo::Kind::integer && info->kind != OptionInfo::Kind::real))
    node.fail(fmt::format("'{}' is no number, so it has no range; give a list", target.path));
  if (node.entries.size() != 1 || node.entries[0].key != "range")
    throw InputError(fmt::format("an axis is a list or {{range: [first, last, \"*2\"]}}; unknown key '{}'",
                                 node.entries.empty() ? "" : node.entries.back().key),
                     *node.file, node.line);
  const Node& range = node.entries[0].value;
  if (range.kind != Node::Kind::sequence || range.items.size() != 3)
    range.fail("a range must be [first, last, \"*N\" or \"+N\"]");
  const OptionValue first = import::read_value(range.items[0], *info, target.path);
  const OptionValue last = import::read_value(range.items[1], *info, target.path);
  const Step step = read_step(range.items[2], *info);
  if (info->kind == OptionInfo::Kind::integer)
    return count_up(range, std::get<std::int64_t>(first), std::get<std::int64_t>(last), step);
  return count_up(range, std::get<double>(first), std::get<double>(last), step);
}

Axis read_axis(const Entry& entry) {
  Axis axis;
  axis.key = entry.key;
  axis.place = key_place(entry);
  axis.target = find_typed_key(entry.key, axis.place);
  axis.any = entry.value.kind == Node::Kind::scalar && entry.value.text == "any" && may_be_any(axis.target.path);
  axis.values = axis.any ? std::vector{scalar(entry.value, "none")} : read_values(entry.value, axis.target);
  return axis;
}

/// Checks that no two points of a sweep are the same experiment: the values of an axis differ, and so do the
/// combinations of a zip group.
void check_repeats(const Factor& factor) {
  std::set<std::vector<std::string>> seen;
  for (std::size_t i = 0; i < factor.size(); ++i) {
    std::vector<std::string> combination;
    for (const Axis& axis : factor.axes) combination.push_back(label(axis.values[i]));
    if (seen.insert(combination).second) continue;
    const Axis& first = factor.axes.front();
    if (factor.axes.size() == 1)
      first.values[i].fail(fmt::format("axis '{}' repeats the value {}; keep one", first.key, combination.front()));
    first.values[i].fail(
        fmt::format("the zip group of '{}' repeats {} together; keep one", first.key, fmt::join(combination, ", ")));
  }
}

const Node& mapping(const Node& node, const char* what) {
  if (node.kind != Node::Kind::mapping || node.entries.empty())
    node.fail(fmt::format(
        "'{}' must be a mapping of keys to lists, not {}", what,
        node.entries.empty() && node.kind == Node::Kind::mapping ? "an empty one" : import::describe(node)));
  return node;
}

/// Checks that no two axes set the same key, since nothing says which one would win.
void check_clashes(const std::vector<Factor>& factors) {
  std::vector<const Axis*> all;
  for (const Factor& factor : factors)
    for (const Axis& axis : factor.axes) all.push_back(&axis);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < all.size(); ++j) {
      const Axis &later = *all[i], &other = *all[j];
      if (j < i && later.target.path == other.target.path)
        later.place.fail(
            fmt::format("key '{}' is an axis twice (first on line {}); keep one", later.key, other.place.line));
      for (const Node& value : other.values)
        if (mentions(value, other.target, later.target))
          later.place.fail(fmt::format("axis '{}' is also set by the values of axis '{}' on line {}; keep one",
                                       later.key, other.key, other.place.line));
    }
}

}  // namespace

bool may_be_any(const std::string& path) {
  return path == "strategy.stage_layers" || path == "strategy.stage_recompute_layers";
}

const OptionInfo* option_of(const Target& target) {
  if (target.option) return target.option;
  if (!target.choice_section) return nullptr;
  for (const Choice& candidate : target.choice_section->choices)
    if (const OptionInfo* option = find_option(candidate.options, target.member)) return option;
  return nullptr;
}

std::vector<Node> read_values(const Node& node, const Target& target) {
  if (node.kind == Node::Kind::mapping) return read_range(node, target);
  if (node.kind != Node::Kind::sequence || node.items.empty())
    node.fail(fmt::format("axis '{}' must be a list of values{} or {{range: [first, last, \"*2\"]}}, not {}",
                          target.path, may_be_any(target.path) ? ", any," : "",
                          node.kind == Node::Kind::sequence ? "an empty list" : import::describe(node)));
  if (node.items.size() > kMaxAxisValues)
    node.fail(fmt::format("axis '{}' has more than {} values", target.path, kMaxAxisValues));
  return node.items;
}

std::string label(const Node& value) {
  if (value.kind == Node::Kind::scalar) return value.text;
  std::string inside;
  for (const Node& item : value.items) inside += (inside.empty() ? "" : ",") + label(item);
  if (value.kind == Node::Kind::mapping && value.entries.size() == 1 &&
      value.entries[0].value.kind == Node::Kind::mapping)
    return fmt::format("{}({})", value.entries[0].key, label(value.entries[0].value));
  for (const Entry& entry : value.entries) {
    const std::string text = label(entry.value);
    inside += (inside.empty() ? "" : ",") + entry.key +
              (entry.value.kind == Node::Kind::mapping ? "(" + text + ")"
               : text.empty()                          ? ""
                                                       : "=" + text);
  }
  return inside;
}

bool mentions(const Node& value, const Target& above, const Target& target) {
  if (!above.section || !target.path.starts_with(above.path + ".")) return false;
  const Node* node = &value;
  if (!above.section->choices.empty() && above.component.empty() && node->kind == Node::Kind::mapping &&
      node->entries.size() == 1)
    node = &node->entries[0].value;
  std::string rest = target.path.substr(above.path.size() + 1);
  while (node && node->kind == Node::Kind::mapping) {
    const std::size_t dot = rest.find('.');
    node = node->find(rest.substr(0, dot));
    if (dot == std::string::npos) return node != nullptr;
    rest = rest.substr(dot + 1);
  }
  return false;
}

std::vector<Factor> read_factors(const Node* axes, const Node* zip) {
  std::vector<Factor> factors;
  if (axes)
    for (const Entry& entry : mapping(*axes, "axes").entries) {
      factors.push_back({{read_axis(entry)}});
      check_repeats(factors.back());
    }
  if (zip) {
    if (zip->kind != Node::Kind::sequence || zip->items.empty())
      zip->fail(fmt::format("'zip' must be a list of mappings, not {}", import::describe(*zip)));
    for (const Node& group : zip->items) {
      Factor factor;
      for (const Entry& entry : mapping(group, "zip").entries) {
        factor.axes.push_back(read_axis(entry));
        const Axis& axis = factor.axes.back();
        if (axis.any) axis.place.fail(fmt::format("'{}' may be any as an axis of its own, not in a zip", axis.key));
        if (axis.values.size() != factor.size())
          axis.place.fail(fmt::format("'{}' has {} values, but '{}' has {}; keys of a zip group move together",
                                      axis.key, axis.values.size(), factor.axes.front().key, factor.size()));
      }
      check_repeats(factor);
      factors.push_back(std::move(factor));
    }
  }
  check_clashes(factors);
  return factors;
}

}  // namespace manyworlds::experiments
