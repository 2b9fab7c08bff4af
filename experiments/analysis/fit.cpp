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

constexpr int kRounds = 25;
constexpr double kStep = 0.02;       // of a logarithm, for differences
constexpr double kPriorWidth = 0.5;  // of a constant's logarithm around its general value
constexpr double kNoise = 0.03;      // of a measurement's logarithm: repeats on a shared cluster differ by so much
constexpr double kFar = 0.05;        // beyond, a row counts less
constexpr double kMostMove = 0.3;    // of a logarithm, in a round

double general_value(const std::string& key) {
  return std::get<double>(core::compute::gpu_options().read(Gpu{}).at(key));
}

Gpu with(const Gpu& gpu, const std::vector<Constant>& constants, const std::string& name) {
  const auto& table = core::compute::gpu_options();
  core::OptionSet values = table.read(gpu);
  for (const Constant& one : constants)
    if (one.gpu == name) values[one.key] = one.value;
  return table.make(values);
}

/// Rows of one GPU against its constants: those of different GPUs do not touch each other.
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
    for (int round = 0; round < kRounds && move() > 1e-4; ++round) {
    }
  }

 private:
  std::vector<Constant> values() const {
    std::vector<Constant> made;
    for (const Constant* one : constants_) made.push_back(*one);
    return made;
  }
  double residual(const FitRow& row, const std::vector<Constant>& at) const {
    return std::log(predict_s(row, at) / row.measured_s);
  }

  /// One step of Gauss and Newton; how far it went.
  double move() {
    const auto n = static_cast<Eigen::Index>(constants_.size());
    Matrix normal = Matrix::Zero(n, n);
    Vector gradient = Vector::Zero(n);
    const std::vector<Constant> at = values();
    for (const FitRow* row : rows_) {
      const double here = residual(*row, at);
      Vector slope(n);
      for (Eigen::Index i = 0; i < n; ++i) {
        std::vector<Constant> moved = at;
        moved[static_cast<std::size_t>(i)].value *= std::exp(kStep);
        slope[i] = (residual(*row, moved) - here) / kStep;
      }
      const double far = std::abs(here) > kFar ? kFar / std::abs(here) : 1;
      const double weight = row->weight * far / (kNoise * kNoise);
      normal += weight * slope * slope.transpose();
      gradient += weight * here * slope;
    }
    for (Eigen::Index i = 0; i < n; ++i) {
      const Constant& one = at[static_cast<std::size_t>(i)];
      const double hold = 1 / (kPriorWidth * kPriorWidth);
      normal(i, i) += hold;
      gradient[i] += hold * std::log(one.value / general_value(one.key));
    }
    const Vector step = normal.ldlt().solve(-gradient);
    double most = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
      const double moved = std::clamp(step[i], -kMostMove, kMostMove);
      most = std::max(most, std::abs(moved));
      Constant& one = *constants_[static_cast<std::size_t>(i)];
      one.value = std::min(one.value * std::exp(moved), most_of(one.key));
    }
    return most;
  }

  static double most_of(const std::string& key) {
    for (const core::OptionInfo& info : core::compute::gpu_options().infos())
      if (info.name == key) return info.maximum;
    return 0;
  }

  std::vector<const FitRow*> rows_;
  std::vector<Constant*> constants_;
};

}  // namespace

core::step::Links links_of(const World& world) {
  const topologies::Site site = world.site();
  const double share =
      site.shared_nics > 0 ? static_cast<double>(site.shared_nics) / static_cast<double>(site.gpus_per_node) : 1;
  const double nic = static_cast<double>(site.nic_bits_per_second) * share * nic_share(world);
  return {{site.scale_up_bits_per_second, 2 * site.scale_up_latency_ps},
          {core::round_half_up(nic), 4 * site.nic_latency_ps}};
}

double closed_form_s(const World& world) {
  return core::step::closed_form(world.configuration, links_of(world)).step_s;
}

double predict_s(const FitRow& row, const std::vector<Constant>& constants) {
  core::step::Configuration configuration = row.configuration;
  configuration.gpu = with(configuration.gpu, constants, row.gpu);
  return core::step::closed_form(configuration, row.links).step_s;
}

std::vector<Constant> fit(const std::vector<FitRow>& rows, std::vector<Constant> start) {
  std::set<std::string> gpus;
  for (const Constant& one : start) gpus.insert(one.gpu);
  for (const std::string& gpu : gpus) Problem(rows, start, gpu).solve();
  return start;
}

}  // namespace manyworlds::experiments::fitting
