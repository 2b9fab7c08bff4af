#include "experiments/analysis/fit.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "experiments/config/graphs.hpp"

namespace manyworlds::experiments::fitting {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr int kMaxRounds = 25;
constexpr double kDifferenceStep = 0.02;  // in the logarithm, for finite differences
constexpr double kPriorWidth = 0.5;       // of a constant's logarithm around its general value
constexpr double kNoise = 0.03;  // of a measurement's logarithm: repeats on a shared cluster differ by this much
constexpr double kHuberThreshold = 0.05;  // residual beyond which a row counts less
constexpr double kMaxSlowdown = 0.32;  // NCCL runs on at most 32 SMs (its MAXCHANNELS), which leaves kernels 100 of 132
constexpr double kMaxMove = 0.3;       // in the logarithm, per round

core::OptionInfo option_of(const std::string& key) {
  std::vector<core::OptionInfo> options = core::compute::gpu_options().infos();
  for (core::OptionInfo& info : core::workload::stack_options().infos()) options.push_back(std::move(info));
  const auto found = std::find_if(options.begin(), options.end(), [&](const auto& one) { return one.name == key; });
  MANYWORLDS_CHECK(found != options.end(), "'{}' is an option of no GPU and no stack", key);
  return *found;
}

/// Returns the largest value that a constant may have.
double maximum(const std::string& key) {
  return key == "communication_slowdown" ? kMaxSlowdown : option_of(key).maximum;
}

double general_value(const std::string& key) {
  return std::get<double>(option_of(key).default_value);
}

/// Gives a GPU or a stack its constants; what no option holds, as the table of measured shapes, stays.
template <class T>
void set_constants(T& target, const core::OptionTable<T>& table, const std::vector<Constant>& constants,
                   const std::string& name) {
  for (const auto& row : table.rows())
    for (const Constant& one : constants)
      if (one.owner == name && one.key == row.info.name) row.set(target, one.value);
}

/// The rows of `table` that the constants of `name` are set by, with the numbers of these constants.
template <class T>
std::vector<std::pair<std::size_t, const typename core::OptionTable<T>::Row*>> setters_of(
    const core::OptionTable<T>& table, const std::vector<Constant>& constants, const std::string& name) {
  std::vector<std::pair<std::size_t, const typename core::OptionTable<T>::Row*>> result;
  for (const auto& row : table.rows())
    for (std::size_t i = 0; i < constants.size(); ++i)
      if (constants[i].owner == name && constants[i].key == row.info.name) result.emplace_back(i, &row);
  return result;
}

using Values = std::vector<double>;  // of the constants, in their order

/// A residual, and its derivatives by the logarithms of the constants that the row uses.
struct Slopes {
  double residual = 0;
  std::vector<std::pair<Eigen::Index, double>> by_constant;
};

/// A row that is asked for its residual with many values of the constants. Only those that its GPU and its stack have
/// matter to it.
class AskedRow {
 public:
  AskedRow(FitRow row, const std::vector<Constant>& constants)
      : row_(std::move(row)),
        of_gpu_(setters_of(core::compute::gpu_options(), constants, row_.gpu)),
        of_stack_(setters_of(core::workload::stack_options(), constants, row_.stack)) {
    for (std::size_t i = 0; i < constants.size(); ++i)
      if (constants[i].owner == row_.gpu || constants[i].owner == row_.stack) used_.push_back(i);
  }

  double weight() const { return row_.weight; }
  bool tells_constants() const { return !used_.empty(); }

  double residual(const Values& values) {
    for (const auto& [i, option] : of_gpu_) option->set(row_.configuration.gpu, values[i]);
    for (const auto& [i, option] : of_stack_) option->set(row_.configuration.strategy.stack, values[i]);
    return std::log(core::step::closed_form(row_.configuration, row_.links).step_s / row_.measured_s);
  }

  Slopes slopes(const Values& values) {
    Slopes result{residual(values), {}};
    Values moved = values;
    for (const std::size_t i : used_) {
      moved[i] *= std::exp(kDifferenceStep);
      const double slope = (residual(moved) - result.residual) / kDifferenceStep;
      result.by_constant.emplace_back(static_cast<Eigen::Index>(i), slope);
      moved[i] = values[i];
    }
    return result;
  }

  /// Returns the slopes at the values that every fit begins with, which are computed once.
  const Slopes& slopes_at_start(const Values& start) {
    if (!at_start_) at_start_ = slopes(start);
    return *at_start_;
  }

 private:
  FitRow row_;
  std::vector<std::pair<std::size_t, const core::OptionTable<core::compute::Gpu>::Row*>> of_gpu_;
  std::vector<std::pair<std::size_t, const core::OptionTable<core::workload::Stack>::Row*>> of_stack_;
  std::vector<std::size_t> used_;  // numbers of its constants
  std::optional<Slopes> at_start_;
};

}  // namespace

class RepeatedFit::Rows {
 public:
  Rows(std::vector<FitRow> rows, std::vector<Constant> start) : constants_(std::move(start)) {
    for (const Constant& one : constants_) {
      start_.push_back(one.value);
      maxima_.push_back(maximum(one.key));
      general_.push_back(general_value(one.key));
    }
    rows_.reserve(rows.size());
    for (FitRow& row : rows) rows_.emplace_back(std::move(row), constants_);
  }

  std::vector<Constant> fit(const std::function<bool(std::size_t)>& is_fitted) {
    std::vector<AskedRow*> fitted;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].tells_constants() && is_fitted(i)) fitted.push_back(&rows_[i]);
    const auto [known, is_new] = known_.try_emplace(fitted);
    if (is_new) known->second = fitted_to(fitted);
    return known->second;
  }

 private:
  std::vector<Constant> fitted_to(const std::vector<AskedRow*>& fitted) const {
    Values values = start_;
    for (int round = 0; !fitted.empty() && round < kMaxRounds && take_step(fitted, values, round == 0) > 1e-4;
         ++round) {
    }
    std::vector<Constant> result = constants_;
    for (std::size_t i = 0; i < result.size(); ++i) result[i].value = values[i];
    return result;
  }

  /// Takes one Gauss-Newton step and returns its length.
  double take_step(const std::vector<AskedRow*>& fitted, Values& values, bool first) const {
    const auto n = static_cast<Eigen::Index>(values.size());
    Matrix normal = Matrix::Zero(n, n);
    Vector gradient = Vector::Zero(n);
    for (AskedRow* row : fitted) {
      const Slopes slopes = first ? row->slopes_at_start(start_) : row->slopes(values);
      const double here = slopes.residual;
      const double huber_weight = std::abs(here) > kHuberThreshold ? kHuberThreshold / std::abs(here) : 1;
      const double weight = row->weight() * huber_weight / (kNoise * kNoise);
      for (const auto& [i, slope] : slopes.by_constant) {
        for (const auto& [j, other] : slopes.by_constant) normal(i, j) += weight * slope * other;
        gradient[i] += weight * here * slope;
      }
    }
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double prior_weight = 1 / (kPriorWidth * kPriorWidth);
      normal(i, i) += prior_weight;
      gradient[i] += prior_weight * std::log(values[at] / general_[at]);
    }
    const Vector step = normal.ldlt().solve(-gradient);
    double largest_move = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double moved = std::clamp(step[i], -kMaxMove, kMaxMove);
      largest_move = std::max(largest_move, std::abs(moved));
      values[at] = std::min(values[at] * std::exp(moved), maxima_[at]);
    }
    return largest_move;
  }

  std::vector<Constant> constants_;
  Values start_, maxima_, general_;
  std::vector<AskedRow> rows_;
  std::map<std::vector<AskedRow*>, std::vector<Constant>> known_;  // by the rows that they were fitted to
};

RepeatedFit::RepeatedFit(std::vector<FitRow> rows, std::vector<Constant> start)
    : rows_(std::make_unique<Rows>(std::move(rows), std::move(start))) {}

RepeatedFit::~RepeatedFit() = default;

std::vector<Constant> RepeatedFit::fit(const std::function<bool(std::size_t)>& is_fitted) {
  return rows_->fit(is_fitted);
}

core::step::Links links_of(const ExperimentConfig& config) {
  const topologies::FabricSpec fabric_spec = config.fabric_spec();
  const double share = fabric_spec.shared_nics > 0 ? static_cast<double>(fabric_spec.shared_nics) /
                                                         static_cast<double>(fabric_spec.gpus_per_node)
                                                   : 1;
  const double nic = static_cast<double>(fabric_spec.nic_bits_per_second) * share * nic_share(config);
  const double scale_up = static_cast<double>(fabric_spec.scale_up_bits_per_second) * link_share(config);
  // On a full mesh each other GPU of the node has an equal part of the rate, and is one link away.
  const bool mesh = fabric_spec.scale_up == core::compute::ScaleUp::full_mesh && fabric_spec.gpus_per_node > 2;
  const double peers = mesh ? static_cast<double>(fabric_spec.gpus_per_node - 1) : 1;
  return {{core::round_half_up(scale_up / peers), (mesh ? 1 : 2) * fabric_spec.scale_up_latency_ps},
          {core::round_half_up(nic), 4 * fabric_spec.nic_latency_ps},
          mesh};
}

bool is_fitted_to(const core::workload::Model& model) {
  return !model.has_experts() && !model.architecture;
}

double closed_form_s(const ExperimentConfig& config) {
  if (config.configuration.programs) return core::seconds(core::step::lower_bound_ps(config.configuration));
  return core::step::closed_form(config.configuration, links_of(config)).step_s;
}

double predict_s(const FitRow& row, const std::vector<Constant>& constants) {
  core::step::Configuration configuration = row.configuration;
  set_constants(configuration.gpu, core::compute::gpu_options(), constants, row.gpu);
  set_constants(configuration.strategy.stack, core::workload::stack_options(), constants, row.stack);
  return core::step::closed_form(configuration, row.links).step_s;
}

std::vector<Constant> fit(const std::vector<FitRow>& rows, std::vector<Constant> start) {
  return RepeatedFit(rows, std::move(start)).fit([](std::size_t) { return true; });
}

}  // namespace manyworlds::experiments::fitting
