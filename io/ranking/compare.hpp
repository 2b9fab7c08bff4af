// Two experiments of one run side by side: what sets them apart in the sweep, and where the time and the memory of the
// second went instead.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/ranking/top.hpp"
#include "io/results/results.hpp"

namespace manyworlds::io {

/// Of A and of B.
template <typename Value>
using Pair = std::array<Value, 2>;

struct Contrast {
  /// An axis, or what follows from the axes (`dp`), as text.
  struct Setting {
    std::string name;
    Pair<std::string> values;
  };
  /// A figure; nothing where the experiment has none.
  struct Figure {
    std::string name, unit;
    Pair<std::optional<double>> values;
  };
  /// What a whole is made of, in its units: picoseconds, bytes.
  struct Part {
    std::string name;
    Pair<std::int64_t> values{};
    std::int64_t difference() const { return values[1] - values[0]; }
  };
  /// A whole and its parts, which add up to it in both experiments, and so do their differences.
  struct Whole {
    Pair<std::int64_t> total{};
    std::vector<Part> parts;  // the largest difference first; those that neither has are left out
    std::int64_t difference() const { return total[1] - total[0]; }
    /// Of the whole difference; nothing where there is none.
    std::optional<double> share_of(const Part& part) const;
  };

  Pair<std::int64_t> ids{};
  std::vector<Setting> differing, common;  // in the order of the sweep
  Pair<std::string> status, reason;        // reason: why it did not run, else empty
  Pair<bool> analytic{};                   // its step time is a lower bound, and nothing is known of single packets
  std::vector<Figure> figures;             // step time and its interval, tokens/s/GPU, MFU, cost
  Apart apart = Apart::unknown;            // by step time, seen from the faster one
  int faster = 0;                          // 0 or 1; of equals 0
  std::optional<Whole> time;               // picoseconds; where both ran
  std::optional<Whole> memory;             // bytes, of the rank that needs most; of whatever ran or not
  std::vector<Figure> network;
  Pair<std::string>
      lost_to;  // the largest part of the step beside forward and backward kernels; "" where there is none
  Pair<double> lost_share{};  // of the step time
};

/// Throws InputError for an id that the run does not have, and for one id given twice.
Contrast compare_experiments(const Results& results, std::int64_t a, std::int64_t b);

std::string render_text(const Contrast& contrast);
/// One object; figures that an experiment does not have are null.
std::string render_json(const Contrast& contrast);

}  // namespace manyworlds::io
