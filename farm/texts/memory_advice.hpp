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

/// Neighbouring layouts that a rule refuses.
struct RefusedNeighbours {
  std::string rule, reason;                                        // the reason has the values of the first of them
  std::vector<std::pair<std::string, core::OptionValue>> changes;  // key and new value of each; cluster.nodes for more
};

struct FittingAdvice {
  std::vector<FittingNeighbour> neighbours;  // empty: none fits
  std::vector<RefusedNeighbours> refused;    // if none fits: of layouts with one change, or on more nodes, by rule
  bool tried_more_nodes = false;             // if none fits: whether rules allow a layout on more nodes
};

/// Returns the neighbours of `layout` that fit with the fewest changes, quickest first, at most `max_count`. Up to
/// three changes are tried among: ZeRO stage, recomputation, offloading, micro-batch, and more tensor, pipeline or
/// context parallelism. If none fits, layouts with more nodes, all states sharded and full recomputation are tried;
/// where rules refuse these, all states sharded alone, or the recomputation alone.
FittingAdvice fitting_advice(const experiments::Experiment& layout, std::size_t max_count = 5);

/// Returns the neighbours as a table, or that there is none and which layouts are refused.
std::string fitting_text(const FittingAdvice& advice);
/// Returns the neighbours alone.
nlohmann::ordered_json fitting_json(const FittingAdvice& advice);
/// Returns the refused layouts.
nlohmann::ordered_json refused_json(const FittingAdvice& advice);

/// Returns whether every experiment of a run was examined and none fits.
bool none_fits(const io::Results& results);
/// Returns the message for that case: the layout that lacks least and by how much and, given the sweep, what would make
/// it fit.
std::string none_fits_text(const io::Results& results);
std::string none_fits_text(const io::Results& results, const experiments::Sweep& sweep);

}  // namespace manyworlds::farm
