// Collectives as ASTRA-sim's analytical network carries them out: its own results come out to the nanosecond, measured
// ones and those of a plain simulation.
#include <fmt/ranges.h>

#include <array>
#include <random>

#include "core/network/flows/astra_sim.hpp"
#include "experiments/astra_sim/collectives/collective_times.hpp"
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
  return text + fmt::format(" group {}, {} trees before", fmt::join(setup.group, " "), setup.trees_before);
}

/// Our ends of the collective, by member.
std::vector<std::int64_t> ends_of(const Setup& setup, int* ties = nullptr) {
  const Configuration configuration = files_of(setup);
  CollectiveTimes collectives(configuration.system, configuration.network,
                              setup.is_aware ? Congestion::aware : Congestion::unaware);
  Kind kind = Kind::all_reduce;
  for (const Kind one : {Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all})
    if (name_of(one) == setup.kind) kind = one;
  std::vector<std::uint32_t> group = first(static_cast<int>(configuration.network.ranks()));
  if (!setup.group.empty()) group.assign(setup.group.begin(), setup.group.end());
  // One chunk of one byte or more for every tree that was taken before.
  for (int i = 0; i < setup.trees_before; ++i)
    collectives.ends({kind, 1, setup.involved}, group, std::vector<std::int64_t>(group.size()));
  const std::vector<std::int64_t> ends = collectives.ends({kind, setup.bytes, setup.involved}, group, setup.entries);
  CHECK(collectives.begun_late() == 0);
  if (collectives.tied() > 0 && ties != nullptr) ++*ties;
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

TEST_CASE("double binary trees have the nanoseconds of ASTRA-sim itself") {
  // AstraSim_Analytical_Congestion_Unaware of 518bd51 with examples/workload/microbenchmarks/all_reduce/*npus_1MB:
  // links of 50 GB/s and 500 ns, memory of 1600 GB/s, endpoints of 10 ns; 4 chunks one at a time, 1, and 7 two at a
  // time.
  struct Cell {
    const char* block;
    int ranks;
    std::array<std::int64_t, 3> ns;
  };
  const std::vector<Cell> cells{{"Switch", 4, {82504, 88069, 64188}},
                                {"Switch", 8, {133552, 133081, 96820}},
                                {"Switch", 16, {184600, 178093, 129452}},
                                {"Ring", 4, {80004, 87069, 60188}},
                                {"Ring", 8, {139052, 134081, 100820}},
                                {"Ring", 16, {214100, 185093, 157452}},
                                {"FullyConnected", 4, {76004, 86069, 56188}},
                                {"FullyConnected", 8, {123052, 130081, 84820}},
                                {"FullyConnected", 16, {170100, 174093, 113452}}};
  constexpr std::array<std::pair<int, int>, 3> kSplitsAndActive{{{4, 1}, {1, 1}, {7, 2}}};
  for (const Cell& cell : cells)
    for (std::size_t i = 0; i < 3; ++i) {
      const auto [splits, active] = kSplitsAndActive[i];
      const Configuration configuration =
          files(with(fmt::format(R"("preferred-dataset-splits": {}, "active-chunks-per-dimension": {},
                                    "all-reduce-implementation": ["doubleBinaryTree"])",
                                 splits, active)),
                network_text(cell.block, cell.ranks));
      INFO(cell.block << " " << cell.ranks << ", " << splits << " splits");
      CHECK(step_ps(Ranks(static_cast<std::size_t>(cell.ranks), {collective_node(1, CommType::all_reduce, 1 << 20)}),
                    configuration) == 1000 * cell.ns[i]);
    }
}

TEST_CASE("double binary trees take what every message of a plain simulation takes, tree after tree") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw(4000 + seed);
    Setup setup = draw.setup({draw.one_of<int>({2, 4, 8, 16})}, {"doubleBinaryTree"});
    setup.trees_before = setup.splits == 1 ? draw.number(0, 2) : 0;  // collectives of one chunk each
    if (draw.number(0, 1) == 0)
      for (std::int64_t& entry : setup.entries) entry = draw.number(0, draw.one_of<int>({10, 1000, 100'000}));
    INFO("seed " << seed << ": " << text_of(setup));
    REQUIRE(ends_of(setup) == Oracle(setup).run());
  }
}

TEST_CASE("trees beside rings in other dimensions take what every message of a plain simulation takes") {
  int deadlocks = 0, ties = 0;  // where the order of simultaneous chunks is that of events
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw(5000 + seed);
    std::vector<int> sizes;
    for (int i = draw.number(2, 3); i > 0; --i) sizes.push_back(draw.one_of<int>({2, 4}));
    Setup setup = draw.setup(sizes, {"ring", "direct", "halvingDoubling", "doubleBinaryTree"});
    setup.bytes += 512 * setup.splits;
    setup.algorithms[static_cast<std::size_t>(draw.number(0, static_cast<int>(sizes.size()) - 1))] = "doubleBinaryTree";
    for (std::string& algorithm : setup.algorithms)  // of direct all-reduces the second half begins bit by bit
      if (algorithm == "direct" && setup.kind == "all_reduce") algorithm = "ring";
    if (draw.number(0, 1) == 0)
      for (std::int64_t& entry : setup.entries) entry = draw.number(0, 1000);
    INFO("seed " << seed << ": " << text_of(setup));
    const int before = ties;
    std::vector<std::int64_t> ends;
    try {
      ends = ends_of(setup, &ties);
    } catch (const core::InputError& error) {  // chunks whose orders differ wait for each other, as in ASTRA-sim
      REQUIRE(std::string(error.what()).find("waits for itself for ever") != std::string::npos);
      ++deadlocks;
      continue;
    }
    if (ties == before) REQUIRE(ends == Oracle(setup).run());
  }
  CHECK(ties + deadlocks < 200);
}

TEST_CASE("collectives of some dimensions alone take what every message of a plain simulation takes") {
  int ties = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw(6000 + seed);
    std::vector<int> sizes;
    for (int i = 3; i > 0; --i) sizes.push_back(draw.one_of<int>({2, 4}));
    Setup setup = draw.setup(sizes, {"ring", "doubleBinaryTree"});
    setup.involved = draw.one_of<std::vector<bool>>(
        {{true, false, false}, {false, true, false}, {false, true, true}, {true, false, true}});
    const int all = sizes[0] * sizes[1] * sizes[2], from = draw.number(0, all - 1);
    const auto place = [&](int rank, int i) {
      return (i == 0   ? rank
              : i == 1 ? rank / sizes[0]
                       : rank / sizes[0] / sizes[1]) %
             sizes[static_cast<std::size_t>(i)];
    };
    for (int rank = 0; rank < all; ++rank) {
      bool is_around = true;
      for (int i = 0; i < 3; ++i)
        is_around = is_around && (setup.involved[static_cast<std::size_t>(i)] || place(rank, i) == place(from, i));
      if (is_around) setup.group.push_back(rank);
    }
    setup.entries.assign(setup.group.size(), 50);
    const bool is_followed = std::count(setup.involved.begin(), setup.involved.end(), true) == 1;
    if (is_followed && draw.number(0, 1) == 0)
      for (std::int64_t& entry : setup.entries) entry = draw.number(0, 5000);
    INFO("seed " << seed << ": " << text_of(setup));
    const int before = ties;
    const std::vector<std::int64_t> ends = ends_of(setup, &ties);
    if (ties == before) REQUIRE(ends == Oracle(setup).run());
  }
  CHECK(ties < 100);
}
