#include "experiments/megatron/arguments.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "experiments/megatron/argument_table.hpp"

namespace manyworlds::experiments::jobs {
namespace {

[[noreturn]] void fail_unknown(const Text& word, const std::string& name) {
  fail_at(word.place, fmt::format("--{} is no argument of Megatron-LM that is known here{}", name,
                                  megatron_arguments().near(name)));
}

bool is_option(const Text& word) {
  return word.text.starts_with("--") && word.text.size() > 2;
}

}  // namespace

std::string first_value(const Argument& argument, const std::string& otherwise) {
  if (argument.values.empty()) return otherwise;
  const std::string& value = argument.values.front().text;
  if (!shell::is_known(value))
    fail_at(argument.place, fmt::format("--{} {} follows from {}; give it with --env NAME=VALUE", argument.name,
                                        shell::shown(value), shell::why_unknown(value)));
  return value;
}

std::vector<Argument> split_arguments(const std::vector<Text>& words) {
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < words.size();) {
    const Text& word = words[i++];
    if (!is_option(word)) {
      const std::string why = shell::why_unknown(word.text);
      if (why.empty()) fail_at(word.place, fmt::format("'{}' stands where an argument would", word.text));
      fail_at(word.place, fmt::format("'{}' among the arguments follows from {}; give it with --env NAME=VALUE",
                                      shell::shown(word.text), why));
    }
    const std::size_t equals = word.text.find('=');
    Argument one{word.text.substr(2, equals == std::string::npos ? equals : equals - 2), {}, word.place};
    if (!shell::is_known(one.name))
      fail_at(word.place, "the name of an argument follows from " + shell::why_unknown(one.name));
    const KnownName* known = find_argument(one.name);
    if (known == nullptr) fail_unknown(word, one.name);
    if (equals != std::string::npos) one.values.push_back({word.text.substr(equals + 1), word.place});
    const std::size_t limit = known->takes == Takes::nothing ? 0 : known->takes == Takes::one ? 1 : words.size();
    while (i < words.size() && one.values.size() < limit && !is_option(words[i])) one.values.push_back(words[i++]);
    if (one.values.empty() && known->takes == Takes::one)
      fail_at(word.place, fmt::format("--{} lacks its value", one.name));
    arguments.push_back(std::move(one));
  }
  return arguments;
}

}  // namespace manyworlds::experiments::jobs
