// Ring collectives: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC
// 2009, section 3. Each connection carries one chunk at a time.
#include "core/collective/dag.hpp"

namespace manyworlds::core::collective {

void add_ring(DagBuilder& dag, const std::vector<std::uint32_t>& ring, std::int64_t bytes, std::uint32_t steps,
              Frontier& frontier) {
  const auto n = static_cast<std::uint32_t>(ring.size());
  std::vector<std::uint32_t> previous(n), current(n);  // transfer that position i sent in a step
  for (std::uint32_t step = 0; step < steps; ++step) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t source = ring[i], destination = ring[(i + 1) % n];
      std::vector<std::uint32_t> after;
      if (step == 0) {
        after = frontier[source];
        after.insert(after.end(), frontier[destination].begin(), frontier[destination].end());
      } else {
        after = {previous[(i + n - 1) % n], previous[i]};  // what it passes on has come; its connection is free
      }
      // Position i sends chunk i first and passes each chunk on, so step s carries chunk i - s.
      const std::uint32_t chunk = (i + n - step % n) % n;
      current[i] = dag.add(source, destination, chunk_bytes(bytes, n, chunk), std::move(after));
    }
    previous.swap(current);
  }
  for (std::uint32_t i = 0; i < n; ++i) frontier[ring[i]] = {previous[i], previous[(i + n - 1) % n]};
}

}  // namespace manyworlds::core::collective
