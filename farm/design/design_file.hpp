// The YAML file of `manyworlds design`: a GPU by its units and process, the training job, budgets, and the units that
// are searched.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/silicon/chip.hpp"
#include "experiments/silicon/cost.hpp"
#include "farm/design/optimiser.hpp"

namespace manyworlds::farm::design {

enum class Aim : std::uint8_t { step_time, usd_per_token };

/// What a token costs: GPUs at their cost of production over their lifetime, and their energy.
struct Money {
  double years = 4;
  double usd_per_kwh = 0.1;
};

struct DesignFile {
  std::string name;  // in messages
  std::string title;
  std::string job;  // path of the experiment or the sweep of layouts that it trains with
  int job_line = 0;
  experiments::silicon::Chip chip;
  std::string like;  // the known chip that it began with; "" if all units are given
  experiments::silicon::Process process;
  experiments::silicon::Budget budget;
  std::vector<Dimension> search;  // names of units; empty: nothing is searched
  int search_line = 0;
  Aim aim = Aim::step_time;
  Money money;
};

/// Parses `text`; a relative path of the job starts from the folder of `name`. Throws core::InputError with file, line
/// and key.
DesignFile parse_design(std::string_view text, const std::string& name);

/// Returns the file's chip with the units that a point of its search has.
experiments::silicon::Chip chip_at(const DesignFile& file, const Point& point);
/// Returns the searched units that a chip has.
Point point_of(const DesignFile& file, const experiments::silicon::Chip& chip);

}  // namespace manyworlds::farm::design
