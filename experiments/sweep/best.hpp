// Asking a sweep for its best alone, or for a Pareto front of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/sweep/experiment.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {

/// Lets a sweep simulate only what may be among its `best` best. Throws InputError, naming `option`, if no lower bound
/// of the step time bounds its objective.
void ask_for_best(Sweep& sweep, std::uint32_t best, const std::string& option);
/// Lets it end once no other experiment can be better than the last of these by more than a share, as in "2%" or
/// "0.02". Throws InputError, naming `option`, for anything but a share below 1, and for a sweep that does not ask for
/// its best.
void allow_gap(Sweep& sweep, const std::string& gap, const std::string& option);
/// Lets it simulate only what may be on the Pareto front of its objective against a column: what fewer than
/// `sweep.best` others (1 unless it asks for more) are better than in the objective, and no worse in the column. Throws
/// InputError, naming `option`, for the objective itself, for a column that is none of front_columns(), and for an
/// objective without a lower bound.
void ask_for_front(Sweep& sweep, const std::string& column, const std::string& option);
/// The same by the keys `best`, `front` and `gap` of a document; each may be null.
void read_best(const import::Node* best, const import::Node* front, const import::Node* gap, Sweep& sweep);

/// The columns that an objective may have a Pareto front against: those known before a step is simulated, and those
/// that a longer step never improves, so that a lower bound of the step time bounds them.
const std::vector<Objective>& front_columns();
/// The one of them that results have only where it is an axis. On one number of GPUs no batch that is not on the front
/// of tokens/s against it is in the fastest schedule of batches: another one has no longer T/B and no larger B, and
/// training takes (T/B) (B + r) for each step of an infinite batch, T being its step time and r the critical batch.
inline constexpr const char* kFrontOfBatches = "strategy.global_batch";
/// Returns the objective, or the column of a front, with this name, which must be one of them.
const Objective& ordered_column(const std::string& name);

}  // namespace manyworlds::experiments
