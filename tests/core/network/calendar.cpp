// The calendar of the second engine against an ordered set: events near and far, many at one instant, limits anywhere.
#include <catch2/catch.hpp>

#include <random>
#include <set>
#include <tuple>

#include "core/network/per_packet/calendar.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network::per_packet;

TEST_CASE("events leave the calendar by time, order and number, however far ahead they were put") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t bound) { return static_cast<Time>(random() % bound); };
    PacketSlab slab;
    Calendar calendar;
    std::set<std::tuple<Time, std::uint64_t, std::uint32_t>> waiting;  // (time, order, number)
    std::uint32_t pushed = 0;
    const auto push = [&](Time at) {
      const auto order = static_cast<std::uint64_t>(below(3));
      const std::uint32_t record = slab.allocate();
      slab[record].number = ++pushed;
      calendar.push(at, order, pushed, record);
      waiting.emplace(at, order, pushed);
    };
    // Within a bucket, a slot, what slots cover (537 us), and beyond; and some on the edges between these.
    constexpr std::int64_t kSlot = 262'144, kEdges[] = {128, 7 * kSlot, 8 * kSlot, 2'047 * kSlot, 2'048 * kSlot};
    const std::uint64_t reach[] = {200, 300'000, 600'000'000, 6'000'000'000};
    Time now = 0;
    for (int step = 0; step < 4'000; ++step) {
      for (std::int64_t more = below(3); more > 0 || waiting.empty(); --more)
        push(now + 1 + (below(4) == 0 ? kEdges[below(5)] + below(257) - 128 : below(reach[below(4)])));
      const Time limit = now + below(seed % 2 == 0 ? 200'000 : 20'000'000);
      calendar.set_limit(limit, 1);
      Event event;
      while (calendar.pop(event)) {
        const auto index = static_cast<std::uint32_t>(event.number_and_index);
        const std::uint64_t order = event.key & ((1ull << Calendar::kOrderBits) - 1);
        REQUIRE(waiting.begin() != waiting.end());
        REQUIRE(*waiting.begin() == std::tuple(event.at, order, slab[index].number));
        waiting.erase(waiting.begin());
        slab.release(index);
        now = event.at;
        if (below(3) == 0) push(now + below(reach[below(4)]) + 1);
      }
      if (below(50) == 0) {  // orders change while nothing is being taken
        std::set<std::tuple<Time, std::uint64_t, std::uint32_t>> changed;
        const auto order_of = [](std::uint64_t order, std::uint32_t number) {
          return number % 3 == 0 ? order + 1 + number % 2 : order;
        };
        for (const auto& [at, order, number] : waiting) changed.emplace(at, order_of(order, number), number);
        waiting.swap(changed);
        calendar.reorder([&](std::uint64_t order, std::uint32_t index) { return order_of(order, slab[index].number); });
      }
      REQUIRE((waiting.empty() || std::tuple(limit, std::uint64_t{1}, 0u) <= *waiting.begin()));
      REQUIRE(calendar.empty() == waiting.empty());
      now = limit;
    }
  }
}
