#include "core/workload/layer/prices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace manyworlds::core::workload {
namespace {

using compute::Direction;
using compute::KernelClass;
using compute::Level;
using compute::Measurable;

/// Fused attention before GEMMs before all else.
int particularity(KernelClass of) {
  if (of == KernelClass::memory_bound) return 0;
  return of == KernelClass::gemm ? 1 : 2;
}

/// Kernels that may be measured as a whole: pointers into the operators' tapes.
using Group = std::vector<Work*>;

Group kernels_of(Tape& tape) {
  Group group;
  for (Work& work : tape)
    if (work.kind == Work::Kind::kernel) group.push_back(&work);
  return group;
}

Measurable as_whole(Level level, std::string_view name, Direction direction, const Cut& rank, const Group& group) {
  Measurable made;
  made.level = level;
  made.name = name;
  made.direction = direction;
  made.m = rank.tokens;
  made.n = rank.keys;
  made.k = rank.hidden;
  made.batch = rank.samples;
  for (const Work* work : group) {
    const compute::Kernel& kernel = work->kernel;
    if (particularity(kernel.kernel_class) > particularity(made.kernel_class)) made.kernel_class = kernel.kernel_class;
    made.dtype = std::max(made.dtype, kernel.dtype);  // the narrowest: none of fp32 stands beside others
    made.bytes += kernel.bytes;
    made.flops += kernel.flops;
  }
  return made;
}

/// Every kernel its share of `whole_ps`, cumulatively rounded: they add up to it, and to themselves if it is their sum.
void scale(const Group& group, Time sum_ps, Time whole_ps, Level level) {
  Time before = 0, given = 0;
  for (Work* work : group) {
    before += work->price.ps;
    const Time up_to =
        sum_ps > 0 ? static_cast<Time>((static_cast<Wide>(before) * whole_ps + sum_ps / 2) / sum_ps) : whole_ps;
    work->price = {up_to - given, level};
    given = up_to;
  }
}

class Pricer {
 public:
  Pricer(const Cut& rank, const compute::Gpu& gpu, Prices* prices) : rank_(rank), gpu_(gpu), prices_(prices) {}

  void part(std::string_view name, std::vector<Operator>& operators) {
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      Group all;
      for (Operator& each : operators) {
        const Group group = kernels_of(direction == Direction::forward ? each.forward : each.backward);
        for (Work* work : group) kernel(*work);
        whole(Level::submodule, each.name, direction, group);
        all.insert(all.end(), group.begin(), group.end());
      }
      whole(Level::layer, name, direction, all);
    }
  }

 private:
  void kernel(Work& work) const {
    work.price = compute::price(work.kernel, gpu_);
    if (prices_) note(*prices_, work.kernel, gpu_);
  }

  void whole(Level level, std::string_view name, Direction direction, const Group& group) const {
    if (group.empty() || (!gpu_.measured && !prices_)) return;
    // Of what depends on the experts of this very rank and layer, no row says anything.
    if (std::any_of(group.begin(), group.end(), [](const Work* work) { return work->of_load; })) return;
    const Measurable what = as_whole(level, name, direction, rank_, group);
    PriceSources sources;
    sources.finer_measured = true;
    for (const Work* work : group) {
      sources.finer_ps += work->price.ps;
      sources.finer_measured &= work->price.level != Level::model;
    }
    if (gpu_.measured)
      if (const auto* found = gpu_.measured->find(what)) sources.measured = *found;
    if (prices_) {
      for (const Work* work : group) sources.model_ps += compute::cost(work->kernel, gpu_);
      prices_->try_emplace(what, sources);
    }
    if (sources.measured) scale(group, sources.finer_ps, sources.measured->time_ps, level);
  }

  const Cut& rank_;
  const compute::Gpu& gpu_;
  Prices* prices_;
};

/// Of what is measured and `counts`, the first of those whose `other` time is farthest off.
template <class Counts>
Disagreement largest(const Prices& prices, Time PriceSources::*other, const Counts& counts) {
  Disagreement made;
  for (const auto& [what, sources] : prices) {
    if (!sources.measured || !counts(sources)) continue;
    const auto measured = static_cast<double>(sources.measured->time_ps);
    const double share = static_cast<double>(sources.*other) / measured - 1;
    if (!made.at.empty() && std::abs(share) <= std::abs(made.share)) continue;
    made = {share, fmt::format("{}: {:.3f} us measured, {:.3f} us otherwise", compute::describe(what), measured * 1e-6,
                               static_cast<double>(sources.*other) * 1e-6)};
  }
  return made;
}

}  // namespace

void note(Prices& prices, const compute::Kernel& kernel, const compute::Gpu& gpu) {
  if (!compute::can_be_measured(kernel)) return;
  const auto [slot, is_new] = prices.try_emplace(compute::measurable(kernel));
  if (!is_new) return;
  slot->second.model_ps = slot->second.finer_ps = compute::cost(kernel, gpu);
  if (gpu.measured)
    if (const auto* found = gpu.measured->find(slot->first)) slot->second.measured = *found;
}

std::string_view name_of(LayerKind kind) {
  if (kind.windowed) return kind.experts ? "windowed_expert_layer" : "windowed_layer";
  return kind.experts ? "expert_layer" : "layer";
}

void price(std::string_view part, const Cut& rank, const compute::Gpu& gpu, std::vector<Operator>& operators,
           Prices* prices) {
  Pricer(rank, gpu, prices).part(part, operators);
}

Disagreement levels_disagree(const Prices& prices) {
  return largest(prices, &PriceSources::finer_ps, [](const PriceSources& one) { return one.finer_measured; });
}

Disagreement model_disagrees(const Prices& prices) {
  return largest(prices, &PriceSources::model_ps, [](const PriceSources&) { return true; });
}

std::int64_t rows_used(const Prices& prices) {
  std::set<int> rows;
  for (const auto& [what, sources] : prices)
    if (sources.measured) rows.insert(sources.measured->row);
  return static_cast<std::int64_t>(rows.size());
}

}  // namespace manyworlds::core::workload
