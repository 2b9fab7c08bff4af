// Custom algorithms as ASTRA-sim runs them: traces of sends, receives and computations in place of a collective.
#include <functional>
#include <random>

#include "experiments/astra_sim/collectives/custom_times.hpp"
#include "tests/experiments/astra_sim_files.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::tests::astra_sim_files;
using collective::Kind;

namespace {

TraceNode message(std::uint64_t id, bool receives, std::int64_t peer, std::int64_t bytes, std::int64_t tag,
                  std::vector<std::uint64_t> after = {}) {
  return node(id, receives ? NodeType::comm_recv : NodeType::comm_send, 0, std::move(after),
              {whole(receives ? "comm_src" : "comm_dst", peer), whole("comm_tag", tag), whole("comm_size", bytes)});
}

/// A ring all-reduce of two: both halves are sent and reduced, then sent back.
Ranks halves(std::int64_t bytes) {
  Ranks places(2);
  for (int place = 0; place < 2; ++place)
    places[static_cast<std::size_t>(place)] = {
        message(0, false, 1 - place, bytes / 2, 0), message(1, true, 1 - place, bytes / 2, 0),
        node(2, NodeType::comp, 3, {1}), message(3, false, 1 - place, bytes / 2, 1, {2}),
        message(4, true, 1 - place, bytes / 2, 1, {2})};
  return places;
}

/// The configuration of one chunk with an algorithm in place of the all-reduces.
Configuration with_custom(const Ranks& places, const std::string& network = network_text("FullyConnected", 2)) {
  Configuration configuration = files(with(R"("preferred-dataset-splits": 1)"), network);
  configuration.custom.of_kind[Kind::all_reduce] =
      configuration.custom.add(parse_custom_algorithm(files_of(places), "custom"));
  return configuration;
}

/// What a plain walk through the messages of an algorithm, each of its own tag, says that its members end.
std::vector<std::int64_t> walked(const CustomAlgorithm& custom, const Network& network,
                                 const std::vector<std::uint32_t>& group, const std::vector<std::int64_t>& entries) {
  std::function<std::int64_t(std::uint32_t, std::uint32_t)> end_of;
  const auto begin_of = [&](std::uint32_t member, std::uint32_t node) {
    std::int64_t begin = entries[member];
    for (const std::uint32_t parent : custom.places[member][node].parents)
      begin = std::max(begin, end_of(member, parent));
    return begin;
  };
  end_of = [&](std::uint32_t member, std::uint32_t number) {
    const CustomNode& one = custom.places[member][number];
    const std::int64_t begin = begin_of(member, number);
    if (one.step == CustomStep::compute) return begin + one.ns;
    const auto arrival = [&](std::uint32_t from, std::uint32_t to, std::int64_t sent) {
      return sent + network.message_ns(network.way(group[from], group[to]), one.bytes);
    };
    if (one.step == CustomStep::send) return arrival(member, one.peer, begin);
    const std::vector<CustomNode>& theirs = custom.places[one.peer];
    for (std::uint32_t other = 0; other < theirs.size(); ++other)
      if (theirs[other].step == CustomStep::send && theirs[other].tag == one.tag)
        return std::max(begin, arrival(one.peer, member, begin_of(one.peer, other)));
    throw std::logic_error("a message that nobody sends");
  };
  std::vector<std::int64_t> ends(entries);
  for (std::uint32_t member = 0; member < ends.size(); ++member)
    for (std::uint32_t number = 0; number < custom.places[member].size(); ++number)
      ends[member] = std::max(ends[member], end_of(member, number));
  return ends;
}

/// Draws messages in an order that they can have, each of which waits for some nodes of its place before it.
Ranks drawn(std::mt19937_64& random, std::size_t places, int messages) {
  Ranks ranks(places);
  const auto after = [&](const std::vector<TraceNode>& nodes) {
    std::vector<std::uint64_t> ids;
    for (int i = static_cast<int>(random() % 3); i > 0 && !nodes.empty(); --i)
      ids.push_back(nodes[random() % nodes.size()].id);
    return ids;
  };
  for (int tag = 0; tag < messages; ++tag) {
    const std::size_t from = random() % places, to = (from + 1 + random() % (places - 1)) % places;
    const auto bytes = static_cast<std::int64_t>(1 + random() % 100'000);
    ranks[from].push_back(
        message(ranks[from].size(), false, static_cast<std::int64_t>(to), bytes, tag, after(ranks[from])));
    ranks[to].push_back(message(ranks[to].size(), true, static_cast<std::int64_t>(from), bytes, tag, after(ranks[to])));
    if (random() % 2 == 0) ranks[to].push_back(node(ranks[to].size(), NodeType::comp, random() % 3, after(ranks[to])));
  }
  for (std::vector<TraceNode>& one : ranks)
    if (one.empty()) one.push_back(node(0, NodeType::comp, 1));
  return ranks;
}

}  // namespace

TEST_CASE("a custom algorithm takes the time of its messages and computations") {
  // Two halves of 512 KiB at 50 GB/s of 2^30: 500 + floor(9765.6) ns each, 3 us of reduction between them.
  const std::vector<TraceNode> alone{collective_node(1, CommType::all_reduce, 1 << 20)};
  CHECK(step_ps({alone, alone}, with_custom(halves(1 << 20))) == 1000 * (10'265 + 3000 + 10'265));
  // Ranks that come later make others wait; what the workload says of bytes is not asked.
  const std::vector<TraceNode> late{node(1, NodeType::comp, 7), collective_node(2, CommType::all_reduce, 64, {1})};
  const std::vector<TraceNode> early{collective_node(1, CommType::all_reduce, 64)};
  CHECK(step_ps({early, late}, with_custom(halves(1 << 20))) == 1000 * (7000 + 10'265 + 3000 + 10'265));
  // Other kinds are native; nodes that are named have theirs before the kind's.
  Configuration configuration = with_custom(halves(1 << 20));
  const std::vector<TraceNode> gather{collective_node(1, CommType::all_gather, 1 << 10)};
  CHECK(step_ps({gather, gather}, configuration) ==
        step_ps({gather, gather}, files(with(R"("preferred-dataset-splits": 1)"), network_text("FullyConnected", 2))));
  configuration.custom.of_node[1] =
      configuration.custom.add(parse_custom_algorithm(files_of(halves(1 << 10)), "named"));
  const Ranks named{{collective_node(1, CommType::all_reduce, 64), collective_node(2, CommType::all_reduce, 64, {1})},
                    {collective_node(1, CommType::all_reduce, 64), collective_node(2, CommType::all_reduce, 64, {1})}};
  CHECK(step_ps(named, configuration) == 1000 * (2 * 509 + 3000 + 2 * 10'265 + 3000));
}

TEST_CASE("a named group keeps the algorithm that its first collective of a kind had, as in ASTRA-sim") {
  Configuration configuration = with_custom(halves(1 << 20));
  configuration.custom.of_node[1] =
      configuration.custom.add(parse_custom_algorithm(files_of(halves(1 << 10)), "named"));
  std::vector<TraceNode> rank;
  for (const std::uint64_t id : {1, 2}) rank.push_back(collective_node(id, CommType::all_reduce, 64, {}, "5"));
  CHECK(step_ps({rank, rank}, configuration, Congestion::unaware, R"({"5": [0, 1]})") == 1000 * 2 * (2 * 509 + 3000));
}

TEST_CASE("members of a group leave a custom algorithm when a plain walk lets them") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const Configuration configuration =
        files(kSystem, "topology: [Ring, Switch]\nnpus_count: [4, 2]\nbandwidth: [50, 7]\nlatency: [500, 900.5]\n");
    std::vector<std::uint32_t> group;
    for (std::uint32_t rank = 0; rank < 8; ++rank)
      if (random() % 2 == 0) group.push_back(rank);
    if (group.size() < 2) group = {1, 6};
    const CustomAlgorithm custom =
        parse_custom_algorithm(files_of(drawn(random, group.size(), static_cast<int>(random() % 30))), "custom");
    std::vector<std::int64_t> entries;
    for (std::size_t i = 0; i < group.size(); ++i) entries.push_back(static_cast<std::int64_t>(random() % 20'000));
    INFO("seed " << seed);
    REQUIRE(custom_ends(custom, group, configuration.network, entries) ==
            walked(custom, configuration.network, group, entries));
  }
}

TEST_CASE("the k-th receive of a tag and size meets the k-th message, whenever it is asked for") {
  // Both messages are on their way at once; the second receive is asked for 9 us later.
  const Configuration configuration = files(kSystem, network_text("FullyConnected", 2));
  const CustomAlgorithm custom = parse_custom_algorithm(
      files_of({{message(1, false, 1, 1024, 0), message(2, false, 1, 1024, 0, {1})},
                {message(1, true, 0, 1024, 0), node(2, NodeType::comp, 9), message(3, true, 0, 1024, 0, {2})}}),
      "custom");
  CHECK(custom_ends(custom, {0, 1}, configuration.network, {0, 0}) == std::vector<std::int64_t>{2 * 519, 9000});
}

TEST_CASE("the files of a system's algorithms are read from where the program runs") {
  const TemporaryFolder folder;
  const auto path = [&](const std::string& name) { return (folder / name).string(); };
  const std::vector<chakra::TraceFile> traces = files_of(halves(1 << 20));
  for (std::size_t place = 0; place < traces.size(); ++place)
    folder.put(fmt::format("ring.{}.et", place), traces[place].bytes);
  const std::vector<TraceNode> rank{collective_node(7, CommType::all_reduce, 1 << 20)};
  for (std::size_t place = 0; place < 2; ++place)
    folder.put(fmt::format("job.{}.et", place), files_of({rank, rank})[place].bytes);
  folder.put("network.yml", network_text("FullyConnected", 2));
  const auto step = [&](const std::string& members, Communication how) {
    folder.put("system.json", with(R"("preferred-dataset-splits": 1, )" + members));
    return read_astra_sim(path("job"), {path("system.json"), path("network.yml"), ""}, how);
  };
  const auto time = [&](const std::string& members) {
    return tests::step_of(step(members, Congestion::unaware).programs).step_ps;
  };
  CHECK(time(fmt::format(R"("all-reduce-implementation-custom": ["{}"])", path("ring"))) == 1000 * (2 * 10'265 + 3000));
  folder.put("nodes.yml", fmt::format("7: {}\n9: {}\n", path("ring"), path("nowhere")));
  CHECK(time(fmt::format(R"("per-node-custom-implementation": "{}")", path("nodes.yml"))) ==
        1000 * (2 * 10'265 + 3000));
  // Where collectives are simulated, the files are not asked for, and that is told.
  const programs::Imported simulated = step(R"("all-reduce-implementation-custom": ["nowhere"])", std::nullopt);
  CHECK(std::any_of(simulated.account.begin(), simulated.account.end(), [](const std::string& line) {
    return line.find("collectives are simulated, and not as ") == 0 &&
           line.find("all-reduce-implementation-custom") != line.npos;
  }));
  CHECK(error_of([&] { step(R"("all-reduce-implementation-custom": ["nowhere"])", Congestion::unaware); }) ==
        fmt::format("{}: all-reduce-implementation-custom: must be the prefix of traces, of which there is no "
                    "nowhere.0.et (from the folder where the program runs, as in ASTRA-sim)",
                    path("system.json")));
  CHECK(error_of([&] {
          step(R"("all-reduce-implementation-custom": ["a", "b"])", Congestion::unaware);
        }).find("all-reduce-implementation-custom: must be a list of one prefix of traces") != std::string::npos);
}

TEST_CASE("what is wrong in a custom algorithm is said with its trace and node") {
  const std::vector<TraceNode> rank{collective_node(1, CommType::all_reduce, 64)};
  const auto refused = [&](const Ranks& places, Communication how = Congestion::unaware) {
    return error_of([&] { imported({rank, rank}, with_custom(places), how); });
  };
  const std::vector<TraceNode> compute{node(1, NodeType::comp, 1)};
  CHECK(refused({{}, compute}) == "t.0.et: has no node: ASTRA-sim would wait for its end for ever");
  CHECK(refused({{rank}, compute}) ==
        "t.0.et: node 1 ('node') is no send, receive or computation, of which a custom algorithm is made in "
        "ASTRA-sim");
  CHECK(refused({{message(1, false, 1, 0, 0)}, compute}) ==
        "t.0.et: node 1 ('node') has 'comm_size' which is no integer from 1 to 1125899906842624");
  CHECK(refused({{node(1, NodeType::comp, 1, {2}), node(2, NodeType::comp, 1, {1})}, compute}) ==
        "t.0.et: node 1 is in a circle of dependencies, or behind one");
  CHECK(refused({{message(1, false, 1, 8, 0)}, compute}) ==
        "t.0.et: node 1 sends 8 bytes with tag 0 that place 1 does not receive");
  CHECK(refused({compute, {message(3, true, 0, 8, 4)}}) ==
        "t.1.et: node 3 waits for ever: place 0 sends it no 8 bytes with tag 4");
  CHECK(refused({compute, {message(3, true, 2, 8, 4)}}) == "t.1.et: node 3 is a transfer with place 2 of a group of 2");
  CHECK(refused({compute}) == "custom: must have traces of 2 ranks, as a group of its collectives has, not of 1");
  CHECK(refused({compute, compute}, Congestion::aware) ==
        "custom: custom algorithms are not modelled with congestion (--collectives as-astra has them without)");
  Configuration several = with_custom({compute, compute});
  several.system.splits = 4;
  CHECK(error({rank, rank}, several) ==
        "system.json: preferred-dataset-splits: must be 1 for custom algorithms: ASTRA-sim runs one once, and "
        "waits for ever for the other 3 chunks");
  CHECK(error({{transfer(1, false, 1, 1 << 19)}, {transfer(1, true, 0, 1 << 19)}}, with_custom(halves(1 << 20)))
            .find("is a transfer with the tag and the size of one of a custom algorithm") != std::string::npos);
  CHECK(error_of([] { parse_per_node_file("a: b\n", "n.yml"); }) ==
        "n.yml:1: a: must be the id of a node of the workload, an integer");
}
