#include "farm/allocation/predicted_speeds.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "core/base/error.hpp"
#include "io/ranking/condition.hpp"

namespace manyworlds::farm::allocation {
namespace {

/// Tokens of equal steps differ by rounding alone.
constexpr double kRounding = 1e-6;

class Steps {
 public:
  Steps(const io::Results& results, const std::string& name) : name_(name) {
    const io::Table& table = results.experiments;
    id_ = &io::require_column("id", table, name);
    status_ = &io::require_column("status", table, name);
    gpus_ = &io::require_column("gpus", table, name);
    step_ = &io::require_column("step_time_s", table, name);
    throughput_ = &io::require_column("tokens_per_s_per_gpu", table, name);
  }

  bool ran(std::size_t row) const {
    return status_->text_at(row) == "ran" && step_s(row) > 0 && gpus_->number_at(row) >= 1 &&
           gpus_->number_at(row) <= static_cast<double>(kGpusLimit);
  }
  std::int64_t gpus(std::size_t row) const { return static_cast<std::int64_t>(gpus_->number_at(row)); }
  double step_s(std::size_t row) const { return step_->number_at(row); }
  double tokens(std::size_t row) const {
    return throughput_->number_at(row) * gpus_->number_at(row) * step_->number_at(row);
  }

  void check_same_work(std::size_t a, std::size_t b) const {
    if (std::abs(tokens(a) - tokens(b)) <= kRounding * tokens(a)) return;
    throw core::InputError(
        fmt::format("the steps of experiments {} and {} train {:.0f} and {:.0f} tokens, and cannot be "
                    "counted together; 'where' chooses experiments of one batch, as in "
                    "'strategy.global_batch == 512'",
                    id_->text_at(a), id_->text_at(b), tokens(a), tokens(b)),
        name_);
  }

 private:
  std::string name_;
  const io::Column *id_, *status_, *gpus_, *step_, *throughput_;
};

}  // namespace

std::vector<SpeedPoint> predicted_speeds(const io::Results& results, const std::string& where,
                                         const std::string& name) {
  const Steps steps(results, name);
  const io::Condition condition(where, results.experiments);
  std::map<std::int64_t, std::size_t> fastest;  // row, by GPUs
  for (std::size_t row = 0; row < results.experiments.rows(); ++row) {
    if (!steps.ran(row) || !condition.matches(row)) continue;
    const auto [at, is_first] = fastest.emplace(steps.gpus(row), row);
    if (!is_first && steps.step_s(row) < steps.step_s(at->second)) at->second = row;
  }
  if (fastest.empty())
    throw core::InputError(where.empty() ? "no experiment ran" : fmt::format("no experiment ran where {}", where),
                           name);
  std::vector<SpeedPoint> points;
  for (const auto& [gpus, row] : fastest) {
    steps.check_same_work(fastest.begin()->second, row);
    const double speed = std::min(1 / steps.step_s(row), 1e6);
    points.push_back({gpus, std::max<std::int64_t>(1, std::llround(speed * static_cast<double>(kSpeedUnits)))});
  }
  return points;
}

}  // namespace manyworlds::farm::allocation
