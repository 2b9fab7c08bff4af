#include "farm/cli/word_values.hpp"

#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "core/base/error.hpp"
#include "experiments/text/scalar.hpp"

namespace manyworlds::farm::commands {

namespace {

constexpr std::int64_t kLongest_s = 10LL * 365 * 86'400;

struct Unit {
  char letter;
  std::int64_t seconds;
};
constexpr Unit kUnits[] = {{'d', 86'400}, {'h', 3'600}, {'m', 60}, {'s', 1}};

/// The seconds a part like "30m" at the front of `text` says, taken off it; -1 where there is none.
std::int64_t take_part(std::string_view& text) {
  std::int64_t count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end == text.data() + text.size() || count < 0 || count > kLongest_s) return -1;
  for (const Unit& unit : kUnits) {
    if (*end != unit.letter) continue;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return count * unit.seconds;
  }
  return -1;
}

}  // namespace

core::OptionValue option_value(const std::string& text, const core::OptionInfo& info, const std::string& word) {
  experiments::import::Node node;
  node.kind = experiments::import::Node::Kind::scalar;
  node.text = text;
  node.file = std::make_shared<const std::string>(word + " " + text);
  return experiments::import::read_value(node, info, info.name);
}

std::int64_t size_of(const std::string& text, const std::string& word, std::int64_t minimum) {
  core::OptionInfo info;
  info.name = word.substr(word.find_first_not_of('-'));
  info.unit = "bytes";
  info.minimum = static_cast<double>(minimum);
  info.maximum = static_cast<double>(std::int64_t{1} << 50);
  return std::get<std::int64_t>(option_value(text, info, word));
}

std::chrono::seconds duration_of(const std::string& text, const std::string& word) {
  std::int64_t all = 0;
  std::string_view rest = text;
  while (!rest.empty() && text != "0") {
    const std::int64_t part = take_part(rest);
    if (part < 0 || (all += part) > kLongest_s)
      throw core::InputError(fmt::format("{} {}: it takes a duration, as in 90s, 20m, 1h30m or 2d", word, text));
  }
  if (text.empty()) throw core::InputError(fmt::format("{}: it takes a duration, as in 90s, 20m, 1h30m or 2d", word));
  return std::chrono::seconds(all);
}

}  // namespace manyworlds::farm::commands
