// The option --learned: the user's own table of measured steps, whose rows narrow the intervals of single experiments.
#pragma once

#include <filesystem>

#include "experiments/analysis/own_interval.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/texts/step_text.hpp"

namespace manyworlds::farm::commands {

void add_own_options(cxxopts::Options& options);
/// Returns the path of the table; empty if there is none.
std::filesystem::path own_table_of(const cxxopts::ParseResult& parsed);

/// What the user's own rows make of the interval of an experiment.
struct OwnView {
  double low_s = 0, high_s = 0;
  std::size_t experiments = 0, rows = 0;
  std::string table;
};
/// Returns nothing if the experiment has no interval, or the table no row that fits it.
std::optional<OwnView> own_view(const cxxopts::ParseResult& parsed, const ResultRow& row,
                                const experiments::Experiment& experiment);

}  // namespace manyworlds::farm::commands
