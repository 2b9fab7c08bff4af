// Two experiments of one run side by side: the settings that distinguish them, and how step time and memory differ,
// part by part.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/ranking/top.hpp"
#include "io/results/results.hpp"

namespace manyworlds::io {

/// The values of experiments A and B.
template <typename Value>
using Pair = std::array<Value, 2>;

struct ExperimentComparison {
  /// An axis, or a column derived from the axes (`dp`), as text.
  struct Setting {
    std::string name;
    Pair<std::string> values;
  };
  /// A metric; a value is absent where the experiment has none.
  struct Metric {
    std::string name, unit;
    Pair<std::optional<double>> values;
  };
  /// One part of a total, in the total's units: picoseconds or bytes.
  struct Part {
    std::string name;
    Pair<std::int64_t> values{};
    std::int64_t difference() const { return values[1] - values[0]; }
  };
  /// A total and its parts. The parts add up to the total in both experiments, and so do the differences.
  struct Decomposition {
    Pair<std::int64_t> total{};
    std::vector<Part> parts;  // by decreasing difference; without parts that neither experiment has
    std::int64_t difference() const { return total[1] - total[0]; }
    /// Returns a part's share of the difference of the totals; nothing if the totals are equal.
    std::optional<double> share_of(const Part& part) const;
  };

  Pair<std::int64_t> ids{};
  std::vector<Setting> differing, common;  // in the order of the sweep
  Pair<std::string> status, reason;        // reason: why it did not run, otherwise empty
  Pair<std::string> fidelity;
  bool is_bound(std::size_t which) const { return fidelity[which] == "analytic"; }  // the step time is a lower bound
  std::vector<Metric> metrics;                     // step time and its interval, tokens/s/GPU, MFU, cost
  Distinction distinction = Distinction::unknown;  // of the step times, seen from the faster experiment
  int faster = 0;                                  // 0 or 1; 0 if both are equally fast
  std::optional<Decomposition> time;               // picoseconds; if both experiments ran
  std::optional<Decomposition> memory;  // bytes, on the rank that needs most; whether or not the experiment ran
  std::vector<Metric> network;
  Pair<std::string>
      largest_loss;  // the largest part of the step besides forward and backward kernels; "" if there is none
  Pair<double> largest_loss_share{};  // share of the step time
};

/// Throws InputError for an id that the run does not have, and if `a` and `b` are equal.
ExperimentComparison compare_experiments(const Results& results, std::int64_t a, std::int64_t b);

std::string render_text(const ExperimentComparison& comparison);
/// Returns one JSON object; metrics that an experiment does not have are null.
std::string render_json(const ExperimentComparison& comparison);

}  // namespace manyworlds::io
