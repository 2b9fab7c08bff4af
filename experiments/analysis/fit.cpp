#include "experiments/analysis/fit.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
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

bool uses(const FitRow& row, const Constant& one) {
  return one.owner == row.gpu || one.owner == row.stack;
}

class Problem {
 public:
  Problem(const std::vector<FitRow>& rows, std::vector<Constant>& constants) : rows_(rows), constants_(constants) {}

  void solve() {
    if (rows_.empty()) return;
    for (int round = 0; round < kMaxRounds && take_step() > 1e-4; ++round) {
    }
  }

 private:
  static double residual(const FitRow& row, const std::vector<Constant>& at) {
    return std::log(predict_s(row, at) / row.measured_s);
  }
  /// Returns the derivatives of a residual whose value is `here` by the logarithm of each constant.
  Vector slope(const FitRow& row, double here) const {
    Vector result = Vector::Zero(static_cast<Eigen::Index>(constants_.size()));
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      if (!uses(row, constants_[i])) continue;
      std::vector<Constant> moved = constants_;
      moved[i].value *= std::exp(kDifferenceStep);
      result[static_cast<Eigen::Index>(i)] = (residual(row, moved) - here) / kDifferenceStep;
    }
    return result;
  }

  /// Takes one Gauss-Newton step and returns its length.
  double take_step() {
    const auto n = static_cast<Eigen::Index>(constants_.size());
    Matrix normal = Matrix::Zero(n, n);
    Vector gradient = Vector::Zero(n);
    for (const FitRow& row : rows_) {
      const double here = residual(row, constants_);
      const Vector by_constant = slope(row, here);
      const double huber_weight = std::abs(here) > kHuberThreshold ? kHuberThreshold / std::abs(here) : 1;
      const double weight = row.weight * huber_weight / (kNoise * kNoise);
      normal += weight * by_constant * by_constant.transpose();
      gradient += weight * here * by_constant;
    }
    for (Eigen::Index i = 0; i < n; ++i) {
      const Constant& one = constants_[static_cast<std::size_t>(i)];
      const double prior_weight = 1 / (kPriorWidth * kPriorWidth);
      normal(i, i) += prior_weight;
      gradient[i] += prior_weight * std::log(one.value / general_value(one.key));
    }
    const Vector step = normal.ldlt().solve(-gradient);
    double largest_move = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
      const double moved = std::clamp(step[i], -kMaxMove, kMaxMove);
      largest_move = std::max(largest_move, std::abs(moved));
      Constant& one = constants_[static_cast<std::size_t>(i)];
      one.value = std::min(one.value * std::exp(moved), maximum(one.key));
    }
    return largest_move;
  }

  const std::vector<FitRow>& rows_;
  std::vector<Constant>& constants_;
};

}  // namespace

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

double closed_form_s(const ExperimentConfig& config) {
  return core::step::closed_form(config.configuration, links_of(config)).step_s;
}

double predict_s(const FitRow& row, const std::vector<Constant>& constants) {
  core::step::Configuration configuration = row.configuration;
  set_constants(configuration.gpu, core::compute::gpu_options(), constants, row.gpu);
  set_constants(configuration.strategy.stack, core::workload::stack_options(), constants, row.stack);
  return core::step::closed_form(configuration, row.links).step_s;
}

std::vector<Constant> fit(const std::vector<FitRow>& rows, std::vector<Constant> start) {
  Problem(rows, start).solve();
  return start;
}

}  // namespace manyworlds::experiments::fitting
