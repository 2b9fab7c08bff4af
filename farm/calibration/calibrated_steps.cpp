#include "farm/calibration/calibrated_steps.hpp"

#include <algorithm>
#include <map>

#include "core/base/error.hpp"
#include "experiments/analysis/fit.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/keys/section.hpp"
#include "farm/validation/validation_fit.hpp"

namespace manyworlds::farm {
namespace {

using experiments::fitting::Constant;
using experiments::fitting::FitRow;
using experiments::fitting::SelectionProblem;
using experiments::measured::TrainingStep;

constexpr const char* kGpu = "gpu";  // all steps are of one GPU

std::map<std::string, double> times_of(const Comparison& comparison) {
  std::map<std::string, double> times;
  for (const ComparedRow& row : comparison.rows) times[row.id] = row.predicted;
  return times;
}

class StepFit {
 public:
  StepFit(const std::vector<TrainingStep>& steps, const std::vector<CalibratedConstant>& known,
          const SimulateSteps& simulate)
      : known_(known), simulate_(simulate) {
    part_.title = "steps";
    for (const TrainingStep& step : steps) add(step);
  }

  CalibratedPart run() {
    if (steps_.empty()) return std::move(part_);
    const Comparison first = simulate_(steps_);
    part_.omitted.insert(part_.omitted.end(), first.omitted.begin(), first.omitted.end());
    const std::vector<TrainingStep> told = farm::with_constants(steps_, known_);
    const auto before = times_of(first), start = known_.empty() ? before : times_of(simulate_(told));
    for (const TrainingStep& step : told)
      if (before.count(step.id) > 0 && start.count(step.id) > 0) add_row(step, start.at(step.id));
    if (rows_.empty()) return std::move(part_);
    fit();
    set_predictions(told, before, start);
    return std::move(part_);
  }

 private:
  void add(const TrainingStep& step) {
    if (!step.unsupported.empty())
      part_.omitted.push_back({step.id, step.family, step.unsupported, step.detail});
    else if (step.one_layer())
      part_.omitted.push_back({step.id, step.family, "one layer is no step", ""});
    else if (step.excluded_from_family)
      part_.omitted.push_back({step.id, step.family, "it is excluded in its table", step.exclusion_reason});
    else
      steps_.push_back(step);
  }

  /// Rows are predicted by closed forms that are scaled to their simulation. `before` is `start` until the end, so that
  /// the steps' own constants are judged by what they add to those of parts.
  void add_row(const TrainingStep& step, double start) {
    const experiments::ExperimentConfig config = experiments::config_of(step.experiments.front());
    rows_.push_back({config.configuration, experiments::fitting::links_of(config), kGpu, "", step.measured_s, 1});
    scales_.push_back(start / experiments::fitting::predict_s(rows_.back(), {}));
    const bool fitted = experiments::fitting::is_fitted_to(config.configuration.model);
    part_.rows.push_back({step.id, step.family, step.measured_s, start, start, start, fitted ? 1.0 : 0.0});
    problem_.measured.push_back(step.measured_s);
  }

  void fit() {
    add_candidates();
    problem_.weights = weights_by_kind(part_.rows);
    problem_.predict = [this](const std::vector<double>& values) {
      std::vector<Constant> constants;
      for (std::size_t i = 0; i < values.size(); ++i)
        constants.push_back({kGpu, problem_.candidates[i].key, values[i]});
      std::vector<double> predicted;
      for (std::size_t i = 0; i < rows_.size(); ++i)
        predicted.push_back(scales_[i] * experiments::fitting::predict_s(rows_[i], constants));
      return predicted;
    };
    const std::vector<double> left_out = predict_left_out(problem_);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      part_.rows[i].weight = problem_.weights[i];
      part_.rows[i].left_out = left_out[i];
    }
    take_fit(part_, problem_, select_and_fit(problem_));
  }

  /// What steps tell of the GPU; what they tell of the software's host stays with its stack.
  void add_candidates() {
    const core::OptionSet values = core::compute::gpu_options().read(rows_.front().configuration.gpu);
    const std::vector<core::OptionInfo> infos = core::compute::gpu_options().infos();
    for (const std::string_view key : step_constants()) {
      const bool told = std::any_of(known_.begin(), known_.end(), [&](const auto& one) { return one.key == key; });
      const core::OptionInfo* info = experiments::find_option(infos, std::string(key));
      if (told || info == nullptr || std::get<double>(values.at(info->name)) <= 0) continue;
      problem_.candidates.push_back(
          {info->name, std::get<double>(values.at(info->name)), info->minimum, info->maximum});
    }
  }

  void set_predictions(const std::vector<TrainingStep>& told, const std::map<std::string, double>& before,
                       const std::map<std::string, double>& start) {
    const std::vector<CalibratedConstant> changes = part_.changes();
    const auto after = changes.empty() ? start : times_of(simulate_(farm::with_constants(told, changes)));
    for (CalibratedRow& row : part_.rows) row.before = before.at(row.id), row.after = after.at(row.id);
  }

  const std::vector<CalibratedConstant>& known_;
  const SimulateSteps& simulate_;
  std::vector<TrainingStep> steps_;
  std::vector<FitRow> rows_;
  std::vector<double> scales_;
  SelectionProblem problem_;
  CalibratedPart part_;
};

}  // namespace

std::vector<TrainingStep> with_constants(std::vector<TrainingStep> steps,
                                         const std::vector<CalibratedConstant>& constants) {
  for (TrainingStep& step : steps)
    for (experiments::Settings& settings : step.experiments)
      for (const CalibratedConstant& one : constants) settings["cluster.gpu." + one.key] = one.after;
  return steps;
}

CalibratedPart calibrate_steps(const std::vector<TrainingStep>& steps, const std::vector<CalibratedConstant>& known,
                               const SimulateSteps& simulate) {
  return StepFit(steps, known, simulate).run();
}

}  // namespace manyworlds::farm
