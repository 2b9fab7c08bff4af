// Generated transfers against the DAGs that are written out.
#include <catch2/catch.hpp>
#include <random>

#include "core/collective/algorithms/registry.hpp"

using namespace manyworlds::core::collective;

namespace {

using Numbers = std::vector<std::uint32_t>;

Numbers row_of(const Numbers& begin, const Numbers& to, std::uint32_t row) {
  return {to.begin() + begin[row], to.begin() + begin[row + 1]};
}
Numbers successors_of(const TransferGenerator& generator, std::uint32_t transfer) {
  Numbers result;
  generator.add_successors(transfer, result);
  return result;
}
Numbers entry_of(const TransferGenerator& generator, std::uint32_t member) {
  Numbers result;
  generator.add_entry(member, result);
  return result;
}
std::tuple<std::uint32_t, std::uint32_t, std::int64_t> all_of(const Transfer& transfer) {
  return {transfer.pair, transfer.delay_ps, transfer.bytes};
}

Shape draw_shape(const AlgorithmInfo& info, std::mt19937_64& random) {
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  Shape shape{info.kinds[below(static_cast<std::uint32_t>(info.kinds.size()))], info.algorithm};
  shape.per_node = 1 + below(4);
  shape.members = shape.per_node * (1 + below(8));
  if (shape.members < 2) shape.members = shape.per_node = 2;
  shape.bytes = static_cast<std::int64_t>(below(20'000));
  if (below(2) == 0) shape.bytes *= shape.members;
  if (info.multi_channel) shape.channels = 1 + below(3);
  if (info.pipelined && below(2) == 0) shape.chunk_bytes = 1 + below(3'000);
  if (shape.chunk_bytes > 0) shape.chunk_bytes = std::max(shape.chunk_bytes, shape.bytes / shape.members / 5);
  shape.node_mesh = info.uses_mesh != nullptr && below(3) == 0;
  shape.protocol = std::array{Protocol::none, Protocol::ll, Protocol::ll128, Protocol::simple}[below(4)];
  return shape;
}

/// Requires that the transfers of a narrower generator are those of the whole, with members merged.
void require_merged(const TransferGenerator& whole, const TransferGenerator& merged) {
  const std::uint32_t n = whole.width(), width = merged.width();
  const auto to_merged = [&](std::uint32_t number) { return number / n * width + number % n % width; };
  REQUIRE(merged.transfers() * (n / width) == whole.transfers());
  REQUIRE(merged.pairs() * (n / width) == whole.pairs());
  for (std::uint32_t pair = 0; pair < whole.pairs(); ++pair) {
    const auto [source, destination] = whole.ends(pair);
    REQUIRE(merged.ends(to_merged(pair)) == std::pair{source % width, destination % width});
  }
  for (std::uint32_t number = 0; number < whole.transfers(); ++number) {
    Transfer transfer = whole.transfer(number);
    transfer.pair = to_merged(transfer.pair);
    REQUIRE(all_of(merged.transfer(to_merged(number))) == all_of(transfer));
    REQUIRE(merged.wait_count(to_merged(number)) == whole.wait_count(number));
    Numbers successors = successors_of(whole, number), expected = successors_of(merged, to_merged(number));
    for (std::uint32_t& successor : successors) successor = to_merged(successor);
    std::sort(successors.begin(), successors.end());
    std::sort(expected.begin(), expected.end());
    REQUIRE(successors == expected);
  }
  for (std::uint32_t member = 0; member < n; ++member) {
    Numbers entry = entry_of(whole, member), expected = entry_of(merged, member % width);
    for (std::uint32_t& transfer : entry) transfer = to_merged(transfer);
    std::sort(entry.begin(), entry.end());
    REQUIRE(entry == expected);
    REQUIRE(merged.transfer_count(member % width) == whole.transfer_count(member));
  }
}

}  // namespace

TEST_CASE("generated transfers are those of the DAG that is written out") {
  std::mt19937_64 random(20261125);
  std::size_t merged = 0;
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.generator == nullptr) continue;
    for (int round = 0; round < 300; ++round) {
      const Shape shape = draw_shape(info, random);
      INFO(shape.text() << " per node " << shape.per_node);
      const Dag dag = build(shape);
      const auto generator = generator_of(shape, shape.members);
      if (shape.node_mesh && generator == nullptr) continue;
      REQUIRE(generator->launch_ps() == dag.launch_ps);
      REQUIRE(generator->transfers() == dag.transfers.size());
      REQUIRE(generator->pairs() == dag.pairs.size());
      for (std::uint32_t pair = 0; pair < dag.pairs.size(); ++pair) REQUIRE(generator->ends(pair) == dag.pairs[pair]);
      for (std::uint32_t number = 0; number < dag.transfers.size(); ++number) {
        REQUIRE(all_of(generator->transfer(number)) == all_of(dag.transfers[number]));
        REQUIRE(generator->wait_count(number) == dag.wait_count[number]);
        REQUIRE(successors_of(*generator, number) == row_of(dag.successors_begin, dag.successors, number));
      }
      for (std::uint32_t member = 0; member < dag.members; ++member) {
        REQUIRE(entry_of(*generator, member) == row_of(dag.entry_begin, dag.entry, member));
        REQUIRE(generator->transfer_count(member) == dag.transfer_count[member]);
      }
      for (std::uint32_t width = generator->least_width(); width < shape.members; width += generator->least_width()) {
        if (shape.members % width != 0) continue;
        require_merged(*generator, *generator_of(shape, width));
        ++merged;
      }
    }
  }
  CHECK(merged > 300);
}
