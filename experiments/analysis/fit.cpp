#include "experiments/analysis/fit.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/config/graphs.hpp"

namespace manyworlds::experiments::fitting {
namespace {

using core::compute::Gpu;
using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr int kMaxRounds = 25;
constexpr double kDifferenceStep = 0.02;  // in the logarithm, for finite differences
constexpr double kPriorWidth = 0.5;       // of a constant's logarithm around its general value
constexpr double kNoise = 0.03;  // of a measurement's logarithm: repeats on a shared cluster differ by this much
constexpr double kHuberThreshold = 0.05;  // residual beyond which a row counts less
constexpr double kMaxMove = 0.3;          // in the logarithm, per round

double general_value(const std::string& key) {
  return std::get<double>(core::compute::gpu_options().read(Gpu{}).at(key));
}

Gpu with_constants(const Gpu& gpu, const std::vector<Constant>& constants, const std::string& name) {
  const auto& table = core::compute::gpu_options();
  core::OptionSet values = table.read(gpu);
  for (const Constant& one : constants)
    if (one.gpu == name) values[one.key] = one.value;
  return table.make(values);
}

/// The rows and constants of one GPU: those of different GPUs are independent.
class Problem {
 public:
  Problem(const std::vector<FitRow>& rows, std::vector<Constant>& constants, const std::string& gpu) {
    for (const FitRow& row : rows)
      if (row.gpu == gpu) rows_.push_back(&row);
    for (Constant& one : constants)
      if (one.gpu == gpu) constants_.push_back(&one);
  }

  void solve() {
    if (rows_.empty()) return;
    for (int round = 0; round < kMaxRounds && take_step() > 1e-4; ++round) {
    }
  }

 private:
  std::vector<Constant> values() const {
    std::vector<Constant> result;
    for (const Constant* one : constants_) result.push_back(*one);
    return result;
  }
  double residual(const FitRow& row, const std::vector<Constant>& at) const {
    return std::log(predict_s(row, at) / row.measured_s);
  }

  /// Takes one Gauss-Newton step and returns its length.
  double take_step() {
    const auto n = static_cast<Eigen::Index>(constants_.size());
    Matrix normal = Matrix::Zero(n, n);
    Vector gradient = Vector::Zero(n);
    const std::vector<Constant> at = values();
    for (const FitRow* row : rows_) {
      const double here = residual(*row, at);
      Vector slope(n);
      for (Eigen::Index i = 0; i < n; ++i) {
        std::vector<Constant> moved = at;
        moved[static_cast<std::size_t>(i)].value *= std::exp(kDifferenceStep);
        slope[i] = (residual(*row, moved) - here) / kDifferenceStep;
      }
      const double huber_weight = std::abs(here) > kHuberThreshold ? kHuberThreshold / std::abs(here) : 1;
      const double weight = row->weight * huber_weight / (kNoise * kNoise);
      normal += weight * slope * slope.transpose();
      gradient += weight * here * slope;
    }
    for (Eigen::Index i = 0; i < n; ++i) {
      const Constant& one = at[static_cast<std::size_t>(i)];
      const double prior_weight = 1 / (kPriorWidth * kPriorWidth);
      normal(i, i) += prior_weight;
      gradient[i] += prior_weight * std::log(one.value / general_value(one.key));
    }
    const Vector step = normal.ldlt().solve(-gradient);
    double largest_move = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
      const double moved = std::clamp(step[i], -kMaxMove, kMaxMove);
      largest_move = std::max(largest_move, std::abs(moved));
      Constant& one = *constants_[static_cast<std::size_t>(i)];
      one.value = std::min(one.value * std::exp(moved), max_value_of(one.key));
    }
    return largest_move;
  }

  static double max_value_of(const std::string& key) {
    for (const core::OptionInfo& info : core::compute::gpu_options().infos())
      if (info.name == key) return info.maximum;
    return 0;
  }

  std::vector<const FitRow*> rows_;
  std::vector<Constant*> constants_;
};

}  // namespace

core::step::Links links_of(const ExperimentConfig& config) {
  const topologies::FabricSpec fabric_spec = config.fabric_spec();
  const double share = fabric_spec.shared_nics > 0 ? static_cast<double>(fabric_spec.shared_nics) /
                                                         static_cast<double>(fabric_spec.gpus_per_node)
                                                   : 1;
  const double nic = static_cast<double>(fabric_spec.nic_bits_per_second) * share * nic_share(config);
  const double scale_up = static_cast<double>(fabric_spec.scale_up_bits_per_second) * link_share(config);
  return {{core::round_half_up(scale_up), 2 * fabric_spec.scale_up_latency_ps},
          {core::round_half_up(nic), 4 * fabric_spec.nic_latency_ps}};
}

double closed_form_s(const ExperimentConfig& config) {
  return core::step::closed_form(config.configuration, links_of(config)).step_s;
}

double predict_s(const FitRow& row, const std::vector<Constant>& constants) {
  core::step::Configuration configuration = row.configuration;
  configuration.gpu = with_constants(configuration.gpu, constants, row.gpu);
  return core::step::closed_form(configuration, row.links).step_s;
}

std::vector<Constant> fit(const std::vector<FitRow>& rows, std::vector<Constant> start) {
  std::set<std::string> gpus;
  for (const Constant& one : start) gpus.insert(one.gpu);
  for (const std::string& gpu : gpus) Problem(rows, start, gpu).solve();
  return start;
}

}  // namespace manyworlds::experiments::fitting
