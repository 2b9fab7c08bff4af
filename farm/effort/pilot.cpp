#include "farm/effort/pilot.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "core/step/run/result.hpp"

namespace manyworlds::farm {
namespace {

using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kMaxSamples = 1000;

struct Measured {
  double cpu_s = 0, link_hops = 0, simulated = 0;
};

}  // namespace

std::optional<Pilot> run_pilot(const SweepJob& job, const ComputeAlone& compute_alone, Seconds at_most) {
  const Plan& plan = job.plan();
  std::vector<double> costs;
  for (const PlannedStep& step : plan.steps) costs.push_back(step.cost);
  const WeightedDraw draw(costs);
  if (draw.is_empty()) return std::nullopt;
  const auto begin = steady_clock::now();
  const auto left = [&] { return at_most - Seconds(steady_clock::now() - begin); };
  Pilot pilot;
  std::map<std::uint32_t, Measured> known;  // by step
  std::vector<double> cpu_s, link_hops, simulated;
  while (cpu_s.size() < kMaxSamples && known.size() < plan.steps.size() && left() > Seconds(0)) {
    const std::uint32_t step = draw.item(cpu_s.size());
    const auto [measured, is_new] = known.try_emplace(step);
    if (is_new) {
      const auto started = steady_clock::now();
      const ComputedAlone alone = compute_alone(plan.task_of_step(step), left() + at_most);
      if (alone.state == ComputedAlone::State::impossible) return std::nullopt;
      if (alone.ok()) {
        const auto result = core::step::decode_step(alone.results.back());
        const Effort effort = effort_of(alone.results);
        measured->second = {effort.cpu_s, static_cast<double>(result.link_hops),
                            static_cast<double>(effort.link_hops.simulated)};
      } else {
        pilot.is_cut = true;
        measured->second.cpu_s = Seconds(steady_clock::now() - started).count();
      }
    }
    const double probability = draw.probability(step);
    cpu_s.push_back(measured->second.cpu_s / probability);
    pilot.longest_s = std::max(pilot.longest_s, measured->second.cpu_s);
    if (pilot.is_cut) break;
    link_hops.push_back(measured->second.link_hops / probability);
    simulated.push_back(measured->second.simulated / probability);
  }
  if (cpu_s.empty()) return std::nullopt;
  pilot.samples = std::ssize(cpu_s);
  pilot.steps = std::ssize(known);
  pilot.cpu_s = total_of(cpu_s);
  if (!link_hops.empty()) pilot.link_hops = total_of(link_hops), pilot.simulated_link_hops = total_of(simulated);
  if (known.size() == plan.steps.size() && !pilot.is_cut) {
    Measured sum;
    for (const auto& [step, one] : known)
      sum.cpu_s += one.cpu_s, sum.link_hops += one.link_hops, sum.simulated += one.simulated;
    pilot.cpu_s = {sum.cpu_s, 0}, pilot.link_hops = {sum.link_hops, 0}, pilot.simulated_link_hops = {sum.simulated, 0};
  }
  return pilot;
}

}  // namespace manyworlds::farm
