#include "farm/ramp/simulated_batches.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "core/base/error.hpp"
#include "io/ranking/condition.hpp"
#include "io/ranking/sweep_analysis.hpp"

namespace manyworlds::farm::ramp {
namespace {

constexpr const char* kBatch = "strategy.global_batch";
constexpr double kRounding = 1e-6;  // tokens per sample, from a throughput, differ by rounding alone

/// Axes that choose what is trained, or on what: only one value of them can count.
bool chooses_subject(const std::string& axis) {
  for (const char* prefix : {"model", "cluster", "topology"})
    if (axis.rfind(prefix, 0) == 0) return true;
  return false;
}

class Rows {
 public:
  Rows(const io::Results& results, const std::string& where, const std::string& name)
      : name_(name), axes_(results), condition_(where, results.experiments) {
    const io::Table& table = results.experiments;
    batch_ = table.find(kBatch);
    if (batch_ == nullptr || batch_->is_text())
      throw core::InputError(
          fmt::format("the sweep has no axis {}; a ramp needs one, as in 'axes: {{{}: [128, 256, 512]}}'", kBatch,
                      kBatch),
          name);
    id_ = &io::require_column("id", table, name);
    status_ = &io::require_column("status", table, name);
    gpus_ = &io::require_column("gpus", table, name);
    step_ = &io::require_column("step_time_s", table, name);
    throughput_ = &io::require_column("tokens_per_s_per_gpu", table, name);
    for (const io::Axes::Axis& axis : axes_.all())
      if (axis.name != kBatch) layout_axes_.push_back(axis);
  }

  bool counts(std::size_t row) const {
    return status_->text_at(row) == "ran" && step_->number_at(row) > 0 && gpus_->number_at(row) >= 1 &&
           batch_->number_at(row) >= 1 && throughput_->number_at(row) > 0 && condition_.matches(row);
  }
  std::string layout(std::size_t row) const { return io::Axes::text(layout_axes_, row); }
  std::int64_t gpus(std::size_t row) const { return static_cast<std::int64_t>(gpus_->number_at(row)); }
  double tokens(std::size_t row) const {
    return throughput_->number_at(row) * gpus_->number_at(row) * step_->number_at(row);
  }
  double tokens_per_sample(std::size_t row) const { return tokens(row) / batch_->number_at(row); }
  Candidate candidate(std::size_t row, double tokens_per_sample, std::uint32_t layout) const {
    return {static_cast<std::int64_t>(id_->number_at(row)), static_cast<std::int64_t>(batch_->number_at(row)),
            batch_->number_at(row) * tokens_per_sample, step_->number_at(row), layout};
  }

  /// Throws where two experiments do not train the same on the same machine.
  void check_same_subject(std::size_t a, std::size_t b) const {
    if (gpus(a) != gpus(b)) refuse(a, b, "gpus", std::to_string(gpus(a)), std::to_string(gpus(b)));
    for (const io::Axes::Axis& axis : layout_axes_)
      if (chooses_subject(axis.name) && axis.column->text_at(a) != axis.column->text_at(b))
        refuse(a, b, axis.name, axis.column->text_at(a), axis.column->text_at(b));
    const double first = tokens_per_sample(a), second = tokens_per_sample(b);
    if (std::abs(first - second) > kRounding * first)
      refuse(a, b, "tokens per sample", fmt::format("{:.0f}", first), fmt::format("{:.0f}", second));
  }

 private:
  [[noreturn]] void refuse(std::size_t a, std::size_t b, const std::string& what, const std::string& first,
                           const std::string& second) const {
    throw core::InputError(
        fmt::format("experiments {} and {} differ in {}: {} and {}; a ramp is of one model on the same GPUs, and "
                    "--where chooses them",
                    id_->text_at(a), id_->text_at(b), what, first, second),
        name_);
  }

  std::string name_;
  io::Axes axes_;
  io::Condition condition_;
  std::vector<io::Axes::Axis> layout_axes_;
  const io::Column *batch_ = nullptr, *id_ = nullptr, *status_ = nullptr, *gpus_ = nullptr, *step_ = nullptr,
                   *throughput_ = nullptr;
};

}  // namespace

SimulatedBatches simulated_batches(const io::Results& results, const std::string& where, const std::string& name) {
  const Rows rows(results, where, name);
  SimulatedBatches batches;
  std::map<std::string, std::map<std::int64_t, Candidate>> fastest;  // by layout, then by batch
  std::vector<std::size_t> counted;
  for (std::size_t row = 0; row < results.experiments.rows(); ++row) {
    if (!rows.counts(row)) continue;
    counted.push_back(row);
    rows.check_same_subject(counted.front(), row);
    const Candidate one = rows.candidate(row, std::round(rows.tokens_per_sample(counted.front())), 0);
    const auto [at, is_first] = fastest[rows.layout(row)].emplace(one.batch, one);
    if (!is_first && one.step_s < at->second.step_s) at->second = one;
  }
  if (counted.empty())
    throw core::InputError(where.empty() ? "no experiment ran" : fmt::format("no experiment ran where {}", where),
                           name);
  batches.gpus = rows.gpus(counted.front());
  batches.tokens_per_sample = std::round(rows.tokens_per_sample(counted.front()));
  for (auto& [layout, by_batch] : fastest) {
    for (auto& [batch, one] : by_batch) {
      one.layout = static_cast<std::uint32_t>(batches.layouts.size());
      batches.candidates.push_back(one);
    }
    batches.layouts.push_back(layout);
  }
  return batches;
}

}  // namespace manyworlds::farm::ramp
