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

}  // namespace

std::unique_ptr<cxxopts::ParseResult> parse(cxxopts::Options& options, const std::vector<std::string>& arguments) {
  options.add_options()("h,help", "show this help");
  if (arguments.size() == 1 && arguments.front() == table_request()) throw table_of(options);
  options.allow_unrecognised_options();
  std::vector<const char*> argv{"manyworlds"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  std::unique_ptr<cxxopts::ParseResult> parsed;
  try {
    parsed = std::make_unique<cxxopts::ParseResult>(options.parse(static_cast<int>(argv.size()), argv.data()));
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

std::string required(const cxxopts::ParseResult& parsed, const std::string& name) {
  if (parsed.count(name) == 0 || parsed[name].as<std::string>().empty())
    throw core::InputError(fmt::format("{} is required (try -h)", display_name(name)));
  return parsed[name].as<std::string>();
}

}  // namespace manyworlds::farm::commands
