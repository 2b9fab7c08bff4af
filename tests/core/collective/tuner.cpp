// The sizes from which NCCL's tuner takes another algorithm or protocol.
#include "core/collective/library/tuner.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

using namespace manyworlds::core;
using namespace manyworlds::core::collective;

namespace {

struct Candidate {
  const char* name;
  Algorithm algorithm;
  Protocol protocol;
};

constexpr Candidate kInNode[] = {{"LL", Algorithm::ring, Protocol::calibrated_ll},
                                 {"LL128", Algorithm::ring, Protocol::calibrated_ll128},
                                 {"Simple", Algorithm::ring, Protocol::calibrated_simple},
                                 {"NVLS", Algorithm::in_switch, Protocol::calibrated_simple}};

std::string chosen(const TunerInput& input, Kind kind, std::uint32_t members, double mib) {
  const auto bytes = static_cast<std::int64_t>(mib * (1 << 20));
  const auto us = [&](const Candidate& one) {
    return tuner_us(input, kind, one.algorithm, one.protocol, members, members, bytes);
  };
  const Candidate* best = &kInNode[0];
  for (const Candidate& one : kInNode)
    if (us(one) < us(*best)) best = &one;
  return best->name;
}

constexpr TunerInput kAmpere{Architecture::ampere, LibraryVersion::v2_29, 300},
    kHopper{Architecture::hopper, LibraryVersion::v2_29, 450},
    kBlackwell{Architecture::blackwell, LibraryVersion::v2_29, 900},
    kOlderBlackwell{Architecture::blackwell, LibraryVersion::v2_26, 900};

}  // namespace

TEST_CASE("the tuner changes to another protocol at the sizes that follow from NCCL's latencies and rates") {
  // By hand: the sizes in MiB at which two of launch + steps x hop + S / rate are equal. In two A100, say, LL and
  // Simple: 6.6 + 2 x 0.6 + S / 87.7 = 8.4 + 2 x 3.4 + S / 240, so S = 7.4 us / (1 / 87.7 - 1 / 240) = 1.023e6 B.
  struct Change {
    TunerInput input;
    Kind kind;
    std::uint32_t members;
    double mib;
    const char *before, *from;
  };
  const Kind sum = Kind::all_reduce, gather = Kind::all_gather;
  for (const Change& one : {Change{kAmpere, sum, 2, 0.975, "LL", "Simple"},
                            {kAmpere, sum, 4, 1.406, "LL", "LL128"},
                            {kAmpere, sum, 4, 5.966, "LL128", "Simple"},
                            {kAmpere, sum, 8, 2.03, "LL", "LL128"},
                            {kAmpere, sum, 8, 23.16, "LL128", "Simple"},
                            {kAmpere, gather, 2, 1.213, "LL", "Simple"},
                            {kAmpere, gather, 4, 1.792, "LL", "Simple"},
                            {kAmpere, gather, 8, 2.616, "LL", "LL128"},
                            {kAmpere, gather, 8, 14.74, "LL128", "Simple"},
                            {kHopper, sum, 2, 1.636, "LL", "Simple"},
                            {kHopper, sum, 4, 2.373, "LL", "LL128"},
                            {kHopper, sum, 4, 8.949, "LL128", "Simple"},
                            {kHopper, sum, 8, 1.092, "LL", "NVLS"},
                            {kHopper, gather, 2, 2.034, "LL", "Simple"},
                            {kHopper, gather, 4, 3.006, "LL", "Simple"},
                            {kHopper, gather, 8, 4.415, "LL", "LL128"},
                            {kHopper, gather, 8, 22.11, "LL128", "Simple"},
                            {kBlackwell, sum, 2, 3.271, "LL", "Simple"},
                            {kBlackwell, sum, 4, 5.482, "LL", "Simple"},
                            {kBlackwell, sum, 8, 2.203, "LL", "NVLS"},
                            {kBlackwell, gather, 2, 4.067, "LL", "Simple"},
                            {kBlackwell, gather, 4, 6.012, "LL", "Simple"},
                            {kBlackwell, gather, 8, 10.81, "LL", "Simple"},
                            {kOlderBlackwell, sum, 2, 3.271, "LL", "Simple"},
                            {kOlderBlackwell, sum, 4, 4.745, "LL", "LL128"},
                            {kOlderBlackwell, sum, 4, 17.9, "LL128", "Simple"},
                            {kOlderBlackwell, sum, 8, 2.203, "LL", "NVLS"},
                            {kOlderBlackwell, gather, 2, 4.067, "LL", "Simple"},
                            {kOlderBlackwell, gather, 4, 6.012, "LL", "Simple"},
                            {kOlderBlackwell, gather, 8, 8.831, "LL", "LL128"},
                            {kOlderBlackwell, gather, 8, 44.22, "LL128", "Simple"}}) {
    INFO(static_cast<int>(one.input.architecture) << ", " << one.members << " members, " << one.mib << " MiB");
    CHECK(chosen(one.input, one.kind, one.members, one.mib * 0.99) == one.before);
    CHECK(chosen(one.input, one.kind, one.members, one.mib * 1.01) == one.from);
  }
}

TEST_CASE("switches reduce for five H200 and not for four, for sums alone, and never on Ampere") {
  CHECK(chosen(kHopper, Kind::all_reduce, 4, 256) == "Simple");
  CHECK(chosen(kHopper, Kind::all_reduce, 5, 256) == "NVLS");
  CHECK(chosen(kHopper, Kind::all_gather, 8, 256) == "Simple");
  CHECK(chosen(kAmpere, Kind::all_reduce, 8, 256) == "Simple");
}

TEST_CASE("across nodes trees are taken for small vectors and rings for large ones, later on more nodes") {
  // Four H100 and four NICs of 200 Gb/s a node, without LL128, as on MareNostrum 5.
  TunerInput input = kHopper;
  input.nic_gb_per_s = 25, input.ll128_between_nodes = false;
  const auto ring_is_faster = [&](std::uint32_t members, std::int64_t bytes) {
    double ring = 1e18, tree = 1e18;
    for (const Protocol protocol : {Protocol::calibrated_ll, Protocol::calibrated_ll128, Protocol::calibrated_simple}) {
      ring = std::min(ring, tuner_us(input, Kind::all_reduce, Algorithm::ring, protocol, members, 4, bytes));
      tree = std::min(tree, tuner_us(input, Kind::all_reduce, Algorithm::double_tree, protocol, members, 4, bytes));
    }
    return ring < tree;
  };
  const std::int64_t mib = 1 << 20;
  CHECK_FALSE(ring_is_faster(16, 8 * mib));
  CHECK(ring_is_faster(16, 64 * mib));
  CHECK_FALSE(ring_is_faster(64, 128 * mib));
  CHECK(ring_is_faster(64, 512 * mib));
  CHECK_FALSE(ring_is_faster(256, 512 * mib));
  const double infinity = tuner_us(input, Kind::all_reduce, Algorithm::ring, Protocol::calibrated_ll128, 16, 4, mib);
  CHECK(infinity > 1e300);
}
