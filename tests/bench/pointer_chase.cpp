// How slow this machine's memory is today: nanoseconds of a load that depends on the one before, in 8 MB and 64 MB.
// Network simulation misses caches, so its times mean something only beside these.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <random>
#include <vector>

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kLoads = 4'000'000;

struct alignas(kLine) Cell {
  std::size_t next = 0;
};

/// One cycle through all cells in random order (Sattolo 1986), so that no prefetcher guesses the next one.
std::vector<Cell> cycle(std::size_t cells) {
  std::vector<Cell> result(cells);
  std::vector<std::size_t> order(cells);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(1);
  for (std::size_t i = cells - 1; i > 0; --i) std::swap(order[i], order[random() % i]);
  for (std::size_t i = 0; i < cells; ++i) result[i].next = order[i];
  return result;
}

double ns_per_load(std::size_t bytes) {
  const std::vector<Cell> cells = cycle(bytes / sizeof(Cell));
  std::size_t at = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) at = cells[at].next;  // every page and line is there
  const std::clock_t begin = std::clock();  // CPU time: others on the machine slow memory, not this clock
  for (std::size_t i = 0; i < kLoads; ++i) at = cells[at].next;
  const std::clock_t end = std::clock();
  volatile std::size_t keep = at;  // the loads must happen
  static_cast<void>(keep);
  return static_cast<double>(end - begin) * (1e9 / CLOCKS_PER_SEC) / static_cast<double>(kLoads);
}

}  // namespace

int main() {
  std::printf("%.1f %.1f\n", ns_per_load(std::size_t{8} << 20), ns_per_load(std::size_t{64} << 20));
}
