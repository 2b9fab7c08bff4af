// Why the best of a sweep are its best, from its results (io/ranking/best_proof.hpp), and what binds the first of them:
// the parts of its lower bound beside those of its step.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/sweep/experiment.hpp"
#include "farm/explain/explained_layout.hpp"
#include "io/ranking/best_proof.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// The best experiment and its lower bounds.
struct ProvenWinner {
  experiments::Experiment experiment;
  double sums_s = 0;     // sums over a micro-batch
  io::Results analytic;  // of its analytic step: one row
};

/// Which experiments that do not fit would in GPUs with 10 % more memory, and what is proven of them.
struct MoreMemory {
  std::size_t too_large = 0;         // experiments of the sweep that do not fit
  std::size_t fitting = 0;           // of these, those that would
  std::size_t simulated = 0;         // of those, to prove the best of them and the winner
  std::optional<std::int64_t> best;  // the id of one that is better than the winner; nullopt: none is
  double value = 0;                  // its objective, or the winner's
};

struct ExplainedBest {
  const io::Results* results = nullptr;
  io::BestProof proof;
  std::optional<ProvenWinner> winner;  // nullopt if nobody can tell its settings
  std::optional<MoreMemory> memory;    // nullopt unless it was looked at
};

/// Explains a run from its results, which must outlive what is returned, and simulates the analytic step of its best if
/// `sweep` is given. Throws core::InputError, naming `run`, if nothing is proven of it.
ExplainedBest explain_best(const io::Results& results, const experiments::Sweep* sweep, const std::string& run);

/// Proves whether an experiment that would fit in 10 % more memory is better than the winner, by bounds and, where they
/// leave it open, by simulating it.
MoreMemory look_at_more_memory(const ExplainedBest& explained, const experiments::Sweep& sweep,
                               const TaskProgress& on_progress);

std::string best_explained_text(const ExplainedBest& explained, const std::string& run);
nlohmann::ordered_json best_explained_json(const ExplainedBest& explained, const std::string& run);

}  // namespace manyworlds::farm
