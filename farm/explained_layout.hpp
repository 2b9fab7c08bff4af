// Why a layout is refused, or what each of its choices costs: every key of its strategy that is not at its default is
// turned back alone, and the layouts that makes are simulated beside it.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/experiment.hpp"
#include "io/results.hpp"

namespace manyworlds::farm {

struct TurnedBack {
  std::string key;                        // "strategy.tp"
  core::OptionValue value, fallback;      // as the layout has it, and its default
  std::string why_not;                    // the rule that the layout without it breaks; empty: none
  std::optional<std::size_t> experiment;  // of Explained::variants; none: why_not
};

struct Explained {
  experiments::Experiment layout;
  experiments::Violations violations;  // where any is broken, nothing else stands here
  std::vector<TurnedBack> keys;        // in the order of the option tables
  experiments::Sweep variants;         // the layout first, then each that can be
  io::Results results;                 // of `variants`
};

/// Settings of `strategy` that are not at their defaults, each with the layout that has it there. global_batch is no
/// choice of a layout, and stays. Simulates nothing.
Explained explain(const experiments::Experiment& layout);

/// Simulates the variants in this process; `told` hears before each task how many are done, out of how many.
void run_variants(Explained& explained, const std::function<void(std::size_t, std::size_t)>& told);

std::string explained_text(const Explained& explained, const std::string& name);
nlohmann::ordered_json explained_json(const Explained& explained, const std::string& name);

}  // namespace manyworlds::farm
