// `manyworlds completion SHELL`: the script with which a shell completes command lines, and the names that it asks for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "core/base/error.hpp"
#include "experiments/sweep/schema.hpp"
#include "experiments/text/nearest.hpp"
#include "farm/cli/texts/completion_script.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm::commands {

namespace {

int run_completion(const Invocation& invocation) {
  const std::vector<std::string>& shells = completed_shells();
  cxxopts::Options options("manyworlds completion",
                           "The script with which a shell completes verbs, options and names of the catalog; "
                           "source <(manyworlds completion bash) tries it.");
  options.add_options()(
      "what", fmt::format("{}; or names, the names of a KIND of the catalog", fmt::join(shells, ", ")),
      cxxopts::value<std::string>())("kind", "of names: what `manyworlds list` has", cxxopts::value<std::string>())(
      "catalog", "a folder or file with more gpus, libraries, models, clusters and stacks",
      cxxopts::value<std::string>()->default_value(""), "DIR");
  options.parse_positional({"what", "kind"});
  options.positional_help(fmt::format("{}|names [KIND]", fmt::join(shells, "|")));
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  if (parsed->count("what") == 0) throw core::InputError(fmt::format("of which shell? {}", fmt::join(shells, ", ")));
  const auto what = (*parsed)["what"].as<std::string>();
  if (what == "names") {
    if (parsed->count("kind") == 0)
      throw core::InputError(fmt::format("names of which kind? {}", fmt::join(experiments::listings(), ", ")));
    const experiments::Catalog catalog((*parsed)["catalog"].as<std::string>());
    for (const auto& entry : experiments::list((*parsed)["kind"].as<std::string>(), catalog))
      std::cout << entry.name << "\n";
    return kExitDone;
  }
  if (std::find(shells.begin(), shells.end(), what) == shells.end())
    throw core::InputError(fmt::format("no completion for '{}'{}", what, experiments::suggestion(what, shells)));
  std::cout << completion_script(what, verb_tables(registry()));
  return kExitDone;
}

}  // namespace

Command completion_command() {
  return {.name = "completion", .summary = "completes command lines in bash, zsh and fish", .run = run_completion};
}

}  // namespace manyworlds::farm::commands
