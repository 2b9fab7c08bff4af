// Explains why a layout is refused, or the cost of each of its choices: simulates the layouts that differ from it in
// one choice.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep/experiment.hpp"
#include "farm/results/simulate_here.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// The layout with one choice changed.
struct Variant {
  std::string key;                        // "strategy.tp"
  core::OptionValue value, candidate;     // in the layout; in the variant
  experiments::Settings implied_changes;  // other settings that had to change with it
  std::string rejection_reason;           // why the variant cannot be simulated; empty if it can
  std::optional<std::size_t> experiment;  // index in Explained::sweep; absent for an invalid variant
};

struct Explained {
  experiments::Experiment layout;
  experiments::RuleViolations violations;  // if any rule is broken, the members below are empty
  std::vector<Variant> variants;           // by key, in the order of the option tables
  experiments::Sweep sweep;                // the layout, then each valid variant
  io::Results results;                     // of `sweep`
};

/// Lists the variants of `layout` without simulating them; none of one whose programs are given. The sizes tp, pp, cp,
/// ep and micro_batch are varied to half and twice their value, virtual_stages to the nearest valid values on both
/// sides, ZeRO and recomputation to every other value, each only if that is valid; any other setting of `strategy` that
/// is not at its default is varied to the default. global_batch is not a choice of the layout and stays.
Explained explain(const experiments::Experiment& layout);

/// Simulates the variants in this process.
void run_variants(Explained& explained, const TaskProgress& on_progress);

/// Returns what is told of a layout before its variants: whether it ran, its step by parts, its memory.
std::string layout_text(const experiments::Experiment& layout, const io::Results& results, const std::string& name);

std::string explained_text(const Explained& explained, const std::string& name);
nlohmann::ordered_json explained_json(const Explained& explained, const std::string& name);

}  // namespace manyworlds::farm
