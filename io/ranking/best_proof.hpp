// Why the best of a sweep are its best: what each rung of lower bounds left behind and by how much, and how the gap
// between what is known and what is open closed. All of it follows from the results, which are the same for any number
// of ranks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "io/ranking/sweep_analysis.hpp"
#include "io/results/results.hpp"

namespace manyworlds::io {

/// By what shares of the last of the best others are worse than it, at least; below 0: better, but by no more than the
/// gap.
struct Margins {
  double least = 0, median = 0, largest = 0;  // NaN if there are no others
};

/// Of no others.
Margins no_margins();

/// One rung of the ladder of bounds; of the last one, the experiments that were simulated.
struct ProofRung {
  enum class Kind { sums, analytic, simulated } kind = Kind::sums;
  std::size_t looked_at = 0;    // experiments
  std::size_t left_behind = 0;  // by it; of the simulated: those that are not among the best
  Margins margins;              // of those that it left behind: of their bounds, of the simulated of their results
};

/// The experiments with one value of an axis that fit into memory.
struct ProvenValue {
  std::string axis, value;                 // axis: its short name
  std::size_t fitting = 0, simulated = 0;  // simulated: that ran
  double bound = 0;                        // of the objective: none of them can be better
  double margin = 0;                       // by what share of the last of the best that is worse
};

/// What was known when so many experiments were simulated, one after the other, the best bound first.
struct ClosingStep {
  std::size_t simulated = 0;
  double known = 0;  // the last of the best of these, of the objective; NaN while there are not so many
  double open = 0;   // the best bound of all others; NaN if there are none
};

struct BestProof {
  RankingObjective objective;
  const Column* bound = nullptr;  // of the objective
  std::size_t best = 0;           // how many are asked for
  std::vector<std::size_t> rows;  // these, best first; fewer if no more ran
  double last = 0;                // the objective of the last of them
  std::vector<ProofRung> rungs;
  std::vector<ProvenValue> values;  // of axes with two or more values, in the order of the axes
  std::vector<ClosingStep> closing;
  std::optional<double> gap;  // by what share of `last` others are better, at most
};

/// Returns the proof of a sweep that asked for its best and has ended; nullopt for other results, for those of which
/// none ran, and for those of versions that did not tell what bounds an experiment.
std::optional<BestProof> best_proof(const Results& results);

/// The Pareto front of a sweep that asked for it and has ended: no experiment that was left out is on it.
struct ProvenFront {
  const Column *objective = nullptr, *column = nullptr;
  std::size_t best = 1;           // proven with it: all that fewer than so many others dominate
  std::vector<std::size_t> rows;  // the front among what ran, the best by the objective first; of equal ones the first
  double gap = 0;  // by what share the objective of others may be better than that of what dominates them but for that
};
/// Returns nullopt for results of a sweep that did not ask for one, or has not ended, and of which none ran.
std::optional<ProvenFront> proven_front(const Results& results);
/// Returns what is proven of it, and by how many simulated steps, in a sentence without its full stop.
std::string front_text(const Results& results, const ProvenFront& front);

/// The values that nothing simulated has, those whose bounds are worst first in each axis, a few of each.
struct ValuesLeftBehind {
  std::vector<ProvenValue> values;
  std::size_t more = 0;  // so many are not among `values`
};
ValuesLeftBehind values_left_behind(const BestProof& proof);

/// Returns what a rung is called: "sums over a micro-batch".
const char* name_of(ProofRung::Kind kind);
/// Returns "+2.7 %"; kMissing for NaN.
std::string margin_text(double margin);

}  // namespace manyworlds::io
