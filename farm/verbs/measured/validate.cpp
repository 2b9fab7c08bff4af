// `manyworlds validate [FILE]…`: simulates published measurements, from an empty store, and reports the prediction
// errors.
#include <fmt/format.h>

#include <functional>
#include <iostream>
#include <iterator>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/measured_collectives/published_tables.hpp"
#include "experiments/text/text.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/results/sweep_report.hpp"
#include "farm/sweep/sweep_run.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/run_folder.hpp"
#include "farm/validation/compared_switches.hpp"
#include "farm/validation/validated_tables.hpp"
#include "farm/validation/validation_fit.hpp"
#include "farm/validation/validation_markdown.hpp"
#include "farm/validation/validation_picture.hpp"
#include "farm/validation/validation_report.hpp"
#include "farm/validation/validation_residuals.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm::commands {

namespace {

namespace measured = experiments::measured;
using experiments::import::CsvTable;

/// Returns the tables given on the command line, or those compiled in, as (name, text).
std::vector<std::pair<std::string, std::string>> tables_of(const cxxopts::ParseResult& parsed) {
  std::vector<std::pair<std::string, std::string>> tables;
  if (parsed.count("file") > 0)
    for (const std::string& path : parsed["file"].as<std::vector<std::string>>())
      tables.emplace_back(path, experiments::import::read_table_text(path));
  else
    for (const char* name : {"training_steps",
                             "collectives",
                             "nccl_tables",
                             "mare_nostrum",
                             "exchanges_deepep",
                             "exchanges_low_latency",
                             "exchanges_trtllm",
                             "kernels_gemm",
                             "kernels_experts",
                             "kernels_attention",
                             "kernels_latent_attention",
                             "kernels_training_gemm",
                             "kernels_training_attention",
                             "kernels_elementwise",
                             "kernels_norm",
                             "kernels_softmax",
                             "kernels_scale",
                             "memory",
                             "memory_other",
                             "layouts",
                             "ultrascale_layouts",
                             "torchtitan",
                             "primus",
                             "switches"})
      tables.emplace_back(fmt::format("{}.csv", name), measured::compiled_table(name));
  return tables;
}

/// The rows of all tables, by kind.
struct Measurements {
  std::vector<measured::TrainingStep> steps;
  std::vector<measured::MeasuredCollective> collectives;
  std::vector<measured::MemoryRow> memory;
  std::vector<measured::MeasuredKernel> kernels;
  std::vector<measured::MeasuredKernel> left_out_kernels;  // with constants of other GPUs, if they are wanted

  bool empty() const { return steps.empty() && collectives.empty() && memory.empty() && kernels.empty(); }
};

template <class Row>
void append(std::vector<Row>& to, std::vector<Row> rows) {
  to.insert(to.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
}

Measurements read_tables(const cxxopts::ParseResult& parsed, const experiments::Catalog& catalog) {
  Measurements measurements;
  const std::string gpu = parsed["gpu"].as<std::string>();
  if (!gpu.empty() && catalog.entries("gpus").count(gpu) == 0)
    throw core::InputError(fmt::format("is no GPU of the catalog: '{}' ('manyworlds list gpus')", gpu), "--gpu");
  for (const auto& [name, text] : tables_of(parsed)) {
    const CsvTable table = measured::parse_measurements(text, name, gpu);
    if (measured::is_training_steps_table(*table.header))
      append(measurements.steps, measured::read_training_steps(table, catalog));
    else if (measured::is_collectives_table(*table.header))
      append(measurements.collectives, measured::read_collectives(table, catalog));
    else if (measured::is_memory_table(*table.header))
      append(measurements.memory, measured::read_memory(table, catalog));
    else if (measured::is_kernels_table(*table.header)) {
      append(measurements.kernels, measured::read_kernels(table, catalog));
      if (parsed.count("leave-one-gpu-out") > 0)
        append(measurements.left_out_kernels,
               measured::read_kernels(table, catalog, measured::KernelConstants::of_relatives));
    } else
      throw core::InputError(
          "it is no text of nccl-tests, and its columns are those of no table of training steps (id, source, model, "
          "gpu, num_gpus, global_batch, "
          "measured_step_s, …), collectives (id, gpu, op, ranks, nodes, bytes, time_us, …), memory (test_case, device, "
          "mem_max_allocated_bytes, …) or kernels (device, gemm_dtype, m, n, k, latency; docs/formats.md has the "
          "others)",
          name, 1);
  }
  if (measurements.empty()) throw core::InputError("the tables hold no row");
  return measurements;
}

using Report = std::function<void(const io::Results&)>;

/// Simulates `steps` in `folder`. Results are kept in `store`, a folder that is empty at first: a cold run, so that its
/// duration includes all simulations, each once.
int simulate(const cxxopts::ParseResult& parsed, Zygote& zygote, const std::vector<measured::TrainingStep>& steps,
             const RunFolder& folder, const std::string& store, const Report& report) {
  RunOptions run = read_run_options(parsed, folder.path().string());
  if (parsed.count("store") == 0 && run.store != "none") run.store = store;
  check_preconditions(run);
  return run_sweep_job(run, serialize_job(sweep_of(steps), {!no_sharing(parsed), {}}), report, zygote);
}

void compare_kernels(Validation& validation, const Measurements& tables, const experiments::Catalog& catalog) {
  if (!tables.kernels.empty()) validation.kinds.emplace_back(kKernelsTitle, compare(tables.kernels));
  if (!tables.left_out_kernels.empty())
    validation.kinds.emplace_back(kLeftOutGpusTitle, compare(tables.left_out_kernels));
  if (const auto left_out = measured::left_out_shapes(tables.kernels, catalog); !left_out.empty())
    validation.kinds.emplace_back(kLeftOutShapesTitle, compare(left_out));
}

void compare_memory(Validation& validation, const Measurements& tables) {
  Comparison peaks = compare(tables.memory);
  append(peaks.rows, compare_rank_memory(validation.steps).rows);
  if (!peaks.rows.empty() || !peaks.omitted.empty()) validation.kinds.emplace_back(kMemoryTitle, std::move(peaks));
}

/// Compares steps that differ in one thing, while their constants are those that were simulated.
void add_switches(Validation& validation) {
  if (validation.kinds.empty()) return;
  Comparison switches = compare_switches(validation.steps, validation.kinds.front().second);
  if (!switches.rows.empty()) validation.kinds.emplace_back(kSwitchesTitle, std::move(switches));
}

int run_validate(const Invocation& invocation) {
  cxxopts::Options options("manyworlds validate", "Predicted against published measurements, family by family.");
  add_run_options(options);
  options.add_options()(
      "file", "tables of measurements, or logs of nccl-tests or NCCL's Inspector; default: what comes with the program",
      cxxopts::value<std::vector<std::string>>(),
      "FILE")("o,output", "the run directory; default: a temporary one", cxxopts::value<std::string>(), "RUN_DIR")(
      "catalog", "a folder or file with more gpus, libraries, models, clusters and stacks",
      cxxopts::value<std::string>()->default_value(""),
      "DIR")("gpu", "the GPU of logs that do not name it, such as those of NCCL's Inspector",
             cxxopts::value<std::string>()->default_value(""), "GPU")("rows", "print every row")("json", "JSON output")(
      "markdown", "only the accuracy table, as in docs/accuracy.md")("svg", "a picture of measured against predicted",
                                                                     cxxopts::value<std::string>(), "FILE.svg")(
      "leave-one-family-out", "also predict each family with constants fitted to the others")(
      "leave-one-gpu-out", "also predict the kernels of each GPU with the constants of its relatives")(
      "by-proportion", "do that by the ratio of closed forms, without simulating again")(
      "fit", "write the constants of GPUs, fitted to these rows", cxxopts::value<std::string>(), "FILE.csv")(
      "residuals", "with --leave-one-family-out: write how far off it is, for intervals of predictions",
      cxxopts::value<std::string>(), "FILE.csv")("constants", "predict with these in the place of the catalog's",
                                                 cxxopts::value<std::string>(), "FILE.csv");
  options.parse_positional({"file"});
  options.positional_help("[FILE]…");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  if (is_follower() && parsed->count("in-process") == 0)
    return run_sweep_job(read_run_options(*parsed, ""), "", false, *invocation.zygote);

  const experiments::Catalog catalog((*parsed)["catalog"].as<std::string>());
  Validation validation;
  Measurements tables = read_tables(*parsed, catalog);
  validation.steps = std::move(tables.steps);
  validation.constants = constants_of(validation.steps, catalog);
  if (parsed->count("constants") > 0) {
    if (parsed->count("leave-one-family-out") > 0)
      throw core::InputError("it fits constants of its own; give one or the other",
                             "--leave-one-family-out --constants");
    const std::string file = required(*parsed, "constants");
    validation.steps =
        with_constants(validation.steps, read_constants(experiments::import::read_text(file), file, catalog), catalog);
  }
  if (parsed->count("leave-one-family-out") > 0 && validation.steps.empty())
    throw core::InputError("needs training steps, which constants are fitted to", "--leave-one-family-out");
  if (parsed->count("residuals") > 0 && parsed->count("leave-one-family-out") == 0)
    throw core::InputError("needs --leave-one-family-out: residuals are of families that constants were not fitted to",
                           "--residuals");
  bool was_compared = false;
  const auto record = [&](const char* title) {
    return [&, title](const io::Results& results) {
      validation.kinds.emplace_back(title, compare(validation.steps, results));
      print_lines(summary_text(results));
      was_compared = true;
    };
  };
  const RunFolder folder = parsed->count("output") > 0 ? RunFolder(required(*parsed, "output")) : RunFolder();
  // Steps are simulated twice where families are left out; most of their collectives are the same.
  std::optional<RunFolder> kept;
  if (parsed->count("leave-one-family-out") > 0 && parsed->count("by-proportion") == 0) kept.emplace();
  const std::string store = kept ? kept->path().string() : "none";
  int code = kExitDone;
  if (!validation.steps.empty()) {
    code = simulate(*parsed, *invocation.zygote, validation.steps, folder, store, record(kStepsTitle));
    if (!was_compared) return code;  // this is a rank, or the run was stopped
  }
  const std::vector<ComparedRow> compared =
      validation.kinds.empty() ? std::vector<ComparedRow>() : validation.kinds.front().second.rows;
  add_switches(validation);
  if (parsed->count("fit") > 0)
    io::write_atomically(required(*parsed, "fit"),
                         constants_table({fit_constants(validation.steps, compared, catalog)}));
  if (parsed->count("leave-one-family-out") > 0) {
    const auto constants = fit_leaving_one_out(validation.steps, compared, catalog);
    if (parsed->count("by-proportion") > 0) {
      validation.kinds.emplace_back(
          kHeldOutTitle, scale_by_closed_form(validation.steps, validation.kinds.front().second, constants, catalog));
    } else {
      const RunFolder second;
      validation.steps = with_constants(validation.steps, constants, catalog);
      code =
          std::max(code, simulate(*parsed, *invocation.zygote, validation.steps, second, store, record(kHeldOutTitle)));
    }
  }
  std::vector<measured::Residuals> residuals;
  if (parsed->count("residuals") > 0)
    residuals = residuals_of(validation.steps, validation.kinds.back().second, catalog);
  if (!tables.collectives.empty()) validation.kinds.emplace_back(kCollectivesTitle, compare(tables.collectives));
  if (parsed->count("residuals") > 0) {
    if (!tables.collectives.empty())
      for (auto& one : network_residuals(tables.collectives, validation.kinds.back().second, catalog))
        residuals.push_back(std::move(one));
    io::write_atomically(required(*parsed, "residuals"), measured::residuals_table(residuals));
  }
  compare_kernels(validation, tables, catalog);
  compare_memory(validation, tables);
  const bool rows = parsed->count("rows") > 0;
  std::cout << (parsed->count("markdown") > 0 ? validation_markdown(validation, catalog)
                : parsed->count("json") > 0   ? validation_json(validation, rows).dump(1) + "\n"
                                              : validation_text(validation, rows));
  if (parsed->count("svg") > 0) io::write_atomically(required(*parsed, "svg"), validation_picture(compared));
  return code;
}

}  // namespace

Command validate_command() {
  return {.name = "validate",
          .summary = "predicted against published measurements",
          .run = run_validate,
          .simulates = true};
}

}  // namespace manyworlds::farm::commands
