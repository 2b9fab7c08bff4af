// From the text of a sweep to its experiments: base, overrides, axes, constraints, rules, in this order. What all
// points share is in read_sweep.cpp, and the points themselves in sweep_points.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/axes/constraint.hpp"
#include "experiments/axes/open_keys.hpp"
#include "experiments/axes/sampling.hpp"
#include "experiments/catalog/calibration.hpp"
#include "experiments/sweep/columns.hpp"
#include "experiments/sweep/composed_document.hpp"
#include "experiments/sweep/experiment.hpp"
#include "experiments/validity/validity.hpp"

namespace manyworlds::experiments {

class SweepReader {
 public:
  /// The catalog must outlive the reader.
  SweepReader(const std::string& file, const Catalog& catalog, const ReadOptions& options)
      : file_(file), catalog_(catalog), options_(options) {}

  /// Index of the value of each factor.
  using Chosen = std::vector<std::size_t>;

  /// Reads everything but the points.
  void read(const std::string& text, const std::vector<std::string>& overrides);
  /// Reads a document that was composed of others.
  void read(const ComposedDocument& document, const std::vector<std::string>& overrides);
  /// Returns the sweep of all points, or of the sample that is asked for. No other function may be called after it.
  Sweep list();
  /// Returns the sweep of these points, which are in the order of the grid; valid ones become experiments.
  Sweep list(const std::vector<Chosen>& points);

  const std::vector<Factor>& factors() const { return factors_; }
  /// Returns what --set has to be given, as "key=value", so that the document is this point alone: what it was given,
  /// and the value of each axis.
  std::vector<std::string> overrides_of(const Chosen& chosen) const;
  /// Returns the index of a value of an axis that may have any, which gets it unless it has it.
  std::size_t value_of_any(std::size_t factor, const std::string& value);
  /// Returns the conditions of `where` anew: an expression is evaluated by one thread at a time.
  std::vector<Constraint> constraints() const { return {conditions_.begin(), conditions_.end()}; }
  const Sweep& sweep() const { return sweep_; }
  void ask_for_best(const Sweep& asked) {
    sweep_.best = asked.best, sweep_.gap = asked.gap, sweep_.front = asked.front;
  }
  bool has_sample() const { return sample_.has_value(); }

  /// Prepares what all points share, and reads the files that values of single axes name.
  void prepare();
  /// Returns the settings of a point; those of `open` keys are neutral. For threads, each with a borrower of its own.
  Settings settings_of(const Chosen& chosen, OpenKeys open, CalibrationBorrower& borrower) const;
  std::shared_ptr<const Inputs> inputs() const { return inputs_; }

 private:
  /// What a point assigns: the value of an axis of a factor, or of an override.
  struct Assignment {
    const Target* target = nullptr;
    std::size_t factor = 0;
    const Axis* axis = nullptr;
    const import::Node* override_value = nullptr;
  };
  struct Override {
    Target target;
    import::Node value;
  };

  /// A value for one of several keys that vary together.
  struct ZippedOverride {
    std::size_t factor = 0, axis = 0;
    import::Node value;
  };

  void read_document(const import::Node& root, const std::vector<std::string>& overrides);
  void read_top(const import::Node& root);
  void read_overrides(const std::vector<std::string>& overrides);
  void read_override(const std::string& given);
  void set_zipped();
  void check_overrides() const;
  void read_assume_override(const std::string& given);
  void read_assume(const import::Node& node);
  Practice practice() const { return practice_.value_or(options_.practice); }
  std::uint64_t points_to_list() const;
  void prepare_points();
  void share_settings();
  void visit_point(std::uint64_t point);
  std::uint64_t visit_drawn(const GridPermutation& drawn, std::uint64_t limit, std::size_t wanted);
  void visit_sample(std::uint64_t points);
  void visit_all(std::uint64_t points);
  Sweep listed();
  void check_needs(const Objective& column, const char* key, const import::Node& place) const;
  void check_front_of_batches() const;
  void check_no_model_beside_programs() const;
  std::vector<Assignment> assignments() const;
  Settings resolve(const Chosen& chosen, Places* places, OpenKeys open, Assumptions* assumed,
                   CalibrationBorrower& borrower) const;
  std::string fit_networks_of(const Chosen& chosen, Settings& settings) const;
  [[noreturn]] void fail_at(const Chosen& chosen, const std::string& key, const std::string& what);
  void require_all(const Chosen& chosen, const Settings& settings);
  void add_measured_gpu(Settings& settings) const;
  void add_inputs(const Chosen& chosen, const Settings& settings);
  void visit(const Chosen& chosen);
  std::string other_violations(const Settings& settings);
  void note_assumed(Assumptions assumptions);
  void note_unmeasured(const Chosen& chosen, const Settings& settings);
  [[noreturn]] void fail_unmeasured();
  void note_broken(const Settings& settings);
  [[noreturn]] void fail_empty() const;

  std::string file_;
  const Catalog& catalog_;
  ReadOptions options_;
  Sweep sweep_;
  std::vector<import::Node> changes_;  // of `base`, each over what is before it
  Settings base_;
  Settings start_;  // base_, sharing the block of the first point
  Places places_;
  CalibrationBorrower borrower_;
  ConfigReader config_reader_;
  GraphCache graphs_;
  Settings complete_;  // the last point that lacks nothing
  import::Node top_, axes_place_, objective_place_, front_place_;
  std::vector<Factor> factors_;
  std::vector<Override> overrides_;
  std::vector<ZippedOverride> zipped_;
  std::vector<Assignment> assignments_;
  std::optional<Columns> columns_;
  std::vector<import::Node> conditions_;
  std::vector<Constraint> constraints_;
  std::optional<Sample> sample_;
  std::optional<Practice> practice_;
  AssumedValues assumed_;
  /// Rules that every point breaks that a rule excludes, as long as none is valid; null before the first.
  std::optional<std::vector<RuleViolation>> broken_by_all_;
  std::set<std::string> unmeasured_;  // kernels without a measured time
  Chosen unmeasured_at_;
  std::shared_ptr<Inputs> inputs_ = std::make_shared<Inputs>();
  std::size_t input_bytes_ = 0;
};

}  // namespace manyworlds::experiments
