// Algorithms that users give as data (Shape::given), as those of MSCCL. They stand in no list, as no library chooses
// them but by rules of theirs.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/collective/algorithms/algorithm_info.hpp"
#include "core/collective/transfers/given_transfers.hpp"

namespace manyworlds::core::collective {
namespace {

/// Returns the bytes of a transfer but for those that costs of its protocol add; without such costs its flags are in.
std::int64_t bytes_of(const Shape& shape, std::int64_t data) {
  return shape.protocol == Protocol::none ? line_format_costs(shape.given->protocol).wire_bytes(data) : data;
}

void check(const Shape& shape) {
  MANYWORLDS_CHECK(shape.given && shape.given->members == shape.members && shape.given->divides(shape.bytes),
                   "a given algorithm for {} does not fit", shape.text());
}

void add(DagBuilder& dag, const Shape& shape) {
  check(shape);
  dag.set_block_partition(static_cast<std::uint32_t>(shape.given->chunks));
  const auto add_transfer = [&](const GivenTransfer& one) {
    dag.set_channel(one.channel);
    BlockSet moved;
    moved.bytes = bytes_of(shape, one.bytes);
    return dag.add(one.source, one.destination, moved, Effect::copy, one.after);
  };
  const auto add_join = [&](std::uint32_t member, std::span<const std::uint32_t> after) {
    return dag.add_join(member, after);
  };
  write_given(*shape.given, shape.bytes, {add_transfer, add_join});
}

/// The most transfers that follow one another, and the bytes of the member that sends most.
CostTerms cost(const Shape& shape, const CollectiveSizes& sizes) {
  check(shape);
  struct Steps {
    std::int64_t inside = 0, between = 0;
  };
  const auto is_shorter = [](const Steps& a, const Steps& b) { return a.inside + a.between < b.inside + b.between; };
  std::vector<Steps> until;  // by transfer and join
  std::vector<std::int64_t> sent_inside(shape.members), sent_between(shape.members);
  const auto add_node = [&](std::span<const std::uint32_t> after, Steps own) {
    Steps before;
    for (const std::uint32_t one : after) before = std::max(before, until[one], is_shorter);
    until.push_back({before.inside + own.inside, before.between + own.between});
    return static_cast<std::uint32_t>(until.size() - 1);
  };
  const auto add_transfer = [&](const GivenTransfer& one) {
    const bool between = one.source / sizes.per_node != one.destination / sizes.per_node;
    (between ? sent_between : sent_inside)[one.source] += bytes_of(shape, one.bytes);
    return add_node(one.after, between ? Steps{0, 1} : Steps{1, 0});
  };
  write_given(*shape.given, shape.bytes,
              {add_transfer, [&](std::uint32_t, std::span<const std::uint32_t> after) { return add_node(after, {}); }});
  Steps longest;
  for (const Steps& one : until) longest = std::max(longest, one, is_shorter);
  return {longest.inside, longest.between, *std::max_element(sent_inside.begin(), sent_inside.end()),
          *std::max_element(sent_between.begin(), sent_between.end())};
}

}  // namespace

AlgorithmInfo info_of_given() {
  return {.help = "an algorithm that a file gives",
          .kinds = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all},
          .add = add,
          .cost = cost,
          .considered = nowhere};
}

}  // namespace manyworlds::core::collective
