// Why a layout is refused, or what each of its choices costs: the layouts that differ from it in one choice, simulated
// beside it.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/sweep/experiment.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// One choice made otherwise.
struct Variant {
  std::string key;                        // "strategy.tp"
  core::OptionValue value, instead;       // as the layout has it, and as the variant does
  experiments::Settings along;            // what else had to change
  std::string why_not;                    // the rule that it breaks; empty: none
  std::optional<std::size_t> experiment;  // of Explained::sweep; none: why_not
};

struct Explained {
  experiments::Experiment layout;
  experiments::Violations violations;  // where any is broken, nothing else stands here
  std::vector<Variant> variants;       // by key, in the order of the option tables
  experiments::Sweep sweep;            // the layout first, then each variant that can be
  io::Results results;                 // of `sweep`
};

/// Of a size (tp, pp, cp, ep, micro_batch, virtual_stages) the nearest values on both sides that break no rule; of ZeRO
/// and recomputation every other; of all else in `strategy` that is not at its default, that one. global_batch is no
/// choice of a layout, and stays. Simulates nothing.
Explained explain(const experiments::Experiment& layout);

/// Simulates the variants in this process; `told` hears before each task how many are done, out of how many.
void run_variants(Explained& explained, const std::function<void(std::size_t, std::size_t)>& told);

std::string explained_text(const Explained& explained, const std::string& name);
nlohmann::ordered_json explained_json(const Explained& explained, const std::string& name);

}  // namespace manyworlds::farm
