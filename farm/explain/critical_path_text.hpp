// The critical path of a step, summed up by what it is made of.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/step/run/critical_path.hpp"

namespace manyworlds::farm {

/// Operations of one kind and name on the path.
struct CriticalSum {
  std::string kind;  // part of the step of a kernel, copy or host's operation; dimension of communication
  std::string name;
  core::Time ps = 0, slowed_ps = 0;
  std::int64_t operations = 0;
};

struct CriticalPath {
  core::Time step_ps = 0;
  std::int64_t operations = 0;
  std::size_t ranks = 0;          // on the path
  std::vector<CriticalSum> sums;  // longest first; they add up to the step
};

/// `recording` must have all ranks.
CriticalPath critical_path_of(const core::step::CompiledStep& compiled, const core::step::Recording& recording);

/// Returns a table of the longest sums, and one line for all others.
std::string critical_path_text(const CriticalPath& path);
nlohmann::ordered_json critical_path_json(const CriticalPath& path);

}  // namespace manyworlds::farm
