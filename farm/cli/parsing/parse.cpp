// Strict option parsing for every verb: unknown options are errors, which name the nearest option.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <memory>

#include "core/base/error.hpp"
#include "experiments/text/nearest.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/cli/parsing/option_table.hpp"

namespace manyworlds::farm::commands {

namespace {

std::vector<std::string> option_names(const cxxopts::Options& options) {
  std::vector<std::string> names;
  for (const auto& group : options.groups())
    for (const auto& option : options.group_help(group).options)
      for (const auto& name : option.l) names.push_back("--" + name);
  return names;
}

/// Returns "RUN" for a positional argument and "--model" for an option.
std::string display_name(const std::string& name) {
  for (const std::string positional : {"spec", "run", "a", "b", "left", "right", "address"})
    if (name == positional) {
      std::string upper = name;
      std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
      return upper;
    }
  return "--" + name;
}

using Words = std::vector<const char*>;

enum class Fault { none, wrong_value, other };

/// Returns what is wrong with a command line: a value that its option does not take, or another thing, as a value that
/// is not there.
Fault fault_of(cxxopts::Options& options, const Words& words) {
  try {
    options.parse(static_cast<int>(words.size()), words.data());
  } catch (const cxxopts::exceptions::incorrect_argument_type&) {
    return Fault::wrong_value;
  } catch (const cxxopts::exceptions::exception&) {
    return Fault::other;
  }
  return Fault::none;
}

/// Returns what values `option` ("--step", "-j") takes, which has refused one: found by trying some.
std::string values_of(cxxopts::Options& options, const std::string& option) {
  const auto takes = [&](const char* value) {
    return fault_of(options, {"manyworlds", option.c_str(), value}) != Fault::wrong_value;
  };
  if (takes("any")) return "given without a value";
  if (takes("0.5")) return "a number";
  const int bits = takes("9223372036854775808") ? 64 : takes("4294967296") ? 63 : takes("2147483648") ? 32 : 31;
  return fmt::format("a whole number{} below 2^{}", takes("-1") ? "" : " from 0 on and", bits);
}

/// Returns the error of a command line that has a wrong value, which ends the shortest beginning of the line that has
/// one.
core::InputError wrong_value(cxxopts::Options& options, const Words& words) {
  const auto fault_of_first = [&](std::size_t count) {
    return fault_of(options, {words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count)});
  };
  std::size_t right = 1, wrong = words.size();
  while (wrong - right > 1) {
    const std::size_t middle = right + (wrong - right) / 2;
    (fault_of_first(middle) == Fault::wrong_value ? wrong : right) = middle;
  }
  std::string option = words[wrong - 2], value = words[wrong - 1];
  if (fault_of_first(wrong - 1) == Fault::none) {  // no option waits for the word: it is "--step=five" or "-jfive"
    const std::size_t equals = value.find('=');
    const bool is_long = value.starts_with("--");
    option = value.substr(0, is_long ? equals : 2);
    value = value.substr(is_long ? equals + 1 : 2);
  }
  return core::InputError(fmt::format("must be {}, not '{}'", values_of(options, option), value), option);
}

}  // namespace

std::unique_ptr<cxxopts::ParseResult> parse(cxxopts::Options& options, const std::vector<std::string>& arguments) {
  options.add_options()("h,help", "show this help");
  if (arguments.size() == 1 && arguments.front() == table_request()) throw table_of(options);
  options.allow_unrecognised_options();
  Words argv{"manyworlds"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  std::unique_ptr<cxxopts::ParseResult> parsed;
  try {
    parsed = std::make_unique<cxxopts::ParseResult>(options.parse(static_cast<int>(argv.size()), argv.data()));
  } catch (const cxxopts::exceptions::incorrect_argument_type&) {
    throw wrong_value(options, argv);
  } catch (const cxxopts::exceptions::exception& error) {
    throw core::InputError(fmt::format("{} (try -h)", error.what()));
  }
  if (parsed->count("help") > 0) {
    std::cout << options.help();
    return nullptr;
  }
  if (!parsed->unmatched().empty()) {
    const std::string argument = parsed->unmatched().front();
    if (argument.size() < 2 || argument[0] != '-')
      throw core::InputError(fmt::format("unexpected argument '{}' (try -h)", argument));
    const std::string name = argument.substr(0, argument.find('='));
    throw core::InputError(
        fmt::format("unknown option '{}'{}", name, experiments::suggestion(name, option_names(options))));
  }
  return parsed;
}

std::string required(const cxxopts::ParseResult& parsed, const std::string& name, const std::string& shown) {
  if (parsed.count(name) == 0 || parsed[name].as<std::string>().empty())
    throw core::InputError(fmt::format("{} is required (try -h)", shown.empty() ? display_name(name) : shown));
  return parsed[name].as<std::string>();
}

std::optional<std::string> if_given(const cxxopts::ParseResult& parsed, const std::string& name) {
  if (parsed.count(name) == 0) return std::nullopt;
  return parsed[name].as<std::string>();
}

}  // namespace manyworlds::farm::commands
