// Advice for a layout that does not fit into memory: neighbouring layouts that do, found by closed forms without
// simulation.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "experiments/sweep/experiment.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// A neighbouring layout that fits.
struct FittingNeighbour {
  std::vector<std::pair<std::string, core::OptionValue>> changes;  // key and new value
  std::int64_t needs_bytes = 0;                                    // peak memory of the rank that needs most
  std::int64_t has_bytes = 0;                                      // available memory
  double step_change = 0;  // relative change of the closed-form step time: 0.02 is 2 % longer
};

/// Returns the neighbours of `layout` that fit with the fewest changes, quickest first, at most `max_count`. Up to
/// three changes are tried among: ZeRO stage, recomputation, offloading, micro-batch, and more tensor, pipeline or
/// context parallelism. If none fits, layouts with more nodes, all states sharded and full recomputation are tried.
/// Empty: none of these fits either.
std::vector<FittingNeighbour> fitting_neighbours(const experiments::Experiment& layout, std::size_t max_count = 5);

std::string fitting_text(const std::vector<FittingNeighbour>& neighbours);
nlohmann::ordered_json fitting_json(const std::vector<FittingNeighbour>& neighbours);

/// Returns whether every experiment of a run was examined and none fits.
bool none_fits(const io::Results& results);
/// Returns the message for that case: the layout that lacks least and by how much and, given the sweep, what would make
/// it fit.
std::string none_fits_text(const io::Results& results);
std::string none_fits_text(const io::Results& results, const experiments::Sweep& sweep);

}  // namespace manyworlds::farm
