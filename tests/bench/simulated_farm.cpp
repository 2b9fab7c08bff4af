// Efficiency of farms that nobody has at hand: virtual time, measured durations (tests/farm/simulated_farm.hpp).
// simulated_farm DURATIONS.csv COLLECTIVES STEPS WORKERS...; one line of JSON for each number of workers.
#include <fmt/format.h>

#include <iostream>

#include "tests/farm/simulated_farm.hpp"

using namespace manyworlds::farm;
using namespace manyworlds::farm::synthetic;

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "usage: simulated_farm DURATIONS.csv COLLECTIVES STEPS WORKERS...\n";
    return 2;
  }
  constexpr std::size_t kNeeds = 10;
  const Work work = MeasuredTasks::read(argv[1]).draw(std::stoul(argv[2]), std::stoul(argv[3]), kNeeds, 1);
  std::vector<std::int64_t> longest_first = work.us;
  std::sort(longest_first.rbegin(), longest_first.rend());
  for (int i = 4; i < argc; ++i) {
    const int workers = std::stoi(argv[i]);
    SimulatedFarm farm(work, workers, {});
    MANYWORLDS_CHECK(farm.run(), "{} workers never end", workers);
    const double sum_s = 1e-6 * static_cast<double>(work.sum_us());
    const double longest_s = 1e-6 * static_cast<double>(work.longest_us());
    const double best_s =
        1e-6 * static_cast<double>(list_schedule_us(longest_first, static_cast<std::size_t>(workers)));
    std::cout << fmt::format(
                     R"({{"workers": {}, "tasks": {}, "sum_s": {:.0f}, "longest_s": {:.1f}, "makespan_s": {:.2f}, )"
                     R"("efficiency": {:.4f}, "bound": {:.4f}, "longest_first": {:.4f}, "coordinator_load": {:.4f}, )"
                     R"("messages_per_s": {:.0f}, "runs": {}}})",
                     workers, work.all.size(), sum_s, longest_s, farm.makespan_s(), farm.efficiency(),
                     sum_s / (workers * std::max(longest_s, sum_s / workers)), sum_s / (workers * best_s),
                     farm.coordinator_load(), static_cast<double>(farm.messages()) / farm.makespan_s(), farm.runs())
              << std::endl;
  }
}
