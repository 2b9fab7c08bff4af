// What would make a layout fit that does not: its neighbours, one or a few choices away, looked at without simulating.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "experiments/sweep/experiment.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// A neighbour that fits.
struct FittingNeighbour {
  std::vector<std::pair<std::string, core::OptionValue>> changes;  // key and new value
  std::int64_t needs_bytes = 0;                                    // peak memory of its peak rank
  std::int64_t has_bytes = 0;                                      // what it can have
  double step_change =
      0;  // of the step time by closed forms, a share of that of the layout as it is: 0.02 is 2 % longer
};

/// The neighbours of `layout` that fit with the fewest changes (up to three of: ZeRO stage, recomputation, offloading,
/// micro-batch, and more tensor, pipeline or context parallelism), quickest first, at most `most`. Where none does,
/// those with more nodes, all states sharded and everything recomputed. Empty: not these either.
std::vector<FittingNeighbour> fitting_neighbours(const experiments::Experiment& layout, std::size_t most = 5);

std::string fitting_text(const std::vector<FittingNeighbour>& neighbours);
nlohmann::ordered_json fitting_json(const std::vector<FittingNeighbour>& neighbours);

/// Whether all experiments of a run were looked at and none fits.
bool none_fits(const io::Results& results);
/// What to say then: the layout that lacks least and by how much, and with its sweep at hand what would make it fit.
std::string none_fits_text(const io::Results& results);
std::string none_fits_text(const io::Results& results, const experiments::Sweep& sweep);

}  // namespace manyworlds::farm
