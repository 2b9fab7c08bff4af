#include "experiments/megatron_launch/yaml_lines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/megatron/arguments.hpp"

namespace manyworlds::experiments::jobs {
namespace {

/// Returns a value as YAML reads it again: quoted if it is no plain word.
std::string scalar(const std::string& value) {
  const bool plain = !value.empty() && value.find_first_not_of(
                                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789_.-+/") == std::string::npos;
  if (plain) return value;
  std::string quoted = "'";
  for (const char c : value) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

YamlLine yaml_line(const LaunchArgument& argument) {
  const OwnName own = own_name(argument.name);
  YamlLine line{own.name, own.inverted ? "false" : "true", argument.keys};
  if (argument.values.size() == 1) line.value = scalar(argument.values.front());
  if (argument.values.size() > 1) {
    std::vector<std::string> words;
    for (const std::string& value : argument.values) words.push_back(scalar(value));
    line.value = fmt::format("[{}]", fmt::join(words, ", "));
  }
  return line;
}

std::string yaml_text(const std::vector<YamlLine>& lines, int indent, const JobChanges& changes) {
  std::string text;
  for (const YamlLine& one : lines)
    text += commented(fmt::format("{:{}}{}: {}", "", indent, one.name, one.value), changes.of(one.keys)) + "\n";
  return text;
}

}  // namespace manyworlds::experiments::jobs
