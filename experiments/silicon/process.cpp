// Processes of TSMC with the figures of LLMCompass (Zhang et al., ISCA 2024) and of the supply chain model that its
// cost model uses (Ning et al., "Supply chain aware computer architecture", ISCA 2023; PrincetonUniversity/ttm-cas).
#include "core/base/error.hpp"
#include "experiments/silicon/chip.hpp"

namespace manyworlds::experiments::silicon {
namespace {

// Transistors per mm2 and prices of wafers: Khan and Mann, "AI chips: what they are and why they matter", CSET 2020,
// appendix D, as ttm-cas has them; n6 as LLMCompass, with the wafer of n7, as nobody publishes another. Bits of SRAM as
// LLMCompass' cost_model.py, n7 to n5 in proportion to the 1.35 times that TSMC claims. Defects as ttm-cas, from TSMC's
// slides.
// Energy: what is left of A100's 400 W per FLOP at its peak (cost.cpp). n5 needs 30 % less power at the same speed
// (TSMC, 2019); n6 is n7 with a smaller cell.
constexpr double kPjPerFlopN7 = 0.728, kPowerOfN5 = 0.7;

struct Node {
  const char* name;
  double million_transistors_per_mm2, sram_mm2_per_bit, wafer_usd, defects_per_cm2, pj_per_flop;
};
constexpr Node kNodes[] = {{"n7", 96.3, 1.70e-7, 9'346, 0.15, kPjPerFlopN7},
                           {"n6", 114.2, 1.40e-7, 9'346, 0.15, kPjPerFlopN7},
                           {"n5", 138.2, 1.25e-7, 16'988, 0.20, kPjPerFlopN7* kPowerOfN5}};

}  // namespace

const std::vector<std::string>& node_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Node& node : kNodes) result.emplace_back(node.name);
    return result;
  }();
  return names;
}

Process process_of(const std::string& name) {
  for (const Node& node : kNodes)
    if (node.name == name)
      return {name,
              node.million_transistors_per_mm2,
              node.sram_mm2_per_bit,
              node.wafer_usd,
              node.defects_per_cm2,
              node.pj_per_flop};
  throw core::InternalError("no process '" + name + "'");
}

const core::OptionTable<Process>& process_options() {
  using core::choice, core::option;
  static const core::OptionTable<Process> table = [] {
    auto node = option("node", &Process::node, "whose figures it has, where no others are given");
    node.info.choices = node_names();
    core::OptionTable<Process> result{
        node,
        option("million_transistors_per_mm2", &Process::million_transistors_per_mm2, "of logic", {1, 10'000}),
        option("sram_mm2_per_bit", &Process::sram_mm2_per_bit, "of SRAM, before the overhead of arrays", {1e-10, 1e-4}),
        option("wafer_usd", &Process::wafer_usd, "price of a wafer of 300 mm", {1, 1e6}, "USD"),
        option("defects_per_cm2", &Process::defects_per_cm2, "density of defects", {0, 10}),
        option("pj_per_flop", &Process::pj_per_flop, "energy of the die for a dense 16-bit FLOP", {0, 100}, "pJ"),
        choice("yield", &Process::yield, {"negative_binomial", "murphy", "poisson"}, "how defects become yield"),
        option("cluster", &Process::cluster, "clustering parameter of the negative binomial", {1, 20}),
    };
    return result;
  }();
  return table;
}

}  // namespace manyworlds::experiments::silicon
