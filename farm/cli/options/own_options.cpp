#include "farm/cli/options/own_options.hpp"

#include "farm/check/own_table.hpp"

namespace manyworlds::farm::commands {

void add_own_options(cxxopts::Options& options) {
  options.add_options()("learned",
                        "the table of your own measured steps, which `check --learn` writes; default: "
                        "manyworlds/measured.csv in XDG_DATA_HOME or ~/.local/share; none: published errors alone",
                        cxxopts::value<std::string>()->default_value(""), "FILE|none");
}

std::filesystem::path own_table_of(const cxxopts::ParseResult& parsed) {
  return own_table_path(parsed["learned"].as<std::string>());
}

std::optional<OwnView> own_view(const cxxopts::ParseResult& parsed, const ResultRow& row,
                                const experiments::Experiment& experiment) {
  if (row.text("step_time_basis").empty()) return std::nullopt;
  const std::filesystem::path table = own_table_of(parsed);
  const auto steps = read_own_table(table);
  if (steps.empty()) return std::nullopt;
  const auto uncertainty = experiments::Uncertainty::compiled();
  const auto config = experiment.config();
  const auto published = uncertainty.with_guesses(experiment.settings, config);
  const auto evidence = own_evidence(steps, published, experiment.settings.text("strategy.stack.name"));
  if (evidence.logs.empty()) return std::nullopt;
  const auto interval =
      own_interval(published, uncertainty.scatter_within_families(experiment.settings, config), evidence.logs);
  const double step_s = row.number("step_time_s");
  return OwnView{step_s * interval.low, step_s * interval.high, evidence.logs.size(), evidence.rows, table.string()};
}

}  // namespace manyworlds::farm::commands
