#include "farm/design/designed_step.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <thread>

#include "core/base/error.hpp"
#include "experiments/silicon/chip_gpu.hpp"
#include "experiments/tree/scalar.hpp"
#include "farm/results/simulate_here.hpp"
#include "farm/texts/step_text.hpp"

namespace manyworlds::farm::design {
namespace {

namespace silicon = experiments::silicon;

const std::string kGpu = "cluster.gpu.";

std::string known_gpus() {
  std::string names;
  for (const silicon::KnownChip& known : silicon::known_chips())
    if (!known.gpu.empty()) names += (names.empty() ? "" : ", ") + known.gpu;
  return names;
}

}  // namespace

DesignJob::DesignJob(experiments::Sweep sweep, const std::string& file, int line) : sweep_(std::move(sweep)) {
  constexpr std::size_t kMaxLayouts = 64;
  const auto refuse = [&](const std::string& what) { throw core::InputError("the job " + what, file, line); };
  if (sweep_.experiments.empty()) refuse("has no layout that is valid");
  if (sweep_.experiments.size() > kMaxLayouts)
    refuse(fmt::format("has {} layouts, and {} are the most", sweep_.experiments.size(), kMaxLayouts));
  sweep_.best = 0;  // all layouts are simulated
  const auto config = sweep_.experiments.front().config();
  measured_ = config.configuration.gpu;
  gpus_ = config.cluster.gpus();
  const std::string name = sweep_.experiments.front().settings.text(kGpu + "name");
  known_ = silicon::known_chip_of(name);
  if (known_ == nullptr)
    refuse(
        fmt::format("runs on the GPU '{}', and only {} are described by units, whose efficiencies a design takes over",
                    name, known_gpus()));
  for (const experiments::Experiment& experiment : sweep_.experiments) {
    const auto other = experiment.config();
    if (experiment.settings.text(kGpu + "name") != name || !other.machines.empty())
      refuse("has GPUs of several kinds; a design is of one");
    if (other.cluster.gpus() != gpus_) refuse("has clusters of several sizes; a design is for one");
    if (other.has_measured_kernels) refuse("has a table of measured kernels, which hold for one GPU alone");
  }
}

std::string DesignJob::fidelity() const {
  return sweep_.experiments.front().settings.text("fidelity");
}

std::string DesignJob::layout_text(std::size_t layout) const {
  std::string text;
  if (sweep_.experiments.size() > 1)
    for (std::size_t i = 0; i < sweep_.columns.size(); ++i)
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", sweep_.columns[i].name,
                          experiments::import::value_text(sweep_.experiments.at(layout).axes.at(i)));
  return text;
}

core::OptionSet DesignJob::changed_options(const silicon::Chip& chip, const silicon::Power& power) const {
  return silicon::chip_gpu(chip, power, measured_, known_->chip);
}

core::OptionSet DesignJob::gpu_options(const silicon::Chip& chip, const silicon::Power& power) const {
  core::OptionSet all;
  for (const auto& [key, value] : sweep_.experiments.front().settings)
    if (key.starts_with(kGpu)) all[key.substr(kGpu.size())] = value;
  for (const auto& [key, value] : changed_options(chip, power)) all[key] = value;
  return all;
}

JobStep DesignJob::step(const silicon::Chip& chip, const silicon::Power& power, const std::string& fidelity) const {
  experiments::Sweep sweep = sweep_;
  const core::OptionSet changed = changed_options(chip, power);
  for (experiments::Experiment& experiment : sweep.experiments) {
    for (const auto& [key, value] : changed) experiment.settings.set(kGpu + key, value);
    if (chip.nic_gbps > 0) experiment.settings.set("cluster.nic_gbps", chip.nic_gbps);
  }
  return run(std::move(sweep), fidelity);
}

JobStep DesignJob::run(experiments::Sweep sweep, const std::string& fidelity) const {
  if (!fidelity.empty())
    for (experiments::Experiment& experiment : sweep.experiments) experiment.settings.set("fidelity", fidelity);
  const io::Results results = simulate_here(sweep);
  JobStep best;
  best.step_s = std::numeric_limits<double>::infinity();
  for (std::size_t layout = 0; layout < sweep.experiments.size(); ++layout) {
    const ResultRow row{results.experiments, layout};
    if (!row.ran()) {
      if (best.why.empty() && std::isinf(best.step_s)) best.why = row.text("status") + ": " + row.text("reason");
      continue;
    }
    if (row.number("step_time_s") >= best.step_s) continue;
    const double rate = row.number("tokens_per_s_per_gpu"), step_s = row.number("step_time_s");
    best = {step_s, layout, "", rate * step_s * static_cast<double>(gpus_), rate, row.number("mfu")};
  }
  return best;
}

void for_each_in_threads(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> failed(count);
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) try {
        work(i);
      } catch (...) {
        failed[i] = std::current_exception();
      }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min(threads, count); ++i) others.emplace_back(run);
  run();
  for (std::thread& one : others) one.join();
  for (const std::exception_ptr& one : failed)
    if (one) std::rethrow_exception(one);
}

}  // namespace manyworlds::farm::design
