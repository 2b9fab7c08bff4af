// Reads model_config.yaml, the form of Megatron-LM's functional tests.
#include <fmt/format.h>

#include "experiments/megatron/arguments.hpp"
#include "experiments/text/text.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using import::Node;

void add_values(const Node& value, std::vector<Text>& words) {
  const Place place{value.file, value.line};
  if (value.kind == Node::Kind::sequence) {
    for (const Node& item : value.items) add_values(item, words);
  } else if (value.kind == Node::Kind::scalar) {
    if (value.text.find('$') != std::string::npos)
      words.push_back({shell::unknown(value.text), place});
    else if (value.quoted && value.text.find(' ') != std::string::npos && value.text.find("--") == std::string::npos)
      words.push_back({value.text, place});
    else
      for (const std::string_view word : import::words_of(value.text)) words.push_back({std::string(word), place});
  } else {
    value.fail("an argument has a value, a list of values, or true");
  }
}

}  // namespace

JobArguments read_model_config(const std::string& text, const std::string& path) {
  const Node root = import::parse_yaml(text, path);
  const Node* given = root.find("MODEL_ARGS");
  if (given == nullptr || given->kind != Node::Kind::mapping) root.fail("'MODEL_ARGS' must be a mapping of arguments");
  std::vector<Text> words;
  for (const import::Entry& entry : given->entries) {
    const bool scalar = entry.value.kind == Node::Kind::scalar;
    if (entry.value.kind == Node::Kind::null || (scalar && entry.value.text == "false")) continue;
    const Place place{entry.value.file, entry.line};
    words.push_back({entry.key, place});
    if (!entry.key.starts_with("--"))
      fail_at(place, fmt::format("'{}' is no argument; it must begin with --", entry.key));
    if (!scalar || entry.value.text != "true") add_values(entry.value, words);
  }
  JobArguments result;
  result.kind = "a model_config.yaml of Megatron-LM";
  result.arguments = split_arguments(words);
  return result;
}

}  // namespace manyworlds::experiments::jobs
