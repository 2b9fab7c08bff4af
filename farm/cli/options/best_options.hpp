// Asking for the best of a sweep on the command line, and reading a sweep of which only the best are asked for.
#pragma once

#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/sweep/space.hpp"
#include "farm/cli/options/shared_options.hpp"

namespace manyworlds::farm::commands {

/// The options --best and --gap, with what the help says of each.
void add_best_options(cxxopts::Options& options, const char* best_help, const char* gap_help);
/// Sets what they, and --front where a verb has it, ask of a sweep. Throws core::InputError, naming the option, as
/// experiments::ask_for_best() does.
void ask_for_best(const cxxopts::ParseResult& parsed, experiments::Sweep& sweep);

/// A sweep as it is run.
struct SweepOfBest {
  experiments::Sweep sweep;
  /// Of a space that is too large to be listed, the points of its experiments, which have the best lower bounds;
  /// otherwise empty, and the sweep has all points.
  std::vector<experiments::Space::Point> points;
};

/// Lists a space that asks for its best, of one that is too large only the points with the best lower bounds, while
/// messages tell of it; any other as a sweep. Throws core::InputError, naming `file`, for a front of one that is too
/// large.
SweepOfBest list_space(experiments::Space space, const std::string& file);

}  // namespace manyworlds::farm::commands
