// Collectives as ASTRA-sim's analytical network carries them out: its own results come out to the nanosecond, measured
// ones and those of a plain simulation.
#include <fmt/ranges.h>

#include <array>
#include <random>

#include "core/network/flows/astra_sim.hpp"
#include "experiments/astra_sim/collective_times.hpp"
#include "tests/experiments/astra_sim_files.hpp"
#include "tests/experiments/astra_sim_oracle.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::tests::astra_sim_files;
using astra_sim_oracle::Oracle;
using astra_sim_oracle::Setup;
using collective::Kind;
using collective::name_of;

namespace {

CommType type_of(Kind kind) {
  if (kind == Kind::all_gather) return CommType::all_gather;
  if (kind == Kind::reduce_scatter) return CommType::reduce_scatter;
  return kind == Kind::all_reduce ? CommType::all_reduce : CommType::all_to_all;
}

std::vector<std::uint32_t> first(int n) {
  std::vector<std::uint32_t> ranks(static_cast<std::size_t>(n));
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = rank;
  return ranks;
}

/// Draws what a collective depends on, for the plain simulation and for ours.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  int number(int from, int to) { return from + static_cast<int>(random_() % static_cast<unsigned>(to - from + 1)); }
  template <class T>
  T one_of(const std::vector<T>& all) {
    return all[random_() % all.size()];
  }

  /// Dimensions of `sizes` ranks, and a collective of all of them that comes to all at once.
  Setup setup(const std::vector<int>& sizes, const std::vector<std::string>& algorithms) {
    Setup setup;
    int all = 1;
    for (const int size : sizes) {
      setup.dimensions.push_back({one_of<std::string>({"Ring", "FullyConnected", "Switch"}), size, number(1, 100) / 4.0,
                                  number(0, 5000) / 4.0});
      setup.algorithms.push_back(one_of(algorithms));
      all *= size;
    }
    setup.kind = one_of<std::string>({"all_reduce", "all_gather", "reduce_scatter", "all_to_all"});
    for (std::string& algorithm : setup.algorithms)
      if (setup.kind == "all_to_all" && algorithm.ends_with("alvingDoubling")) algorithm = "ring";
    setup.splits = number(1, 7);
    setup.active_chunks = number(1, 4);
    setup.bytes = number(1, 200'000);
    if (setup.kind == "all_gather") setup.bytes += setup.splits;
    setup.endpoint_ns = number(0, 3) == 0 ? 0 : number(1, 300);
    setup.memory_gb_per_s = number(1, 400) / 4.0;
    setup.local_bandwidth_aware = number(0, 3) > 0;
    setup.entries.assign(static_cast<std::size_t>(all), 100);
    return setup;
  }

 private:
  std::mt19937_64 random_;
};

Configuration files_of(const Setup& setup) {
  std::string blocks, sizes, rates, latencies, names;
  for (std::size_t i = 0; i < setup.dimensions.size(); ++i) {
    const astra_sim_oracle::Dimension& one = setup.dimensions[i];
    const char* comma = i > 0 ? ", " : "";
    blocks += comma + one.block;
    sizes += fmt::format("{}{}", comma, one.size);
    rates += fmt::format("{}{}", comma, one.gb_per_s);
    latencies += fmt::format("{}{}", comma, one.latency_ns);
    if (i == 0 || !setup.algorithms.front().starts_with("one"))
      names += fmt::format("{}\"{}\"", comma, setup.algorithms[i]);
  }
  return files(fmt::format(R"({{"preferred-dataset-splits": {}, "active-chunks-per-dimension": {}, "endpoint-delay": {},
                               "local-mem-bw": {}, "collective-optimization": "{}", "all-reduce-implementation": [{}],
                               "all-gather-implementation": [{}], "reduce-scatter-implementation": [{}],
                               "all-to-all-implementation": [{}]}})",
                           setup.splits, setup.active_chunks, setup.endpoint_ns, setup.memory_gb_per_s,
                           setup.local_bandwidth_aware ? "localBWAware" : "baseline", names, names, names, names),
               fmt::format("topology: [{}]\nnpus_count: [{}]\nbandwidth: [{}]\nlatency: [{}]\n", blocks, sizes, rates,
                           latencies));
}

std::string text_of(const Setup& setup) {
  std::string text = fmt::format("{} of {} bytes, {} splits, {} active, entries {}:", setup.kind, setup.bytes,
                                 setup.splits, setup.active_chunks, fmt::join(setup.entries, " "));
  for (std::size_t i = 0; i < setup.dimensions.size(); ++i)
    text += fmt::format(" {} {} {}", setup.dimensions[i].block, setup.dimensions[i].size, setup.algorithms[i]);
  return text + fmt::format(" group {}", fmt::join(setup.group, " "));
}

/// Our ends of the collective, by member.
std::vector<std::int64_t> ends_of(const Setup& setup) {
  const Configuration configuration = files_of(setup);
  CollectiveTimes collectives(configuration.system, configuration.network,
                              setup.is_aware ? Congestion::aware : Congestion::unaware);
  Kind kind = Kind::all_reduce;
  for (const Kind one : {Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all})
    if (name_of(one) == setup.kind) kind = one;
  std::vector<std::uint32_t> group = first(static_cast<int>(configuration.network.ranks()));
  if (!setup.group.empty()) group.assign(setup.group.begin(), setup.group.end());
  const std::vector<std::int64_t> ends = collectives.ends({kind, setup.bytes}, group, setup.entries);
  CHECK(collectives.begun_late() == 0);
  return ends;
}

/// What was measured with ASTRA-sim 2.x, in nanoseconds for 4, 8 and 16 ranks with 1 MiB of each: on a ring or fully
/// connected, over a switch without congestion, over a switch with it.
struct Measured {
  Kind kind;
  std::array<std::int64_t, 3> connected, switched, switched_aware;
};
constexpr std::array<Measured, 4> kMeasured{
    {{Kind::all_reduce, {43000, 64440, 99640}, {55000, 92440, 159640}, {84280, 126600, 196240}},
     {Kind::all_gather, {64744, 151016, 323560}, {70744, 165016, 353560}, {129328, 301712, 646480}},
     {Kind::reduce_scatter, {22240, 33080, 50740}, {28240, 47080, 80740}, {42880, 64160, 99040}},
     {Kind::all_to_all, {41560, 125480, 391240}, {53560, 181480, 631240}, {82840, 249800, 777640}}}};

}  // namespace

TEST_CASE("every measured result of ASTRA-sim comes out of its files to the nanosecond") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    folder.put(name, text);
    return (folder / name).string();
  };
  const std::string system = write("system.json", kSystem);
  const std::string memory = write("memory.json", R"({"memory-type": "NO_MEMORY_EXPANSION"})");
  int cells = 0;
  for (const Measured& measured : kMeasured)
    for (std::size_t column = 0; column < 3; ++column) {
      const int n = 4 << column;
      const std::string prefix = (folder / fmt::format("{}-{}", name_of(measured.kind), n)).string();
      for (int rank = 0; rank < n; ++rank)
        folder.put(fmt::format("{}.{}.et", prefix, rank),
                   chakra::trace_bytes({"0.0.4", {}, {collective_node(1, type_of(measured.kind), 1 << 20)}}));
      const auto step = [&](const std::string& block, Congestion congestion) {
        const Paths paths{system, write("network.yml", network_text(block, n)), memory};
        return tests::step_of(read_astra_sim(prefix, paths, congestion).programs).step_ps;
      };
      INFO(prefix);
      CHECK(step("Ring", Congestion::unaware) == 1000 * measured.connected[column]);
      CHECK(step("Ring", Congestion::aware) == 1000 * measured.connected[column]);
      CHECK(step("FullyConnected", Congestion::unaware) == 1000 * measured.connected[column]);
      CHECK(step("FullyConnected", Congestion::aware) == 1000 * measured.connected[column]);
      CHECK(step("Switch", Congestion::unaware) == 1000 * measured.switched[column]);
      CHECK(step("Switch", Congestion::aware) == 1000 * measured.switched_aware[column]);
      cells += 3;
    }
  CHECK(cells == 36);
}

TEST_CASE("a ring of ASTRA-sim takes what `net --model astra-sim` says, whatever its sizes are") {
  Draw draw(7);
  for (int round = 0; round < 40; ++round) {
    const int n = draw.number(2, 40), splits = draw.number(1, 9), endpoint = draw.number(0, 200),
              memory = draw.number(10, 2000);
    const Kind kind = kMeasured[static_cast<std::size_t>(draw.number(0, 3))].kind;
    const std::int64_t message = draw.number(1, 100'000), bytes = message * n * splits;
    network::AstraSim theirs{splits, endpoint, static_cast<double>(memory)};
    const network::AstraSimPath path{2, 25 * (std::int64_t{8} << 30), 700'000};
    const std::int64_t in_the_end = kind == Kind::all_gather ? bytes * n : bytes;
    const network::AstraSimTimes times = network::astra_sim(
        theirs, {kind, collective::Algorithm::ring, static_cast<std::uint32_t>(n), in_the_end}, path);
    const Configuration configuration =
        files(with(fmt::format(R"("preferred-dataset-splits": {}, "endpoint-delay": {}, "local-mem-bw": {})", splits,
                               endpoint, memory)),
              fmt::format("topology: [Switch]\nnpus_count: [{}]\nbandwidth: [25]\nlatency: [700]\n", n));
    INFO(name_of(kind) << " of " << n << ", " << bytes << " bytes");
    const std::vector<std::uint32_t> all = first(n);
    for (const Congestion congestion : {Congestion::unaware, Congestion::aware}) {
      CollectiveTimes collectives(configuration.system, configuration.network, congestion);
      const std::vector<std::int64_t> ends =
          collectives.ends({kind, bytes}, all, std::vector<std::int64_t>(all.size(), 5));
      CHECK(1000 * (ends.front() - 5) == (congestion == Congestion::aware ? times.aware_ps : times.unaware_ps));
    }
  }
}

TEST_CASE("collectives over one dimension take what every message of a plain simulation takes") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw(seed);
    const bool is_power = draw.number(0, 1) == 0;
    const int n = is_power ? draw.one_of<int>({2, 4, 8, 16}) : draw.number(2, 12);
    Setup setup = draw.setup({n}, is_power ? std::vector<std::string>{"ring", "direct", "halvingDoubling"}
                                           : std::vector<std::string>{"ring", "direct", "oneRing"});
    setup.is_aware = draw.number(0, 1) == 0;
    const std::string block = setup.dimensions.front().block, algorithm = setup.algorithms.front();
    if (algorithm == "halvingDoubling") setup.bytes += 64 * setup.splits;  // ASTRA-sim stops at empty messages
    // What is refused: farther messages on a ring with congestion, and direct all-reduces whose messages do not come at
    // once.
    if (block == "Ring" && algorithm != "ring" && algorithm != "oneRing" && n > 2)
      setup.dimensions.front().block = "FullyConnected";
    if (block == "Switch" && algorithm == "direct" && setup.kind == "all_reduce") setup.is_aware = false;
    INFO("seed " << seed << ": " << text_of(setup));
    REQUIRE(ends_of(setup) == Oracle(setup).run());
  }
}

TEST_CASE("members that come at different times leave when a plain simulation lets them") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw(1000 + seed);
    const int n = draw.one_of<int>({2, 3, 4, 7, 8});
    const bool is_power = n != 3 && n != 7;
    Setup setup = draw.setup({n}, is_power ? std::vector<std::string>{"ring", "direct", "halvingDoubling"}
                                           : std::vector<std::string>{"ring", "direct"});
    if (setup.algorithms.front() == "direct" && setup.kind == "all_reduce") setup.kind = "reduce_scatter";
    if (setup.algorithms.front() == "halvingDoubling") setup.bytes += 64 * setup.splits;
    for (std::int64_t& entry : setup.entries) entry = draw.number(0, draw.one_of<int>({10, 1000, 100'000}));
    INFO("seed " << seed << ": " << text_of(setup));
    REQUIRE(ends_of(setup) == Oracle(setup).run());
  }
}

TEST_CASE("collectives over several dimensions take what every message of a plain simulation takes") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw(2000 + seed);
    std::vector<int> sizes;
    for (int i = draw.number(2, 3); i > 0; --i) sizes.push_back(draw.one_of<int>({2, 3, 4}));
    Setup setup = draw.setup(sizes, {"ring", "direct"});
    if (draw.number(0, 3) == 0) {
      for (int& size : sizes) size = size == 3 ? 4 : size;
      setup = draw.setup(sizes, {"ring", "direct", "halvingDoubling"});
      setup.bytes += 512 * setup.splits;
    }
    if (draw.number(0, 3) == 0)
      setup.algorithms.assign(sizes.size(), draw.one_of<std::string>({"oneRing", "oneDirect"}));
    for (std::size_t i = 0; i < sizes.size(); ++i)  // messages of a direct all-reduce come at once
      if (setup.algorithms[i].ends_with("irect") && setup.kind == "all_reduce") setup.algorithms[i] = "ring";
    if (setup.algorithms.front() == "oneDirect") setup.algorithms.assign(sizes.size(), "ring");
    INFO("seed " << seed << ": " << text_of(setup));
    REQUIRE(ends_of(setup) == Oracle(setup).run());
  }
}

TEST_CASE("groups of some ranks are rings of their own, whatever ways lie between their members") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw(3000 + seed);
    Setup setup = draw.setup({draw.one_of<int>({2, 4}), draw.one_of<int>({2, 3, 4})}, {"ring"});
    const int all = setup.dimensions[0].size * setup.dimensions[1].size;
    for (int rank = 0; rank < all; ++rank)
      if (draw.number(0, 1) == 0) setup.group.push_back(rank);
    if (setup.group.size() < 2) setup.group = {0, all - 1};
    if (setup.group.size() == static_cast<std::size_t>(all)) setup.group.pop_back();
    if (draw.number(0, 1) == 0) std::swap(setup.group.front(), setup.group.back());
    setup.entries.resize(setup.group.size());
    for (std::int64_t& entry : setup.entries) entry = draw.number(0, 1) == 0 ? 7 : draw.number(0, 5000);
    INFO("seed " << seed << ": " << text_of(setup));
    REQUIRE(ends_of(setup) == Oracle(setup).run());
  }
}
