// Congestion controls in the long run on one queue: what their papers claim of utilisation, queue and shares.
#include <catch2/catch.hpp>

#include "core/network/transports/dctcp.hpp"
#include "core/network/transports/hpcc.hpp"
#include "core/network/transports/nscc.hpp"
#include "core/network/transports/swift.hpp"
#include "core/network/transports/timely.hpp"
#include "tests/core/network/transports/bottleneck.hpp"

using namespace transport_tests;

namespace {

const Time kBase = bottleneck_path().base_rtt_ps;

template <class P>
Bottleneck<P> settled(std::size_t senders, std::int64_t mark_above = 0, typename P::Parameters with = {}) {
  Bottleneck<P> run(senders, mark_above, with);
  run.run_until(3 * kMillisecond);
  run.measure_from_here();
  run.run_until(6 * kMillisecond);
  return run;
}

}  // namespace

TEST_CASE("HPCC fills a link to its target with almost no queue and fair shares") {
  // SIGCOMM 2019, sections 3.2 and 5: utilisation eta = 95 %, near-zero queues.
  for (const std::size_t senders : {1, 2, 8}) {
    const auto run = settled<Hpcc>(senders);
    INFO(senders << " senders");
    CHECK(run.utilisation() == Approx(0.95).margin(0.02));
    CHECK(run.mean_wait() <= 2 * kSend);
    CHECK(run.fairness() > 0.95);
  }
}

TEST_CASE("Swift's queue is what its target asks for, the link is full and shares are equal") {
  for (const std::size_t senders : {2, 8, 32}) {
    const auto run = settled<Swift>(senders);
    INFO(senders << " senders");
    CHECK(run.utilisation() > 0.99);
    CHECK(run.fairness() > 0.99);
    const Time aim = run.senders.front().protocol.target_delay() - kBase;
    CHECK(static_cast<double>(run.mean_wait()) == Approx(static_cast<double>(aim)).epsilon(0.15));
  }
}

TEST_CASE("patched TIMELY rests at the round trip its fixed point gives, with equal shares") {
  // Zhu et al., CoNEXT 2016, theorem 5: (rtt - reference) / reference = delta n / (beta line), here n / 8.
  for (const std::size_t senders : {2, 8}) {
    const auto run = settled<Timely>(senders);
    INFO(senders << " senders");
    CHECK(run.utilisation() > 0.98);
    CHECK(run.fairness() > 0.99);
    const double rtt = 1.5 * static_cast<double>(kBase) * (1 + static_cast<double>(senders) / 8);
    CHECK(static_cast<double>(run.mean_wait() + kBase) == Approx(rtt).epsilon(0.05));
  }
}

TEST_CASE("TIMELY as first published fills the link but leaves shares where they are, which is why it is patched") {
  const auto run = settled<Timely>(8, 0, {.variant = Timely::Variant::original});
  CHECK(run.utilisation() > 0.95);
  CHECK(run.fairness() < 0.8);
}

TEST_CASE("DCTCP keeps a link full with a queue of about the marking threshold") {
  // SIGCOMM 2010, section 3.3: the queue peaks at K + n packets, and K above a seventh of the bandwidth-delay product
  // suffices for full utilisation.
  const std::int64_t threshold = bandwidth_delay_bytes(bottleneck_path()) / 3;
  for (const std::size_t senders : {2, 8}) {
    const auto run = settled<Dctcp>(senders, threshold);
    INFO(senders << " senders");
    CHECK(run.utilisation() > 0.99);
    CHECK(run.fairness() > 0.98);
    const auto peak = serialization_ps(threshold, kLine) + static_cast<Time>(senders) * kSend;
    CHECK(run.longest_wait() <= peak + static_cast<Time>(senders) * kSend);  // acks of one round come one by one
    CHECK(run.mean_wait() > peak / 3);
  }
}

TEST_CASE("NSCC holds the queue at its target delay with a full link and equal shares") {
  for (const std::size_t senders : {2, 8, 32}) {
    const auto run = settled<Nscc>(senders, bandwidth_delay_bytes(bottleneck_path()) / 4);
    INFO(senders << " senders");
    CHECK(run.utilisation() > 0.99);
    CHECK(run.fairness() > 0.99);
    CHECK(static_cast<double>(run.mean_wait()) == Approx(static_cast<double>(kBase)).epsilon(0.15));
  }
}

TEST_CASE("a lone sender of every protocol fills its link: all of it, or what HPCC aims at") {
  CHECK(settled<Swift>(1).utilisation() > 0.999);
  CHECK(settled<Timely>(1).utilisation() > 0.999);
  CHECK(settled<Dctcp>(1, 100'000).utilisation() > 0.999);
  CHECK(settled<Nscc>(1, 100'000).utilisation() > 0.999);
  CHECK(settled<Hpcc>(1).utilisation() > 0.93);
}
