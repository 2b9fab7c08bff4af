#include "farm/search/layout_bounds.hpp"

#include <algorithm>
#include <numeric>

#include "core/step/estimate/lower_bound.hpp"
#include "experiments/axes/sampling.hpp"
#include "farm/plan/footprints.hpp"
#include "farm/plan/naming_experiment.hpp"
#include "farm/system/slices.hpp"

namespace manyworlds::farm {
namespace {

double tokens_per_gpu(const core::step::Configuration& configuration) {
  const core::workload::Strategy& s = configuration.strategy;
  return static_cast<double>(s.global_batch) * static_cast<double>(configuration.model.sequence) /
         static_cast<double>(s.tp * s.cp * s.pp * s.dp);
}

}  // namespace

std::size_t BoundedLayouts::faster_than(double rate) const {
  return static_cast<std::size_t>(
      std::partition_point(rates.begin(), rates.end(), [&](double bound) { return bound > rate; }) - rates.begin());
}

BoundedLayouts bounded_layouts(const experiments::Sweep& sweep,
                               std::optional<std::chrono::steady_clock::time_point> until) {
  constexpr double kDoesNotFit = 0, kUnknown = -1;
  std::vector<double> rates(sweep.experiments.size(), kUnknown);
  for_each_slice(rates.size(), [&](std::size_t begin, std::size_t end) {
    experiments::GraphCache graphs;
    experiments::ConfigReader reader;
    Footprints footprints;
    core::step::LowerBounds bounds;
    const experiments::GridPermutation random(std::max<std::size_t>(end - begin, 1), 1);
    for (std::size_t place = begin; place < end; ++place) {
      if (until && std::chrono::steady_clock::now() > *until) return;
      const std::size_t i = until ? begin + random.at(place - begin) : place;
      naming_experiment(sweep, sweep.experiments[i], [&] {
        const core::step::Configuration configuration = configure(sweep.experiments[i], graphs, reader);
        const core::step::MemoryRequirement memory = footprints.requirement_of(configuration);
        rates[i] = memory.required.total() > memory.memory_bytes()
                       ? kDoesNotFit
                       : tokens_per_gpu(configuration) / core::seconds(bounds.of(configuration));
      });
    }
  });
  BoundedLayouts result;
  result.unknown = static_cast<std::size_t>(std::count(rates.begin(), rates.end(), kUnknown));
  result.order.resize(rates.size());
  std::iota(result.order.begin(), result.order.end(), std::size_t{0});
  std::erase_if(result.order, [&](std::size_t i) { return rates[i] <= 0; });
  std::stable_sort(result.order.begin(), result.order.end(), [&](auto a, auto b) { return rates[a] > rates[b]; });
  for (const std::size_t i : result.order) result.rates.push_back(rates[i]);
  return result;
}

}  // namespace manyworlds::farm
