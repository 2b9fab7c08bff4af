#include "farm/verbs/simulate/space_moves.hpp"

#include <fmt/format.h>

#include <array>
#include <iostream>
#include <set>

#include "core/base/error.hpp"
#include "experiments/sweep/best.hpp"
#include "experiments/text/text.hpp"
#include "farm/cli/options/best_options.hpp"
#include "farm/cli/parsing/option_table.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/moves/space_search.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/host_resources.hpp"

namespace manyworlds::farm::commands {
namespace {

constexpr std::array kOwnOptions{"best", "gap", "moves", "threshold"};

/// Returns the options that go with SPEC.
std::set<std::string> options_with_spec() {
  cxxopts::Options shared("");
  add_run_options(shared);
  add_assume_option(shared);
  add_guess_option(shared);
  std::set<std::string> names{"spec", "set", "catalog", "seed", "output", "json"};
  names.insert(kOwnOptions.begin(), kOwnOptions.end());
  for (const OptionRow& row : table_of(shared).options) names.insert(row.name);
  return names;
}

void refuse_other_options(const cxxopts::ParseResult& parsed) {
  const std::set<std::string> known = options_with_spec();
  for (const auto& given : parsed.arguments())
    if (!known.contains(given.key()))
      throw core::InputError(
          "is for a search of a model's layouts, and SPEC.yaml has a space of its own: leave one of them out",
          "--" + given.key());
}

std::uint64_t number_of(const cxxopts::ParseResult& parsed, const char* name, double minimum, double maximum) {
  core::OptionInfo info;
  info.name = name;
  info.kind = core::OptionInfo::Kind::integer;
  info.minimum = minimum, info.maximum = maximum;
  const auto value = parse_option_value(parsed[name].as<std::string>(), info, fmt::format("--{}", name));
  return static_cast<std::uint64_t>(std::get<std::int64_t>(value));
}

/// Reads a share as --gap is read.
double threshold_of(const cxxopts::ParseResult& parsed) {
  experiments::Sweep share;
  share.best = 1;
  experiments::allow_gap(share, required(parsed, "threshold"), "--threshold");
  return share.gap;
}

/// Sets what is asked of the best, which is one unless somebody says otherwise.
void ask_for_the_best(const cxxopts::ParseResult& parsed, experiments::Space& space) {
  if (space.has_sample())
    throw core::InputError(
        "is drawn from its axes by 'sample', and moves go to any of their points: add --set sample=none",
        space.sweep().name);
  experiments::Sweep asked = space.sweep();
  if (!asked.front.empty())
    throw core::InputError("asks for a front, and a search finds the best by one objective: leave 'front' out",
                           asked.name);
  if (asked.best == 0) experiments::ask_for_best(asked, 1, "objective");
  ask_for_best(parsed, asked);
  space.ask_for_best(asked);
}

}  // namespace

void add_moves_options(cxxopts::Options& options) {
  add_best_options(options,
                   "with SPEC.yaml: how many of the best its sweep proves; default: as the document says, or 1",
                   "with SPEC.yaml: end once no other can be better than the best by more than so much, as in 2%");
  options.add_options()("moves",
                        "with SPEC.yaml: how many neighbours are drawn where the sweep does not prove its best",
                        cxxopts::value<std::string>()->default_value(std::to_string(WalkLimits().moves)), "N")(
      "threshold",
      fmt::format("with SPEC.yaml: by how much the best of a round's neighbours may be worse than the point it is next "
                  "to, to be the next one; it falls to nothing with the moves; default: {:.2g}%",
                  100 * WalkLimits().threshold),
      cxxopts::value<std::string>(), "SHARE")("spec", "the sweep whose space is searched, instead of --model",
                                              cxxopts::value<std::string>(), "SPEC.yaml");
  options.parse_positional({"spec"});
  options.positional_help("[SPEC.yaml]");
}

void refuse_moves_options(const cxxopts::ParseResult& parsed) {
  for (const char* name : kOwnOptions)
    if (parsed.count(name) > 0)
      throw core::InputError("is for a search of the space of a document: add SPEC.yaml, or leave it out",
                             fmt::format("--{}", name));
}

int search_space_by_moves(const cxxopts::ParseResult& parsed, Zygote& zygote) {
  refuse_other_options(parsed);
  if (launched_rank() && parsed.count("in-process") == 0)
    throw core::InputError(
        "a search starts further runs after the first, which the ranks of a launcher cannot do: start it plainly, and "
        "it starts its own ranks (-j)");
  WalkLimits limits;
  limits.moves = number_of(parsed, "moves", 0, 1e9);
  limits.seed = number_of(parsed, "seed", 0, 1e9);
  if (parsed.count("threshold") > 0) limits.threshold = threshold_of(parsed);
  const SpecOptions spec = read_spec_options(parsed);
  const experiments::Catalog catalog(spec.catalog);
  const SpaceDocument document{experiments::import::read_text(spec.spec), spec.spec, spec.set, catalog};
  experiments::Space space = document.space();
  ask_for_the_best(parsed, space);
  SweepOfBest listed = list_space(std::move(space), spec.spec);
  refuse_guesses(parsed, listed.sweep, catalog);
  const RunOptions run = read_run_options(parsed, run_directory_of(parsed, listed.sweep.name));
  check_preconditions(run);
  SpaceSearch search(run, document, std::move(listed.sweep), std::move(listed.points), !no_sharing(parsed), limits,
                     zygote);
  const int code = search.run();
  std::vector<std::string> run_line{"manyworlds", "run", spec.spec};
  if (!spec.catalog.empty()) run_line.insert(run_line.end(), {"--catalog", spec.catalog});
  if (const auto& found = search.findings())
    std::cout << (parsed.count("json") > 0 ? moves_json(*found).dump(1) + "\n" : moves_text(*found, run_line));
  return code;
}

}  // namespace manyworlds::farm::commands
