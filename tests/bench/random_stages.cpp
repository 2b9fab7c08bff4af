// What random sampling finds of a space whose stages may have any layers, by lower bounds, so that no simulation of a
// sample could be better: each point as likely as any other, for as many draws as are asked for.
// random_stages SPEC.yaml DRAWS SEED [KEY=VALUE]...
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <random>
#include <set>
#include <vector>

#include "core/step/estimate/lower_bound.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "experiments/sweep/space.hpp"
#include "experiments/text/text.hpp"

using namespace manyworlds;
using Numbers = std::vector<std::int64_t>;

namespace {

/// Returns equally likely lists of positive numbers with this sum.
Numbers draw_layers(std::int64_t layers, std::int64_t stages, std::mt19937_64& random) {
  std::set<std::int64_t> ends;  // of all stages but the last
  while (std::ssize(ends) + 1 < stages)
    ends.insert(1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(layers - 1)));
  Numbers result;
  std::int64_t before = 0;
  for (const std::int64_t end : ends) result.push_back(end - before), before = end;
  result.push_back(layers - before);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: random_stages SPEC.yaml DRAWS SEED [KEY=VALUE]...\n");
    return 2;
  }
  const experiments::Catalog catalog;
  experiments::Space space(experiments::import::read_text(argv[1]), argv[1], {argv + 4, argv + argc}, catalog);
  space.prepare();
  experiments::Space::Viewer viewer(space);
  core::step::LowerBounds bounds;
  std::mt19937_64 random(std::strtoull(argv[3], nullptr, 10));
  const auto draws = std::strtoull(argv[2], nullptr, 10);
  std::uint64_t valid = 0, fitting = 0;
  double best = 0;  // tokens per second and GPU
  for (std::uint64_t draw = 1; draw <= draws; ++draw) {
    experiments::Space::Point point;
    for (std::size_t factor = 0; factor < space.factors(); ++factor)
      point.push_back(space.is_any(factor) ? experiments::Space::kOpen
                                           : static_cast<std::uint32_t>(random() % space.size_of(factor)));
    const auto experiment = viewer.experiment_of(point);
    if (!experiment) continue;
    core::step::Configuration configuration = viewer.configuration_of(*experiment);
    core::workload::Strategy& s = configuration.strategy;
    const std::int64_t stages = s.stages().count();
    if (stages > configuration.model.layers) continue;  // a stage has a layer or more
    ++valid;
    s.stage_layers = draw_layers(configuration.model.layers, stages, random);
    if (!s.stage_recompute_layers.empty())
      for (std::size_t stage = 0; stage < s.stage_layers.size(); ++stage)
        s.stage_recompute_layers[stage] =
            static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(s.stage_layers[stage] + 1));
    const core::step::MemoryRequirement memory = memory_requirement_of(configuration);
    if (memory.required.total() > memory.memory_bytes()) continue;
    ++fitting;
    const double rate = static_cast<double>(s.global_batch * configuration.model.sequence) /
                        static_cast<double>(s.tp * s.cp * s.pp * s.dp) / core::seconds(bounds.of(configuration));
    if (rate <= best) continue;
    best = rate;
    fmt::print("draw {}: {:.2f} tokens/s/GPU at most, pp {}, layers {}, recomputed {}\n", draw, best, s.pp,
               experiments::list_text(s.stage_layers), experiments::list_text(s.stage_recompute_layers));
  }
  fmt::print("{} draws, {} valid, {} fit; the best has {:.2f} tokens/s/GPU at most; {:.1f} s of CPU\n", draws, valid,
             fitting, best, static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
}
