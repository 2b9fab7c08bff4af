// A training job in a search: what it fixes, and where its own layout ranks among those found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/jobs/job.hpp"
#include "farm/search/search_report.hpp"
#include "farm/search/search_space.hpp"

namespace manyworlds::farm {

/// Returns what the layouts of a search have in common with the job: its model and the switches of its software. How
/// tokens go to experts and what overlaps with tensor parallelism and with the gathering of parameters follow from the
/// layout, so the search chooses them.
SearchedJob searched(const experiments::jobs::Job& job);

/// What of the software is otherwise in the best layout of a search than in the job.
struct OtherSwitches {
  std::vector<std::string> names;      // as the best layout has them: "overlap_parameters=true"
  experiments::Settings layout_alone;  // the best layout with the job's own switches; may violate a rule
};

/// Returns it for the settings of the job and of the best layout.
OtherSwitches other_switches(const experiments::Settings& own, const experiments::Settings& best);

/// What of a gain is the layout's, if the switches are others too.
struct LayoutGain {
  std::vector<std::string> switches;  // as the best layout has them
  std::optional<double> throughput;   // of that layout with the job's own switches; nothing if it cannot run with them
};

/// Returns where the job's own layout, `own`, ranks among those of the search, `results`, of the same fidelity; and
/// what the best of these gains: tokens, days and money if a token budget is given, memory, how certain that is, and
/// what of it is the layout's and what that of other switches.
std::string own_rank_text(const io::Results& results, const std::string& file, const io::Results& own,
                          const LayoutGain& layout = {});

}  // namespace manyworlds::farm
