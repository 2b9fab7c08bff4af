// Pipeline schedules: each pass once, in an order that can run, with the memory the papers promise.
#include "core/workload/schedule/schedule.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <utility>

#include "core/workload/schedule/stage_map.hpp"
#include "tests/core/workload/schedule/pipelines.hpp"

using namespace manyworlds::core::workload;

namespace {

std::int64_t most_alive(const PassOrder& order) {
  std::int64_t alive = 0, most = 0;
  for (const PipelinePass& slot : order) {
    if (slot.forward()) most = std::max(most, ++alive);
    if (slot.ends_backward()) --alive;
  }
  return most;
}

PassOrder order_of(const char* name, std::int64_t ranks, std::int64_t micro_batches, std::int64_t chunks,
                   std::int64_t rank) {
  const auto orders = type_of(name).orders({ranks, micro_batches, chunks});
  return orders.at(static_cast<std::size_t>(rank));
}

PipelinePass forward(std::int32_t micro_batch, std::int32_t chunk = 0) {
  return {PassKind::forward, micro_batch, chunk};
}
PipelinePass backward(std::int32_t micro_batch, std::int32_t chunk = 0) {
  return {PassKind::backward, micro_batch, chunk};
}

}  // namespace

TEST_CASE("every schedule runs each micro-batch of each section once: forward, then backward, whole or in two") {
  std::set<std::string> seen;
  for (const auto& [type, pipeline] : every_pipeline()) {
    CAPTURE(type->name, pipeline.ranks, pipeline.micro_batches, pipeline.chunks);
    const StageMap stage_map(type->stage_placement, pipeline.ranks, pipeline.chunks);
    const auto orders = type->orders(pipeline);
    REQUIRE(orders.size() == static_cast<std::size_t>(pipeline.ranks));
    std::map<std::pair<std::int32_t, std::int64_t>, int> forwards, gradients;  // by micro-batch and section
    for (std::int64_t rank = 0; rank < pipeline.ranks; ++rank) {
      std::map<std::pair<std::int32_t, std::int32_t>, int> done;  // 1: forward, 2: gradients of the input, 3: all
      for (const PipelinePass& slot : orders[static_cast<std::size_t>(rank)]) {
        int& state = done[{slot.micro_batch, slot.chunk}];
        const std::pair at{slot.micro_batch, stage_map.of(rank, slot.chunk)};
        REQUIRE(state == (slot.forward() ? 0 : slot.begins_backward() ? 1 : 2));
        state = slot.forward() ? 1 : slot.ends_backward() ? 3 : 2;
        if (slot.forward()) ++forwards[at];
        if (slot.ends_backward()) ++gradients[at];
      }
      for (const auto& [pass, state] : done) REQUIRE(state == 3);
    }
    REQUIRE(forwards.size() == static_cast<std::size_t>(pipeline.micro_batches * stage_map.count()));
    REQUIRE(forwards == gradients);
    for (const auto& [pass, times] : forwards) REQUIRE(times == 1);
    seen.insert(type->name);
  }
  CHECK(seen.size() + 1 == schedules().size());  // all but the one that is read from a file
}

TEST_CASE("sections lie on the ranks once, or twice where mirrored, and hand on to each other") {
  for (const StagePlacement stage_placement :
       {StagePlacement::loop, StagePlacement::v_shape, StagePlacement::bidirectional})
    for (const std::int64_t ranks : {2, 3, 4, 8}) {
      const std::int64_t chunks = stage_placement == StagePlacement::loop ? 3 : 2;
      const StageMap stage_map(stage_placement, ranks, chunks);
      std::map<std::int64_t, int> held;
      for (std::int64_t rank = 0; rank < ranks; ++rank)
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
          const std::int64_t section = stage_map.of(rank, chunk);
          ++held[section];
          const auto after = stage_map.after(rank, chunk);
          REQUIRE(after.has_value() == (section + 1 < stage_map.count()));
          if (!after) continue;
          REQUIRE(stage_map.of(after->rank, after->chunk) == section + 1);
          REQUIRE(stage_map.before(after->rank, after->chunk) == ChunkLocation{rank, chunk});
        }
      REQUIRE(held.size() == static_cast<std::size_t>(stage_map.count()));
      for (const auto& [section, times] : held)
        REQUIRE(times == (stage_placement == StagePlacement::bidirectional ? 2 : 1));
    }
}

TEST_CASE("what schedules keep alive is what their papers say, on every rank") {
  for (const std::int64_t p : {2, 4, 6, 8, 16})
    for (const std::int64_t m : {2 * p, 3 * p, 5 * p})
      for (std::int64_t rank = 0; rank < p; ++rank) {
        CAPTURE(p, m, rank);
        CHECK(most_alive(order_of("gpipe", p, m, 1, rank)) == m);
        CHECK(most_alive(order_of("1f1b", p, m, 1, rank)) == p - rank);
        CHECK(most_alive(order_of("zb_h1", p, m, 1, rank)) == p);
        CHECK(most_alive(order_of("zb_h2", p, m, 1, rank)) == 2 * p - 1);
        CHECK(most_alive(order_of("zb_1p", p, m, 1, rank)) <= p);
        CHECK(most_alive(order_of("zb_2p", p, m, 1, rank)) <= 2 * p);
        CHECK(most_alive(order_of("zb_v", p, m, 2, rank)) == 2 * p);
        CHECK(most_alive(order_of("dualpipev", p, m, 2, rank)) == 2 * p + 1);
        CHECK(most_alive(order_of("dualpipe", p, m, 2, rank)) == p + 1);
        for (const std::int64_t v : {2, 3})
          CHECK(most_alive(order_of("interleaved", p, m, v, rank)) ==
                std::min((v - 1) * p + 2 * (p - rank - 1) + 1, m * v));
      }
}

TEST_CASE(
    "V-Half keeps about half of what 1F1B's first rank keeps, V-Min about a third, never more than their blocks") {
  for (const std::int64_t p : {4, 5, 6, 7, 8, 12, 16, 24}) {
    std::int64_t half = 0, least = 0;
    for (std::int64_t rank = 0; rank < p; ++rank) {
      half = std::max(half, most_alive(order_of("v_half", p, 3 * p, 2, rank)));
      least = std::max(least, most_alive(order_of("v_min", p, 3 * p, 2, rank)));
    }
    // Chunks are half a rank's layers, and lives of a block last 6p and 4p units of which six bring one more of each.
    CAPTURE(p);
    CHECK(half <= p + 3);
    CHECK(half >= p);
    CHECK(least <= (4 * p + 5) / 6 + 3);
    CHECK(least >= 4 * p / 6);
  }
}

TEST_CASE("1F1B on the first of four ranks begins with three forward passes") {
  const PassOrder order = order_of("1f1b", 4, 8, 1, 0);
  const PassOrder begin{forward(0), forward(1), forward(2), forward(3), backward(0), forward(4), backward(1)};
  CHECK(PassOrder(order.begin(), order.begin() + 7) == begin);
  CHECK(order.back() == backward(7));
}

TEST_CASE("interleaved 1F1B runs as figure 4 of Narayanan et al. draws it: four ranks, two chunks") {
  // Device 1: 1 2 3 4 of chunk 0, 1 2 3 4 of chunk 1, 5 6 of chunk 0 warm it up; then 7 forward, 1 of chunk 1 backward.
  const PassOrder first = order_of("interleaved", 4, 8, 2, 0);
  const PassOrder begin{forward(0),     forward(1),     forward(2),     forward(3),     forward(0, 1),
                        forward(1, 1),  forward(2, 1),  forward(3, 1),  forward(4),     forward(5),
                        forward(6),     backward(0, 1), forward(7),     backward(1, 1), forward(4, 1),
                        backward(2, 1), forward(5, 1),  backward(3, 1), forward(6, 1),  backward(0)};
  CHECK(PassOrder(first.begin(), first.begin() + 20) == begin);
  // Device 4 turns its first micro-batch round as soon as chunk 1 has it.
  const PassOrder last = order_of("interleaved", 4, 8, 2, 3);
  const PassOrder turn{forward(0), forward(1), forward(2), forward(3), forward(0, 1), backward(0, 1), forward(1, 1)};
  CHECK(PassOrder(last.begin(), last.begin() + 7) == turn);
}

TEST_CASE("a schedule says what it lacks") {
  const auto fault = [](const char* name, Pipeline pipeline) {
    return schedule_infeasible_reason(type_of(name), pipeline);
  };
  CHECK(fault("1f1b", {4, 8, 1}).empty());
  CHECK(fault("1f1b", {4, 8, 2}) == "1f1b has 1 model chunks on a rank: virtual_stages 1");
  CHECK(fault("interleaved", {4, 8, 1}) == "interleaved has two or more model chunks on a rank: virtual_stages > 1");
  CHECK(fault("interleaved", {4, 6, 2}) ==
        "interleaved needs its micro-batches, global_batch / (dp x micro_batch), to be a multiple of pp: micro-batches "
        "6, pp 4");
  CHECK(fault("zb_v", {1, 8, 2}) == "zb_v needs pp > 1");
  CHECK(fault("dualpipe", {3, 8, 2}) == "dualpipe needs an even pp: pp 3");
  CHECK(fault("dualpipe", {4, 9, 2}).find("an even number of micro-batches") != std::string::npos);
  CHECK(fault("dualpipe", {4, 6, 2}).find("at least 2 pp") != std::string::npos);
  CHECK(fault("dualpipev", {4, 7, 2}).find("at least 2 pp micro-batches") != std::string::npos);
  CHECK(fault("dualpipev", {4, 8, 2}).empty());
}
