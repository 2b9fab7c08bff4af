// `manyworlds report RUN`: the run as one self-contained HTML page, or as Markdown with pictures.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "core/base/error.hpp"
#include "farm/cli/options/emit_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/file.hpp"
#include "io/log/run_directory.hpp"
#include "io/report/report.hpp"

namespace manyworlds::farm::commands {
namespace {

/// Returns what launches the best of a run; without the file where RUN holds no settings or no target can run it.
io::LaunchText launch_of_best(const std::filesystem::path& run, const io::Results& results, const io::TopOptions& top) {
  if (!io::is_run_directory(run)) return {};
  const io::Ranking ranking = io::rank_experiments(results, top);
  if (ranking.rows.empty()) return {};
  const auto id = static_cast<std::int64_t>(results.experiments.find("id")->number_at(ranking.rows.front().row));
  std::optional<experiments::Experiment> best;
  try {
    best = experiment_of_run(run, id);
  } catch (const core::InputError&) {  // of another version: its results can be told all the same
    return {};
  }
  return launch_text(run, experiments::jobs::emit_own(best->settings, nullptr, experiments::Catalog()), "",
                     {fmt::format("experiment {} of {}", id, run.string())});
}

int run_report(const Invocation& invocation) {
  cxxopts::Options options("manyworlds report", "A run as one self-contained HTML page.");
  options.add_options()("run", "a run directory or its results.h5", cxxopts::value<std::string>())(
      "o,output", "the file; default: report.html (or .md) beside results.h5", cxxopts::value<std::string>(), "FILE")(
      "md", "as Markdown, with pictures beside it as SVG")("k", "how many of the best",
                                                           cxxopts::value<std::int64_t>()->default_value("20"), "N")(
      "by", "the column to rank by; may end in ' asc' or ' desc'; default: the sweep's objective",
      cxxopts::value<std::string>(), "COLUMN");
  options.parse_positional({"run"});
  options.positional_help("RUN");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const bool markdown = parsed->count("md") > 0;
  const std::filesystem::path results_file = io::results_path(required(*parsed, "run"));
  const io::Results results = io::read_results(results_file);
  const io::TopOptions top{(*parsed)["k"].as<std::int64_t>(), if_given(*parsed, "by"), ""};
  const io::LaunchText launch = launch_of_best(required(*parsed, "run"), results, top);
  const std::filesystem::path file = parsed->count("output") > 0
                                         ? std::filesystem::path(required(*parsed, "output"))
                                         : results_file.parent_path() / (markdown ? "report.md" : "report.html");
  if (markdown) {
    const io::MarkdownReport report = io::report_markdown(results, top, file.stem().string() + "-", launch);
    for (const auto& [name, picture] : report.pictures) io::write_atomically(file.parent_path() / name, picture);
    io::write_atomically(file, report.text);
  } else {
    io::write_atomically(file, io::report_page(results, top, launch));
  }
  print_message("{}\n", file.string());
  return kExitDone;
}

}  // namespace

Command report_command() {
  return {.name = "report", .summary = "a run as one self-contained HTML page", .run = run_report};
}

}  // namespace manyworlds::farm::commands
