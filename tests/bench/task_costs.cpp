// What the planner expects of every task of a sweep: rows "kind,cost", collectives before steps.
// task_costs SPEC.yaml [KEY=VALUE]...
#include <fmt/format.h>

#include "farm/plan/plan.hpp"

using namespace manyworlds;

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const experiments::Sweep sweep = experiments::read_sweep(argv[1], {argv + 2, argv + argc});
  const farm::Plan plan = farm::make_plan(sweep);
  for (const auto& collective : plan.collectives) fmt::print("collective,{}\n", collective.cost);
  for (const auto& step : plan.steps) fmt::print("step,{}\n", step.cost);
}
