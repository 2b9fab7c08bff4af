#include "farm/calibration/calibrated_library.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/collective/library/library.hpp"
#include "farm/net/net_collective.hpp"
#include "farm/validation/predicted_collectives.hpp"

namespace manyworlds::farm {
namespace {

using core::collective::Calibration;
using core::collective::Communicator;
using experiments::fitting::Candidate;
using experiments::fitting::SelectedFit;
using experiments::fitting::SelectionProblem;
using experiments::measured::MeasuredCollective;

constexpr int kRounds = 2;  // fits, each scaled to the simulation with the constants of the one before

/// What other versions add, thresholds, and exchanges of other libraries: no log of one version of NCCL tells these.
bool is_told_by_logs(const core::OptionInfo& info) {
  constexpr std::string_view kOthers[] = {"library_fill_reduce_scatter_share", "library_exchange_simple_kib"};
  return info.kind == core::OptionInfo::Kind::real && !info.name.starts_with("library_older_") &&
         !info.name.starts_with("library_dispatch_") && !info.name.starts_with(core::collective::kTokenPrefix) &&
         std::find(std::begin(kOthers), std::end(kOthers), info.name) == std::end(kOthers);
}

/// A row and what its closed form needs.
struct Operation {
  MeasuredCollective row;
  core::collective::Library library;
  Communicator communicator;  // with the shares of the rates at the start
};

Communicator with_shares(Communicator communicator, const Calibration& start, const Calibration& now) {
  const auto scale = [](std::int64_t& rate, double before, double after) {
    if (before > 0 && after > 0)
      rate = std::max<std::int64_t>(1, core::round_half_up(static_cast<double>(rate) * after / before));
  };
  scale(communicator.intra_node.bits_per_second, start.link_share, now.link_share);
  scale(communicator.inter_node.bits_per_second, start.nic_share, now.nic_share);
  return communicator;
}

double closed_form_us(const Operation& operation, const Calibration& now) {
  core::collective::Library library = operation.library;
  const Communicator communicator = with_shares(operation.communicator, library.calibration, now);
  library.calibration = now;
  const auto shape = choose_shape(library, communicator, operation.row.kind, operation.row.bytes);
  return core::seconds(predicted_ps(shape, communicator)) * 1e6;
}

class LibraryFit {
 public:
  explicit LibraryFit(const std::vector<MeasuredCollective>& rows) {
    part_.title = "collectives";
    for (const MeasuredCollective& row : rows) add(row);
  }

  CalibratedPart run() {
    if (operations_.empty()) return std::move(part_);
    start_ = operations_.front().library.calibration;
    set_up();
    SelectedFit fit{starts(), {}, {}};
    for (int round = 0; round < kRounds; ++round) {
      scale_to(round == 0 ? before_ : simulated(fit.values), fit.values);
      fit = select_and_fit(problem_);
    }
    scale_to(simulated(fit.values), fit.values);
    const std::vector<double> left_out = predict_left_out(problem_);
    for (std::size_t i = 0; i < operations_.size(); ++i) part_.rows[i].left_out = left_out[i];
    take_fit(part_, problem_, fit);
    const std::vector<double> after = simulated(changed_values());
    for (std::size_t i = 0; i < operations_.size(); ++i) part_.rows[i].after = after[i];
    return std::move(part_);
  }

 private:
  void omit(const MeasuredCollective& row, const std::string& reason, const std::string& detail) {
    part_.omitted.push_back({row.id, row.family, reason, detail});
  }

  void add(const MeasuredCollective& row) {
    if (!row.unsupported.empty()) return omit(row, row.unsupported, row.detail);
    if (row.tokens) return omit(row, "the kernels of exchanges of tokens are not calibrated", row.op);
    if (row.excluded_from_family) return omit(row, "it is excluded in its table", row.exclusion_reason);
    const PredictedCollective prediction = predict(row, graphs_);
    if (!prediction.predicted_us) return omit(row, prediction.reason, prediction.detail);
    const experiments::ExperimentConfig config = experiments::config_of(row.settings);
    core::step::Configuration configuration = config.configuration;
    configuration.graph = graphs_.get(config);
    if (!operations_.empty() && operations_.front().library.version != configuration.collectives.version)
      throw core::InputError(fmt::format("rows of several versions of the library, as in {} and {}; give those of one",
                                         operations_.front().row.id, row.id));
    operations_.push_back({row, configuration.collectives, communicator_of_all(configuration)});
    before_.push_back(*prediction.predicted_us);
    part_.rows.push_back({row.id, row.family, row.measured_us, before_.back(), before_.back(), before_.back()});
  }

  void set_up() {
    const core::OptionSet values = core::collective::calibration_options().read(start_);
    for (const core::OptionInfo& info : core::collective::calibration_options().infos())
      if (is_told_by_logs(info) && std::get<double>(values.at(info.name)) > 0)
        problem_.candidates.push_back({info.name, std::get<double>(values.at(info.name)), info.minimum, info.maximum});
    problem_.weights = weights_by_kind(part_.rows);
    for (std::size_t i = 0; i < part_.rows.size(); ++i) {
      part_.rows[i].weight = problem_.weights[i];
      problem_.measured.push_back(part_.rows[i].measured);
    }
    problem_.predict = [this](const std::vector<double>& values_at) {
      const Calibration now = calibration_at(values_at);
      std::vector<double> predicted;
      for (std::size_t i = 0; i < operations_.size(); ++i)
        predicted.push_back(scales_[i] * closed_form_us(operations_[i], now));
      return predicted;
    };
  }

  std::vector<double> starts() const {
    std::vector<double> values;
    for (const Candidate& one : problem_.candidates) values.push_back(one.start);
    return values;
  }

  std::vector<double> changed_values() const {
    std::vector<double> values = starts();
    for (const CalibratedConstant& change : part_.changes())
      for (std::size_t i = 0; i < values.size(); ++i)
        if (problem_.candidates[i].key == change.key) values[i] = change.after;
    return values;
  }

  Calibration calibration_at(const std::vector<double>& values) const {
    core::OptionSet set = core::collective::calibration_options().read(start_);
    for (std::size_t i = 0; i < values.size(); ++i) set[problem_.candidates[i].key] = values[i];
    return core::collective::calibration_options().make(set);
  }

  /// Scales closed forms so that they equal the simulated times at these values.
  void scale_to(const std::vector<double>& simulated_us, const std::vector<double>& values) {
    const Calibration now = calibration_at(values);
    scales_.resize(operations_.size());
    for (std::size_t i = 0; i < operations_.size(); ++i)
      scales_[i] = simulated_us[i] / closed_form_us(operations_[i], now);
  }

  std::vector<double> simulated(const std::vector<double>& values) {
    std::vector<double> result;
    for (const Operation& operation : operations_) {
      MeasuredCollective row = operation.row;
      for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != problem_.candidates[i].start)
          row.settings["cluster.gpu." + problem_.candidates[i].key] = values[i];
      const PredictedCollective prediction = predict(row, graphs_);
      MANYWORLDS_CHECK(prediction.predicted_us.has_value(), "{} is not predicted any more: {}", row.id,
                       prediction.reason);
      result.push_back(*prediction.predicted_us);
    }
    return result;
  }

  experiments::GraphCache graphs_;
  std::vector<Operation> operations_;
  std::vector<double> before_, scales_;
  Calibration start_;
  SelectionProblem problem_;
  CalibratedPart part_;
};

}  // namespace

CalibratedPart calibrate_library(const std::vector<MeasuredCollective>& rows) {
  return LibraryFit(rows).run();
}

}  // namespace manyworlds::farm
