// `manyworlds calibrate FILE…`: what users measured on their own machine becomes a catalog file for it.
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

#include "core/base/error.hpp"
#include "experiments/key_contents/measured_shapes.hpp"
#include "farm/calibration/calibrated_catalog.hpp"
#include "farm/calibration/calibrated_kernels.hpp"
#include "farm/calibration/calibrated_library.hpp"
#include "farm/calibration/calibrated_steps.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/plan/serialized_job.hpp"
#include "farm/sweep/sweep_run.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/run_folder.hpp"
#include "farm/validation/validated_steps.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm::commands {
namespace {

constexpr std::size_t kMaxName = 60;

/// Returns the name of the new entry. Throws core::InputError for one that no YAML key and no file can have, or that
/// the catalog has.
std::string name_of(const cxxopts::ParseResult& parsed, const experiments::Catalog& catalog) {
  const std::string name = required(parsed, "name");
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  if (name.size() > kMaxName || !std::all_of(name.begin(), name.end(), is_plain) || !(name[0] >= 'a' && name[0] <= 'z'))
    throw core::InputError("must be a letter followed by lower-case letters, digits, '_', '-' and '.'",
                           "--name " + name);
  for (const auto& [known, entry] : catalog.entries("gpus"))
    if (known == name || std::count(entry.also_called.begin(), entry.also_called.end(), name) > 0)
      throw core::InputError("is the name of a GPU in the catalog; give another", "--name " + name);
  return name;
}

/// Simulates steps in this process, without a store.
Comparison simulate(const std::vector<experiments::measured::TrainingStep>& steps, Zygote& zygote) {
  const RunFolder folder;
  RunOptions run;
  run.directory = folder.path();
  run.in_process = true;
  check_preconditions(run);
  std::optional<Comparison> comparison;
  run_sweep_job(
      run, serialize_job(sweep_of(steps), {}),
      [&](const io::Results& results) { comparison = compare(steps, results); }, zygote);
  if (!comparison) throw core::InputError("the simulation of the steps was stopped");
  return *std::move(comparison);
}

int run_calibrate(const Invocation& invocation) {
  cxxopts::Options options("manyworlds calibrate",
                           "Fits a GPU and its communication library to what was measured on a machine.");
  options.add_options()(
      "file",
      "logs of nccl-tests, tables of kernels (script/measure_kernels.py), collectives or training steps, "
      "traces of the PyTorch profiler",
      cxxopts::value<std::vector<std::string>>(),
      "FILE")("gpu", "the GPU of the catalog to begin with", cxxopts::value<std::string>(), "GPU")(
      "name", "what the calibrated GPU is called", cxxopts::value<std::string>(), "NAME")(
      "nic-gbps", "rate of a GPU's NIC, for measurements over nodes; default: that of the catalog's cluster",
      cxxopts::value<double>()->default_value("0"),
      "GBPS")("o,output", "the catalog file to write", cxxopts::value<std::string>(), "FILE.yaml")(
      "catalog", "a folder or file with more gpus, libraries, models, clusters and stacks",
      cxxopts::value<std::string>()->default_value(""), "PATH");
  options.parse_positional({"file"});
  options.positional_help("FILE…");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  if (parsed->count("file") == 0) throw core::InputError("FILE is required: what was measured (try -h)");

  const experiments::Catalog catalog((*parsed)["catalog"].as<std::string>());
  CalibratedMachine machine;
  experiments::import::Node option;
  option.file = std::make_shared<const std::string>("--gpu");
  machine.base = catalog.find_named("gpus", required(*parsed, "gpu"), option).first;
  machine.name = name_of(*parsed, catalog);
  const std::string output = required(*parsed, "output");
  const double nic_gbps = (*parsed)["nic-gbps"].as<double>();
  if (!(nic_gbps >= 0 && nic_gbps <= 1e5)) throw core::InputError("must be from 0 to 100000", "--nic-gbps");

  machine.files =
      read_measured_files((*parsed)["file"].as<std::vector<std::string>>(), machine.base, nic_gbps, catalog);
  core::compute::Gpu start = gpu_of(catalog.entries("gpus").at(machine.base));
  experiments::set_measured_shapes(start);  // as in every answer
  machine.kernels = calibrate_kernels(machine.files.kernels, start);
  machine.collectives = calibrate_library(machine.files.collectives);
  std::vector<CalibratedConstant> known = machine.kernels.changes();
  for (const CalibratedConstant& one : machine.collectives.changes()) known.push_back(one);
  machine.steps = calibrate_steps(machine.files.steps, known,
                                  [&](const auto& steps) { return simulate(steps, *invocation.zygote); });
  if (machine.kernels.rows.empty() && machine.collectives.rows.empty() && machine.steps.rows.empty()) {
    std::cout << calibration_text(machine);
    throw core::InputError("no row of the files can be predicted, so that nothing can be calibrated");
  }
  io::write_atomically(output, catalog_file(machine, catalog));
  std::cout << calibration_text(machine);
  std::cout << fmt::format("wrote {}: gpu {}{}; use it with --catalog {} and cluster: {{gpu: {}}}\n", output,
                           machine.name, machine.collectives.rows.empty() ? "" : ", library " + library_name(machine),
                           output, machine.name);
  return kExitDone;
}

}  // namespace

Command calibrate_command() {
  return {.name = "calibrate",
          .summary = "a catalog file for your machine, from what you measured on it",
          .run = run_calibrate,
          .simulates = true};
}

}  // namespace manyworlds::farm::commands
