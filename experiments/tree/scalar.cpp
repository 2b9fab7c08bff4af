// Converts scalars to option values. A decimal number is parsed as a mantissa and a power of ten, so that "1.5KiB" is
// exactly 1536.
#include "experiments/tree/scalar.hpp"

#include "core/base/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

namespace manyworlds::experiments::import {
namespace {

using core::OptionInfo;
using core::OptionValue;
using Kind = OptionInfo::Kind;

enum class Dimension { none, size, time, rate };

struct Unit {
  std::string_view name;
  Dimension dimension;
  std::int64_t scale;  // bytes, picoseconds or bits per second
};

/// A bare suffix of a size ("1G") is a power of two, as in NCCL's tests and dd; for a rate, "400G" is 400 Gb/s.
constexpr std::array<Unit, 27> kUnits{{{"KiB", Dimension::size, 1LL << 10},
                                       {"MiB", Dimension::size, 1LL << 20},
                                       {"GiB", Dimension::size, 1LL << 30},
                                       {"TiB", Dimension::size, 1LL << 40},
                                       {"KB", Dimension::size, 1'000},
                                       {"MB", Dimension::size, 1'000'000},
                                       {"GB", Dimension::size, 1'000'000'000},
                                       {"TB", Dimension::size, 1'000'000'000'000},
                                       {"bytes", Dimension::size, 1},
                                       {"ps", Dimension::time, 1},
                                       {"ns", Dimension::time, 1'000},
                                       {"us", Dimension::time, 1'000'000},
                                       {"ms", Dimension::time, 1'000'000'000},
                                       {"B", Dimension::size, 1},
                                       {"s", Dimension::time, 1'000'000'000'000},
                                       {"Tbps", Dimension::rate, 1'000'000'000'000},
                                       {"Gbps", Dimension::rate, 1'000'000'000},
                                       {"Mbps", Dimension::rate, 1'000'000},
                                       {"Kbps", Dimension::rate, 1'000},
                                       {"kbps", Dimension::rate, 1'000},
                                       {"bps", Dimension::rate, 1},
                                       {"Gb/s", Dimension::rate, 1'000'000'000},
                                       {"K", Dimension::size, 1LL << 10},
                                       {"M", Dimension::size, 1LL << 20},
                                       {"G", Dimension::size, 1LL << 30},
                                       {"T", Dimension::size, 1LL << 40},
                                       {"G", Dimension::rate, 1'000'000'000}}};

const Unit* unit_of(std::string_view name) {
  for (const Unit& unit : kUnits)
    if (unit.name == name) return &unit;
  return nullptr;
}

struct NumberAndUnit {
  std::string_view number;
  const Unit* unit = nullptr;
};

/// Splits off a known suffix if the option's unit accepts one.
NumberAndUnit split_off_unit(std::string_view text, const OptionInfo& info) {
  const Unit* option_unit = unit_of(info.unit);
  if (!option_unit) return {text, nullptr};
  for (const Unit& unit : kUnits) {
    if (unit.dimension != option_unit->dimension || !text.ends_with(unit.name)) continue;
    std::string_view number = text.substr(0, text.size() - unit.name.size());
    while (number.ends_with(' ')) number.remove_suffix(1);
    return {number, &unit};
  }
  return {text, nullptr};
}

using core::Int128;

struct Decimal {
  Int128 mantissa = 0;
  std::int64_t power_of_ten = 1;  // value = mantissa / tens
};

/// Parses [-]digits[.digits] with at most 18 digits in all.
std::optional<Decimal> decimal(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  Decimal value;
  int digits = 0;
  bool point = false;
  for (const char c : text) {
    if (c == '.' && !point && digits > 0) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9' || ++digits > 18) return std::nullopt;
    value.mantissa = value.mantissa * 10 + (c - '0');
    if (point) value.power_of_ten *= 10;
  }
  if (digits == 0 || text.ends_with('.')) return std::nullopt;
  if (negative) value.mantissa = -value.mantissa;
  return value;
}

std::optional<std::int64_t> integer(std::string_view text, const OptionInfo& info) {
  const NumberAndUnit parts = split_off_unit(text, info);
  if (!parts.unit) {
    if (text.starts_with('+')) text.remove_prefix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
  }
  const auto number = decimal(parts.number);
  if (!number) return std::nullopt;
  const Int128 scaled = number->mantissa * parts.unit->scale;
  const Int128 divisor = static_cast<Int128>(number->power_of_ten) * unit_of(info.unit)->scale;
  if (scaled % divisor != 0) return std::nullopt;
  const Int128 value = scaled / divisor;
  if (value > std::numeric_limits<std::int64_t>::max() || value < std::numeric_limits<std::int64_t>::min())
    return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<double> real(std::string_view text, const OptionInfo& info) {
  const NumberAndUnit parts = split_off_unit(text, info);
  std::string_view digits = parts.number;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
    return std::nullopt;
  if (parts.unit)
    value = value * static_cast<double>(parts.unit->scale) / static_cast<double>(unit_of(info.unit)->scale);
  return value;
}

std::string number(double value) {
  return std::abs(value) < 1e15 && value == std::floor(value) ? fmt::format("{:.0f}", value)
                                                              : fmt::format("{:g}", value);
}

[[noreturn]] void refuse(const Node& node, const OptionInfo& info, const std::string& key) {
  node.fail(fmt::format("'{}' must be {}, not {}", key, expected_text(info), describe(node)));
}

}  // namespace

std::string expected_text(const OptionInfo& info) {
  if (info.kind == Kind::boolean) return "true or false";
  if (info.is_list && info.choices.empty())
    return fmt::format("a list of integers from {} to {}, or joined by '+', or none", number(info.minimum),
                       number(info.maximum));
  if (info.kind == Kind::text) {
    if (info.choices.empty()) return "text";
    std::string all_names;
    for (const std::string& name : info.choices) all_names += (all_names.empty() ? "" : ", ") + name;
    if (info.is_list) return fmt::format("some of {}, in a list or joined by '+', or none", all_names);
    return info.choices.size() == 1 ? fmt::format("'{}'", all_names) : "one of " + all_names;
  }
  std::string text = info.kind == Kind::integer ? "an integer" : "a number";
  if (!info.unit.empty()) text += fmt::format(" ({})", info.unit);
  if (std::isfinite(info.minimum)) text += " from " + number(info.minimum);
  if (std::isfinite(info.maximum)) text += " to " + number(info.maximum);
  return text;
}

namespace {

/// Returns a name of the option that `text` is another spelling of, as frameworks have it ("RMSNorm", "rope"), or the
/// text itself.
std::string usual_name(const std::string& text, const OptionInfo& info) {
  const auto plain = [](std::string_view name) {
    std::string letters;
    for (const char c : name)
      if (c != '_' && c != '-') letters += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return letters == "rope" ? std::string("rotary") : letters;
  };
  if (std::find(info.choices.begin(), info.choices.end(), text) != info.choices.end()) return text;
  for (const std::string& name : info.choices)
    if (plain(name) == plain(text)) return name;
  return text;
}

/// Returns whether `text` is valid as one item of a list of names or numbers.
bool is_valid_item(const std::string& text, const OptionInfo& info) {
  if (!info.choices.empty()) return std::find(info.choices.begin(), info.choices.end(), text) != info.choices.end();
  const auto integral = integer(text, info);
  return integral && static_cast<double>(*integral) >= info.minimum && static_cast<double>(*integral) <= info.maximum;
}

/// Returns a YAML list as the joined text that is stored in settings.
std::string joined_items(const Node& node, const OptionInfo& info, const std::string& key) {
  std::vector<std::string> names;
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::scalar || item.text.find('+') != std::string::npos) refuse(item, info, key);
    names.push_back(item.text);
  }
  return core::join_list(names);
}

/// Returns the names in the order of the option's choices, so that each setting has exactly one spelling.
std::string in_choice_order(const std::string& joined_items, const OptionInfo& info) {
  const std::vector<std::string> given = core::split_list(joined_items);
  std::vector<std::string> names;
  for (const std::string& name : info.choices)
    if (std::find(given.begin(), given.end(), name) != given.end()) names.push_back(name);
  return core::join_list(names);
}

}  // namespace

void check_range(const OptionValue& value, const OptionInfo& info, const std::string& key, const Node& at) {
  bool is_valid = true;
  std::string shown;
  if (const auto* integral = std::get_if<std::int64_t>(&value)) {
    is_valid = static_cast<double>(*integral) >= info.minimum && static_cast<double>(*integral) <= info.maximum;
    shown = std::to_string(*integral);
  } else if (const auto* floating = std::get_if<double>(&value)) {
    is_valid = *floating >= info.minimum && *floating <= info.maximum;
    shown = fmt::format("{}", *floating);
  } else if (const auto* text = std::get_if<std::string>(&value); text && info.is_list) {
    std::set<std::string> names;
    for (const std::string& one : core::split_list(*text))
      is_valid = is_valid && is_valid_item(one, info) && (names.insert(one).second || info.choices.empty());
    shown = "'" + *text + "'";
  } else if (text && !info.choices.empty()) {
    is_valid = std::find(info.choices.begin(), info.choices.end(), *text) != info.choices.end();
    shown = "'" + *text + "'";
  }
  if (!is_valid) at.fail(fmt::format("'{}' must be {}, not {}", key, expected_text(info), shown));
}

OptionValue read_value(const Node& node, const OptionInfo& info, const std::string& key) {
  if (info.unit == "structure" && node.kind == Node::Kind::mapping) return flow_text(node);
  const bool list = info.is_list && node.kind == Node::Kind::sequence;
  if (node.kind != Node::Kind::scalar && !list) refuse(node, info, key);
  OptionValue value;
  if (list) {
    value = joined_items(node, info, key);
  } else if (info.kind == Kind::text) {
    value = info.is_list ? node.text : usual_name(node.text, info);
  } else if (node.quoted) {
    refuse(node, info, key);
  } else if (info.kind == Kind::boolean) {
    if (node.text != "true" && node.text != "false") refuse(node, info, key);
    value = node.text == "true";
  } else if (info.kind == Kind::integer) {
    const auto integral = integer(node.text, info);
    if (!integral) refuse(node, info, key);
    value = *integral;
  } else {
    const auto floating = real(node.text, info);
    if (!floating) refuse(node, info, key);
    value = *floating;
  }
  check_range(value, info, key, node);
  if (info.is_list && !info.choices.empty()) value = in_choice_order(std::get<std::string>(value), info);
  return value;
}

std::string read_line(const Node& node, const std::string& key, std::vector<std::string> choices) {
  constexpr std::size_t kMaxLineBytes = 1'000;
  OptionInfo info;
  info.kind = Kind::text;
  info.choices = std::move(choices);
  const std::string text = std::get<std::string>(read_value(node, info, key));
  if (text.empty() || text.size() > kMaxLineBytes || text.find_first_of("\n\t\r") != std::string::npos)
    node.fail(fmt::format("'{}' must be one line of 1 to {} bytes", key, kMaxLineBytes));
  return text;
}

std::string value_text(const OptionValue& value) {
  return std::visit([](const auto& held) { return fmt::format("{}", held); }, value);
}

}  // namespace manyworlds::experiments::import
