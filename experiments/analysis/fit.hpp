// Fits the constants of GPUs and stacks to measured steps by closed forms: least squares of the logarithm of predicted
// over measured time with Huber's weights, which reduce the influence of outliers. A loose prior around a general value
// keeps constants sensible that the rows do not determine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/step/estimate/closed_form.hpp"
#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments::fitting {

/// Returns the links of paths: inside a node to its switch and on; between nodes NIC, leaf, spine, leaf, NIC.
core::step::Links links_of(const ExperimentConfig& config);

/// Returns the time of a step of `config` by closed forms; of given programs, what their kernels take at least.
double closed_form_s(const ExperimentConfig& config);

/// Whether constants are fitted to steps of a model. Those of models with experts, or with a list of layers, depend on
/// much that constants of kernels must not compensate for.
bool is_fitted_to(const core::workload::Model& model);

/// A measured step, as input of closed forms.
struct FitRow {
  core::step::Configuration configuration;  // without its graph
  core::step::Links links;
  std::string gpu, stack;  // whose constants it uses
  double measured_s = 0;
  double weight = 1;
};

struct Constant {
  std::string owner, key;  // a GPU or a stack, and a fitted option of core::compute::Gpu or of workload::Stack
  double value = 0;
};

/// Rows to be fitted again and again with some of them left out, and the constants that all of these fits begin with.
class RepeatedFit {
 public:
  /// `start` has each constant once.
  RepeatedFit(std::vector<FitRow> rows, std::vector<Constant> start);
  ~RepeatedFit();

  /// Returns the constants of `start`, fitted to the rows whose number `is_fitted` accepts, all at once, since a GPU
  /// runs several stacks and a stack runs on several GPUs. Rows without a constant there do not count. Deterministic:
  /// the same rows in the same order give the same constants.
  std::vector<Constant> fit(const std::function<bool(std::size_t)>& is_fitted);

 private:
  class Rows;
  std::unique_ptr<Rows> rows_;
};

/// Returns the constants of `start`, fitted to all rows.
std::vector<Constant> fit(const std::vector<FitRow>& rows, std::vector<Constant> start);

/// Returns the time of a row by closed forms with these constants.
double predict_s(const FitRow& row, const std::vector<Constant>& constants);

}  // namespace manyworlds::experiments::fitting
