// A design beside its rivals: as described, as searched within its budgets, the even split of the area, as many random
// draws, and the GPU on the market that the efficiencies come from, all appraised and simulated by the same models.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "farm/design/design_file.hpp"
#include "farm/design/designed_step.hpp"

namespace manyworlds::farm::design {

struct Design {
  std::string title;  // "as described", "best found"
  experiments::silicon::Chip chip;
  experiments::silicon::Appraisal appraisal;
  std::string over;  // the limit that it exceeds; "": none
  JobStep step;
  double usd_per_token = 0;  // NaN if no layout ran

  double cost(Aim aim) const { return aim == Aim::step_time ? step.step_s : usd_per_token; }
};

struct StudyOptions {
  std::uint64_t seed = 1;
  std::size_t evaluations = 400;      // of the search, and as many draws
  std::size_t threads = 1;            // does not change what is found
  std::string fidelity = "analytic";  // of the steps that are shown; searches are analytic
  std::function<void(std::size_t, std::size_t)> progress = nullptr;  // of designs simulated, so far and in all
};

struct Study {
  DesignFile file;
  StudyOptions options;
  std::vector<Design>
      designs;       // as described; if searched: best found, even split, best of the draws; last, the market's
  JobStep measured;  // on the market's GPU with all that was measured of it

  bool searched() const { return !file.search.empty(); }
  /// Returns the design that the file is about: the best found, or as described.
  const Design& chosen() const { return designs.at(searched() ? 1 : 0); }
  const Design& market() const { return designs.back(); }
};

/// Returns what a token costs, USD: each GPU at its cost of production, linear over its lifetime, and its energy at
/// full power.
double usd_per_token(const Money& money, const experiments::silicon::Appraisal& chip, const JobStep& step,
                     std::int64_t gpus);

/// Appraises, searches and simulates. Throws core::InputError at the search if even its least units exceed a limit, or
/// no design that it looked at can train the job.
Study study(const DesignFile& file, const DesignJob& job, const StudyOptions& options);

}  // namespace manyworlds::farm::design
