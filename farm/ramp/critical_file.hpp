// The YAML file of `manyworlds ramp --critical`: critical batches as measured at points of a training, or constants of
// the law for another corpus, optimizer or tokenizer.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "farm/ramp/critical_law.hpp"
#include "farm/ramp/measured_batches.hpp"

namespace manyworlds::farm::ramp {

inline constexpr std::size_t kPointsLimit = 10'000;
inline constexpr double kTokensLimit = 1e18;  // of trainings and of batches

struct CriticalFile {
  std::vector<MeasuredPoint> points;  // empty: by the law
  double batch_tokens = 0;            // of the training in which the points were measured; 0: tiny batches
  LawConstants law;
};

/// Parses `text`. Throws core::InputError with file, line and key.
CriticalFile parse_critical_file(std::string_view text, const std::string& name);

}  // namespace manyworlds::farm::ramp
