#include "farm/results/memory_advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/options.hpp"
#include "core/base/units.hpp"
#include "core/step/world/demand.hpp"
#include "core/workload/model/modules.hpp"
#include "experiments/analysis/fit.hpp"
#include "experiments/rules/validity.hpp"
#include "experiments/settings/practice.hpp"
#include "io/ranking/sweep_facts.hpp"
#include "io/results/figures.hpp"

namespace manyworlds::farm {
namespace {

using core::OptionValue;
using experiments::Experiment;
using experiments::Settings;

constexpr std::size_t kMostChanges = 3;
constexpr std::int64_t kMostNodesFactor = 64;

std::int64_t whole(const Settings& settings, const char* key) {
  return std::get<std::int64_t>(settings.at(key));
}

struct Move {
  std::string key;
  OptionValue value;
};

/// Changes of one choice, each towards less memory; those of one key exclude each other.
std::vector<Move> moves_of(const Settings& settings) {
  std::vector<Move> moves;
  for (const std::int64_t stage : {1, 3})
    if (whole(settings, "strategy.zero") < stage) moves.push_back({"strategy.zero", stage});
  const auto& recompute = std::get<std::string>(settings.at("strategy.recompute"));
  const bool fused = std::get<std::string>(settings.at("strategy.stack.attention")) != "unfused";
  if (recompute == "none" && !fused) moves.push_back({"strategy.recompute", std::string("selective")});
  if (recompute != "full") moves.push_back({"strategy.recompute", std::string("full")});
  for (const char* key : {"strategy.tp", "strategy.pp", "strategy.cp"})
    for (const std::int64_t factor : {2, 4, 8}) moves.push_back({key, whole(settings, key) * factor});
  for (std::int64_t size = whole(settings, "strategy.micro_batch") / 2; size > 0; size /= 2)
    moves.push_back({"strategy.micro_batch", size});
  if (std::get<std::string>(settings.at("strategy.offload_modules")).empty())
    moves.push_back({"strategy.offload_modules", core::join_several(core::workload::offload_module_names())});
  return moves;
}

/// The layouts around one, and what is known of them without simulating.
class Neighbourhood {
 public:
  explicit Neighbourhood(const Experiment& layout) : layout_(layout), moves_(moves_of(layout.settings)) {
    step_s_ = experiments::fitting::closed_form_s(experiments::world_of(layout.settings, layout.inputs));
  }

  std::vector<FittingNeighbour> nearest() {
    for (std::size_t changes = 1; changes <= kMostChanges && found_.empty(); ++changes) choose(changes, 0, {});
    for (std::int64_t factor = 2; factor <= kMostNodesFactor && found_.empty(); factor *= 2)
      look_at({{"cluster.nodes", whole(layout_.settings, "cluster.nodes") * factor},
               {"strategy.global_batch", whole(layout_.settings, "strategy.global_batch") * factor},
               {"strategy.zero", std::int64_t{3}},
               {"strategy.recompute", std::string("full")}});
    std::stable_sort(found_.begin(), found_.end(),
                     [](const auto& a, const auto& b) { return a.step_change < b.step_change; });
    return std::move(found_);
  }

 private:
  void choose(std::size_t changes, std::size_t from, const std::vector<Move>& chosen) {
    if (changes == 0) return look_at(chosen);
    for (std::size_t i = from; i < moves_.size(); ++i) {
      if (std::any_of(chosen.begin(), chosen.end(), [&](const Move& one) { return one.key == moves_[i].key; }))
        continue;
      std::vector<Move> more = chosen;
      more.push_back(moves_[i]);
      choose(changes - 1, i + 1, more);
    }
  }

  void look_at(const std::vector<Move>& moves) {
    Settings settings = layout_.settings;
    for (const Move& move : moves) experiments::change(settings, move.key, move.value);
    const experiments::World world = experiments::world_of(settings, layout_.inputs);
    if (experiments::find_violation(world, graphs_)) return;
    const core::step::Demand demand = core::step::demand_of(world.configuration);
    if (demand.needs.total() > demand.memory_bytes()) return;
    FittingNeighbour made{{}, demand.needs.total(), demand.memory_bytes(), 0};
    for (const Move& move : moves) made.changes.emplace_back(move.key, move.value);
    made.step_change = experiments::fitting::closed_form_s(world) / step_s_ - 1;
    found_.push_back(std::move(made));
  }

  const Experiment& layout_;
  std::vector<Move> moves_;
  double step_s_ = 0;
  experiments::GraphCache graphs_;
  std::vector<FittingNeighbour> found_;
};

std::string changes_text(const FittingNeighbour& one) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : one.changes)
    parts.push_back(
        fmt::format("{}={}", key, std::visit([](const auto& held) { return fmt::format("{}", held); }, value)));
  return fmt::format("{}", fmt::join(parts, " "));
}

/// The experiment that lacks least, as a share of what it has.
std::size_t nearest_to_fit(const io::Results& results) {
  const io::Column *needs = results.experiments.find("memory_peak_bytes"),
                   *has = results.experiments.find("gpu_memory_bytes");
  MANYWORLDS_CHECK(needs != nullptr && has != nullptr, "results without memory");
  std::size_t least = 0;
  const auto excess = [&](std::size_t row) { return needs->number_at(row) / has->number_at(row); };
  for (std::size_t row = 1; row < results.experiments.rows(); ++row)
    if (excess(row) < excess(least)) least = row;
  return least;
}

}  // namespace

std::vector<FittingNeighbour> fitting_neighbours(const Experiment& layout, std::size_t most) {
  std::vector<FittingNeighbour> found = Neighbourhood(layout).nearest();
  if (found.size() > most) found.resize(most);
  return found;
}

std::string fitting_text(const std::vector<FittingNeighbour>& neighbours) {
  if (neighbours.empty()) return "no layout near this one fits, on up to 64 times as many machines either\n";
  std::vector<std::vector<std::string>> lines{{"change", "peak memory", "step time by closed forms"}};
  for (const FittingNeighbour& one : neighbours)
    lines.push_back({changes_text(one),
                     fmt::format("{:.1f} of {:.1f} GiB", core::gib(static_cast<double>(one.needs_bytes)),
                                 core::gib(static_cast<double>(one.has_bytes))),
                     fmt::format("{:+.1f} %", 100 * one.step_change)});
  return "what would make it fit, the quickest first\n" + io::aligned(lines, {true, false, false}, "  ");
}

nlohmann::ordered_json fitting_json(const std::vector<FittingNeighbour>& neighbours) {
  auto made = nlohmann::ordered_json::array();
  for (const FittingNeighbour& one : neighbours) {
    nlohmann::ordered_json changes;
    for (const auto& [key, value] : one.changes) changes[key] = experiments::to_json(value);
    made.push_back({{"changes", changes},
                    {"needs_bytes", one.needs_bytes},
                    {"has_bytes", one.has_bytes},
                    {"step_time_change_share", one.step_change}});
  }
  return made;
}

bool none_fits(const io::Results& results) {
  const auto counts = results.experiments.counts_of("status");
  const auto lacking = counts.find("out_of_memory");
  return lacking != counts.end() && lacking->second == results.experiments.rows();
}

std::string none_fits_text(const io::Results& results) {
  const std::size_t least = nearest_to_fit(results);
  const std::string layout = io::Axes(results).layout(least);
  const auto gib = [&](const char* column) { return core::gib(results.experiments.find(column)->number_at(least)); };
  return fmt::format("none of {} layouts fits; nearest is experiment {}{}: {:.1f} of {:.1f} GiB\n",
                     results.experiments.rows(), results.experiments.text_at("id", least),
                     layout.empty() ? "" : " (" + layout + ")", gib("memory_peak_bytes"), gib("gpu_memory_bytes"));
}

std::string none_fits_text(const io::Results& results, const experiments::Sweep& sweep) {
  return none_fits_text(results) + fitting_text(fitting_neighbours(sweep.experiments.at(nearest_to_fit(results))));
}

}  // namespace manyworlds::farm
