// `manyworlds validate [FILE.csv]…`: simulates what others measured, from an empty store, and tells how far off we are.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "core/error.hpp"
#include "experiments/measured/tables.hpp"
#include "farm/commands/shared_words.hpp"
#include "farm/commands/verbs.hpp"
#include "farm/exit_code.hpp"
#include "farm/sweep_job.hpp"
#include "farm/sweep_report.hpp"
#include "farm/sweep_run.hpp"
#include "farm/validation_picture.hpp"
#include "farm/validation_report.hpp"

namespace manyworlds::farm::commands {

namespace {

namespace measured = experiments::measured;
using experiments::import::CsvTable;

/// A run directory of the caller's, or one that lives as long as this.
class RunFolder {
 public:
  explicit RunFolder(const cxxopts::ParseResult& parsed) {
    if (parsed.count("output") > 0) {
      path_ = required(parsed, "output");
      return;
    }
    std::string name = (std::filesystem::temp_directory_path() / "manyworlds-validate-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw core::IoError("make", name);
    path_ = name;
    temporary_ = true;
  }
  ~RunFolder() {
    std::error_code ignored;
    if (temporary_) std::filesystem::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  bool temporary() const { return temporary_; }

 private:
  std::filesystem::path path_;
  bool temporary_ = false;
};

/// The tables that the words name, or those that are compiled in, as (name, text).
std::vector<std::pair<std::string, std::string>> tables_of(const cxxopts::ParseResult& parsed) {
  std::vector<std::pair<std::string, std::string>> tables;
  if (parsed.count("file") > 0)
    for (const std::string& path : parsed["file"].as<std::vector<std::string>>())
      tables.emplace_back(path, experiments::import::read_text(path));
  else
    tables.emplace_back("training_steps.csv", measured::compiled_table("training_steps"));
  return tables;
}

std::vector<measured::TrainingStep> steps_in(const cxxopts::ParseResult& parsed, const experiments::Catalog& catalog) {
  std::vector<measured::TrainingStep> steps;
  for (const auto& [name, text] : tables_of(parsed)) {
    const CsvTable table = experiments::import::parse_csv(text, name);
    if (!measured::is_training_steps(*table.header))
      throw core::InputError(
          "its columns are not those of training steps (id, source, model, gpu, num_gpus, global_batch, "
          "measured_step_s, …)",
          name, 1);
    for (auto& step : measured::read_training_steps(table, catalog)) steps.push_back(std::move(step));
  }
  return steps;
}

void write_picture(const std::string& path, const std::vector<Compared>& rows) {
  std::ofstream file(path, std::ios::binary);
  file << validation_picture(rows);
  if (!file.flush()) throw core::IoError("write", path);
}

}  // namespace

int run_validate(const Invocation& invocation) {
  cxxopts::Options options("manyworlds validate", "Predicted against published measurements, family by family.");
  add_run_words(options);
  options.add_options()("file", "tables of measurements; default: those that come with the program",
                        cxxopts::value<std::vector<std::string>>(), "FILE.csv")(
      "o,output", "the run directory; default: a temporary one", cxxopts::value<std::string>(), "RUN_DIR")(
      "catalog", "a folder with more gpus, models, clusters and stacks",
      cxxopts::value<std::string>()->default_value(""),
      "DIR")("rows", "tell of every row")("json", "what is said, as JSON")(
      "svg", "a picture of measured against predicted", cxxopts::value<std::string>(), "FILE.svg");
  options.parse_positional({"file"});
  options.positional_help("[FILE.csv]…");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  if (is_follower() && parsed->count("in-process") == 0)
    return run_sweep_job(run_words(*parsed, "", "validate", invocation), "", "", false, *invocation.zygote);

  const experiments::Catalog catalog((*parsed)["catalog"].as<std::string>());
  Validation validation;
  validation.steps = steps_in(*parsed, catalog);
  validation.constants = constants_of(validation.steps, catalog);
  const experiments::Sweep sweep = sweep_of(validation.steps);
  const RunFolder folder(*parsed);
  RunOptions run = run_words(*parsed, folder.path().string(), "validate", invocation);
  if (parsed->count("store") == 0) run.store = "none";  // a cold run, so that what it takes is what it takes
  if (folder.temporary()) run.arguments.insert(run.arguments.end(), {"-o", folder.path().string()});
  check_before_work(run);
  const auto report = [&](const io::Results& results) {
    validation.kinds = {{"training steps", compare(validation.steps, results)}};
    fmt::print(stderr, "{}", summary_text(results));
    const bool rows = parsed->count("rows") > 0;
    std::cout << (parsed->count("json") > 0 ? validation_json(validation, rows).dump(1) + "\n"
                                            : validation_text(validation, rows));
    if (parsed->count("svg") > 0) write_picture(required(*parsed, "svg"), validation.kinds.front().second.rows);
  };
  return run_sweep_job(run, frozen_job(sweep, !no_sharing(*parsed)), report, *invocation.zygote);
}

}  // namespace manyworlds::farm::commands
