#include "farm/cli/parsing/option_values.hpp"

#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "core/base/error.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::farm::commands {

namespace {

constexpr std::int64_t kMaxDuration_s = 10LL * 365 * 86'400;

struct Unit {
  char letter;
  std::int64_t seconds;
};
constexpr Unit kUnits[] = {{'d', 86'400}, {'h', 3'600}, {'m', 60}, {'s', 1}};

/// Removes a part such as "30m" from the front of `text` and returns it in seconds; -1 if there is none.
std::int64_t take_duration_part(std::string_view& text) {
  std::int64_t count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end == text.data() + text.size() || count < 0 || count > kMaxDuration_s) return -1;
  for (const Unit& unit : kUnits) {
    if (*end != unit.letter) continue;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return count * unit.seconds;
  }
  return -1;
}

}  // namespace

core::OptionValue parse_option_value(const std::string& text, const core::OptionInfo& info, const std::string& option) {
  experiments::import::Node node;
  node.kind = experiments::import::Node::Kind::scalar;
  node.text = text;
  node.file = std::make_shared<const std::string>(option + " " + text);
  return experiments::import::read_value(node, info, info.name);
}

std::int64_t parse_size(const std::string& text, const std::string& option, std::int64_t minimum) {
  core::OptionInfo info;
  info.name = option.substr(option.find_first_not_of('-'));
  info.unit = "bytes";
  info.minimum = static_cast<double>(minimum);
  info.maximum = static_cast<double>(std::int64_t{1} << 50);
  return std::get<std::int64_t>(parse_option_value(text, info, option));
}

std::chrono::seconds parse_duration(const std::string& text, const std::string& option) {
  std::int64_t total_s = 0;
  std::string_view remaining = text;
  while (!remaining.empty() && text != "0") {
    const std::int64_t part = take_duration_part(remaining);
    if (part < 0 || (total_s += part) > kMaxDuration_s)
      throw core::InputError(fmt::format("{} {}: it takes a duration, as in 90s, 20m, 1h30m or 2d", option, text));
  }
  if (text.empty()) throw core::InputError(fmt::format("{}: it takes a duration, as in 90s, 20m, 1h30m or 2d", option));
  return std::chrono::seconds(total_s);
}

}  // namespace manyworlds::farm::commands
