// `manyworlds report RUN`: the run as one self-contained HTML page.
#include <fmt/format.h>

#include <filesystem>

#include "farm/commands/verbs.hpp"
#include "farm/exit_code.hpp"
#include "io/report.hpp"
#include "io/run_directory.hpp"

namespace manyworlds::farm::commands {

int run_report(const Invocation& invocation) {
  cxxopts::Options options("manyworlds report", "A run as one self-contained HTML page.");
  const io::TopOptions defaults;
  options.add_options()("run", "a run directory or its results.h5", cxxopts::value<std::string>())(
      "o,output", "the page; default: report.html beside results.h5", cxxopts::value<std::string>(), "FILE.html")(
      "k", "how many of the best", cxxopts::value<std::int64_t>()->default_value("20"), "N")(
      "by", "the column to rank by; may end in ' asc' or ' desc'",
      cxxopts::value<std::string>()->default_value(defaults.by), "COLUMN");
  options.parse_positional({"run"});
  options.positional_help("RUN");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const std::filesystem::path results_file = io::results_of(required(*parsed, "run"));
  const io::Results results = io::read_results(results_file);
  const io::Ranking ranking =
      io::rank_experiments(results, {(*parsed)["k"].as<std::int64_t>(), (*parsed)["by"].as<std::string>(), ""});
  const std::filesystem::path page = parsed->count("output") > 0 ? std::filesystem::path(required(*parsed, "output"))
                                                                 : results_file.parent_path() / "report.html";
  io::write_aside(page, io::report_page(results, ranking));
  fmt::print(stderr, "{}\n", page.string());
  return kExitDone;
}

}  // namespace manyworlds::farm::commands
