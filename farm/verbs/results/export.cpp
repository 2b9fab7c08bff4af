// `manyworlds export RUN --csv`: a table of the results for programs that do not read HDF5.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

#include "core/base/error.hpp"
#include "experiments/text/nearest.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/run_directory.hpp"
#include "io/results/csv.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::commands {

namespace {

const io::Table& find_table(const io::Results& results, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, table] : io::result_tables(results)) {
    if (known == name) return *table;
    names.push_back(known);
  }
  throw core::InputError(
      fmt::format("no such table{}; there are {}", experiments::suggestion(name, names), fmt::join(names, ", ")),
      "--table " + name);
}

int run_export(const Invocation& invocation) {
  cxxopts::Options options("manyworlds export", "A table of the results for programs that do not read HDF5.");
  options.add_options()("run", "a run directory or its results.h5", cxxopts::value<std::string>())(
      "csv", "as comma-separated values, with a line of column names")(
      "table", "which one; `experiments` has a row for each",
      cxxopts::value<std::string>()->default_value("experiments"),
      "NAME")("o,output", "the file; default: standard output", cxxopts::value<std::string>(), "FILE");
  options.parse_positional({"run"});
  options.positional_help("RUN --csv");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  if (parsed->count("csv") == 0) throw core::InputError("the format is missing: --csv");
  const io::Results results = io::read_results(io::results_path(required(*parsed, "run")));
  const std::string text = io::csv(find_table(results, (*parsed)["table"].as<std::string>()));
  if (parsed->count("output") > 0)
    io::write_atomically(required(*parsed, "output"), text);
  else
    std::cout << text;
  return kExitDone;
}

}  // namespace

Command export_command() {
  return {
      .name = "export", .summary = "a table of a run's results, for programs that do not read HDF5", .run = run_export};
}

}  // namespace manyworlds::farm::commands
