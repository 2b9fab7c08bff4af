#include "farm/search/searched_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/units.hpp"
#include "experiments/settings/practice.hpp"
#include "experiments/tree/scalar.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

constexpr std::string_view kModel = "model.", kStack = "strategy.stack.", kStrategy = "strategy.";
/// Switches that follow from the layout.
constexpr std::array<std::string_view, 4> kOfLayout{"dispatcher", "dispatcher_sms", "overlap_parameters",
                                                    "overlap_tensor"};
/// Keys of the strategy that no axis of a search has.
constexpr std::array<std::string_view, 7> kFixed{"overlap_grad_reduce", "bucket_parameters", "cp_comm",
                                                 "capacity_factor",     "token_drop",        "pad_to_capacity",
                                                 "expert_gemm"};

bool is_in(const auto& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

SearchedJob searched(const experiments::jobs::Job& job) {
  SearchedJob result;
  result.name = job.name;
  for (const auto& [key, value, place] : job.settings) {
    if (key.starts_with(kModel)) {
      result.model[key.substr(kModel.size())] = value;
    } else if (key.starts_with(kStack)) {
      const std::string name = key.substr(kStack.size());
      if (!is_in(kOfLayout, name)) result.stack[name] = value;
    } else if (is_in(kFixed, key.substr(kStrategy.size()))) {
      result.strategy[key.substr(kStrategy.size())] = value;
    }
  }
  return result;
}

namespace {

bool is_switch(std::string_view key) {
  return !key.starts_with(kStrategy) || key.starts_with(kStack);
}

/// Constants that follow from a switch are told by its name alone; how a step is simulated is no switch of software.
bool is_told(std::string_view key) {
  constexpr std::array kNotOfSoftware{"cluster.", "fidelity", "fluid.", "limit.", "skip."};
  const auto begins = [&](const char* prefix) { return key.starts_with(prefix); };
  return is_switch(key) && !key.starts_with(kModel) &&
         std::none_of(kNotOfSoftware.begin(), kNotOfSoftware.end(), begins);
}

}  // namespace

OtherSwitches other_switches(const experiments::Settings& own, const experiments::Settings& best) {
  constexpr const char* kZero = "strategy.zero";
  OtherSwitches result{{}, best};
  for (const auto& [key, value] : own)
    if (is_switch(key)) result.layout_alone.set(key, value);
  // Switches that mean nothing to this layout are off, as in any other experiment.
  experiments::change_setting(result.layout_alone, kZero, best.at(kZero));
  for (const auto& [key, value] : best) {
    const core::OptionValue* theirs = result.layout_alone.value(key);
    if (is_told(key) && (theirs == nullptr || *theirs != value))
      result.names.push_back(fmt::format("{}={}", key.starts_with(kStack) ? key.substr(kStack.size()) : key,
                                         experiments::import::value_text(value)));
  }
  return result;
}

namespace {

double value_at(const io::Results& results, const char* name, std::size_t row) {
  const io::Column* column = results.experiments.find(name);
  return column == nullptr ? std::nan("") : column->number_at(row);
}

/// Returns what the tokens of a training run take with the best layout, and with the job's own.
std::string saving_text(const io::Results& results, std::size_t best, const io::Results& own) {
  constexpr double kSecondsPerDay = 86'400;
  const double mine = value_at(own, "train_time_s", 0), theirs = value_at(results, "train_time_s", best);
  if (!(mine > 0) || !(theirs > 0)) return "";
  std::string text = fmt::format("  the tokens take {:.1f} days instead of {:.1f}, {:.1f} less",
                                 theirs / kSecondsPerDay, mine / kSecondsPerDay, (mine - theirs) / kSecondsPerDay);
  if (const double price = value_at(own, "train_usd", 0), other = value_at(results, "train_usd", best); price > 0)
    text += fmt::format(", and {} USD instead of {}, {} less", io::group_digits(std::round(other)),
                        io::group_digits(std::round(price)), io::group_digits(std::round(price - other)));
  return text + "\n";
}

/// Returns what of a gain is the layout's and what that of switches.
std::string parts_text(const LayoutGain& layout, double mine, double theirs) {
  if (layout.switches.empty()) return "  the software's switches are the job's own: all of it is the layout's\n";
  const std::string switches = fmt::format("{}", fmt::join(layout.switches, ", "));
  if (!layout.throughput)
    return fmt::format("  of it the layout and these switches together, as it does not run with the job's own: {}\n",
                       switches);
  return fmt::format(
      "  of it {:.1f} % are the layout's, with the job's own switches, and {:.1f} % that of switches: {}\n",
      100 * (*layout.throughput / mine - 1), 100 * (theirs / *layout.throughput - 1), switches);
}

/// Returns what the best layout has before the job's own, and how certain that is.
std::string gain_text(const io::Results& results, std::size_t best, const io::Results& own) {
  const double mine = throughputs(own).front(), theirs = throughputs(results, {best}).front();
  const double gpus = value_at(own, "gpus", 0);
  const auto free_gib = [](const io::Results& of, std::size_t row) {
    return core::gib(value_at(of, "gpu_memory_bytes", row) - value_at(of, "memory_peak_bytes", row));
  };
  const double ratio =
      std::max(value_at(own, "distinguishable_ratio", 0), value_at(results, "distinguishable_ratio", best));
  const char* certainty = std::isnan(ratio)       ? "how certain that is, is not known"
                          : theirs / mine < ratio ? "within model error: a tie"
                                                  : "beyond model error";
  std::string text = fmt::format("  {} tokens/s more on {:.0f} GPUs, {}",
                                 io::group_digits(std::round((theirs - mine) * gpus)), gpus, certainty);
  if (!std::isnan(ratio)) text += fmt::format(" (layouts less than {:.1f} % apart are)", 100 * (ratio - 1));
  return text + "\n" + saving_text(results, best, own) +
         fmt::format("  {:.1f} GiB of a GPU's memory stay free, {:.1f} with the job's own\n", free_gib(results, best),
                     free_gib(own, 0));
}

}  // namespace

std::string own_rank_text(const io::Results& results, const std::string& file, const io::Results& own,
                          const LayoutGain& layout) {
  const std::string status = own.experiments.find("status")->text_at(0);
  if (status != "ran")
    return fmt::format("\n{} itself, with the layout that it has: {}\n", file,
                       status == "out_of_memory" ? "does not fit into memory" : status);
  const double gain = throughputs(own).front();
  const std::vector<std::size_t> ranked = by_throughput(results);
  const std::vector<double> others = throughputs(results, ranked);
  const auto faster = std::count_if(others.begin(), others.end(), [&](double one) { return one > gain; });
  const double best = others.empty() ? gain : others.front();
  const std::string place = static_cast<std::size_t>(faster) == others.size()
                                ? fmt::format("slower than all these {}", others.size())
                                : fmt::format("#{} of these {}", faster + 1, others.size());
  const bool analytic = own.experiments.text_at("fidelity", 0) == "analytic";
  return fmt::format("\n{} itself: {:.4g} s a step{}, {:.1f} tokens/s/GPU: {}; #1 gains {:.1f} %\n", file,
                     value_at(own, "step_time_s", 0), analytic ? " at least (without contention, as these)" : "", gain,
                     place, 100 * (best / gain - 1)) +
         (best > gain ? parts_text(layout, gain, best) + gain_text(results, ranked.front(), own) : "");
}

}  // namespace manyworlds::farm
