// Algorithms of MSCCL as collectives of a step: what they take, beside their programs and our own rings, and when they
// are chosen.
#include "core/collective/algorithms/registry.hpp"
#include "core/collective/library/library.hpp"
#include "core/step/compile/tuner_choices.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/msccl/given_algorithms.hpp"
#include "experiments/msccl/read_algorithm.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/experiments/msccl_algorithms.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using Catch::Matchers::Contains;
using collective::Kind;
using collective::Protocol;
using experiments::testing::all_pairs;
using experiments::testing::ring;
using experiments::testing::XmlAlgorithm;
using experiments::testing::XmlBlock;

namespace {

constexpr std::int64_t kMib = 1 << 20;

collective::TunerRule rule_of(const XmlAlgorithm& algorithm) {
  return msccl::rule_of(algorithm.text(), "a.xml");
}

std::string all_of(std::size_t ranks) {
  std::vector<std::size_t> all(ranks);
  for (std::size_t i = 0; i < ranks; ++i) all[i] = i;
  return fmt::format("[{}]", fmt::join(all, ","));
}

/// The time of the algorithm as a collective of a step.
Time as_collective(const XmlAlgorithm& algorithm, std::int64_t bytes, network::Fidelity fidelity) {
  const collective::TunerRule rule = rule_of(algorithm);
  return alone(collective::name_of(rule.kind), bytes, all_of(algorithm.gpus.size()),
               static_cast<std::uint32_t>(algorithm.gpus.size()), fidelity, {rule});
}

/// The time of its program, in which copies and reductions take none.
Time as_program(const XmlAlgorithm& algorithm, std::int64_t bytes, network::Fidelity fidelity) {
  programs::StreamPrograms programs = msccl::import_algorithm(algorithm.text(), "a.xml", {bytes}).programs;
  for (programs::RankProgram& program : programs.programs)
    for (programs::StreamOp& op : program.ops)
      if (auto* copy = std::get_if<programs::CopyWork>(&op.work)) copy->bytes = 0;
  return step_of(programs, fidelity).step_ps;
}

/// An all-gather in which GPU 0 hands on its half in two parts by way of GPU 1, which keeps the first until it has sent
/// it: the chain of a broadcast, with as many slots as the protocol has.
XmlAlgorithm relay(const std::string& protocol) {
  XmlAlgorithm result{"allgather", protocol, 12, true, {}, 0};
  XmlBlock first{1, -1, 0, {}}, middle{2, 0, 0, {}}, last{-1, 1, 0, {}};
  for (int chunk = 0; chunk < 4; ++chunk) {
    const std::string place = fmt::format("o{}", chunk);
    first.steps.push_back({"s", place, place});
    middle.steps.push_back({"rcs", place, place});
    last.steps.push_back({"r", place, place});
  }
  // GPUs 1 and 2 send their chunks at once, each by a thread block of its own.
  const auto sends = [](int to, int channel, int at) {
    const std::string place = fmt::format("o{}", at);
    return XmlBlock{to, -1, channel, {{"s", place, place, 4}}};
  };
  const auto receives = [](int from, int channel, int at) {
    const std::string place = fmt::format("o{}", at);
    return XmlBlock{-1, from, channel, {{"r", place, place, 4}}};
  };
  result.gpus.push_back({first, receives(1, 1, 4), receives(2, 1, 8)});
  result.gpus.push_back({middle, sends(0, 1, 4), sends(2, 1, 4), receives(2, 2, 8)});
  result.gpus.push_back({last, receives(1, 1, 4), sends(0, 1, 8), sends(1, 2, 8)});
  return result;
}

XmlAlgorithm with_protocol(XmlAlgorithm algorithm, const std::string& protocol) {
  algorithm.protocol = protocol;
  return algorithm;
}

collective::Communicator node(std::uint32_t members) {
  return {members, members, {80'000'000'000, core::kMicrosecond}, {8'000'000'000, 2 * core::kMicrosecond}, true};
}

collective::Library library_with(std::vector<collective::TunerRule> rules, Protocol protocol) {
  collective::Library library;
  library.protocol = protocol;
  library.tuner_rules = std::move(rules);
  return library;
}

/// A sweep of kSingle, without a protocol's costs, whose collectives have these algorithms, by file name.
experiments::Sweep sweep_with(const std::vector<std::pair<std::string, XmlAlgorithm>>& files) {
  const TemporaryFolder folder;
  std::string paths;
  for (const auto& [name, algorithm] : files) {
    folder.put(name, algorithm.text());
    paths += (paths.empty() ? "" : ":") + (folder / name).string();
  }
  return testing::read(testing::kSingle, {"collectives.protocol=none", "collectives.msccl_files=" + paths});
}

}  // namespace

TEST_CASE("an algorithm takes as a collective what its program takes but for copies and reductions") {
  const auto check = [](const XmlAlgorithm& algorithm, std::int64_t bytes, network::Fidelity fidelity) {
    CAPTURE(algorithm.collective, algorithm.protocol, algorithm.gpus.size(), static_cast<int>(fidelity));
    CHECK(as_collective(algorithm, bytes, fidelity) == as_program(algorithm, bytes, fidelity));
  };
  for (const auto fidelity : {network::Fidelity::analytic, network::Fidelity::packet}) {
    for (const int gpus : {2, 3, 8})
      for (const char* kind : {"allreduce", "allgather", "reducescatter"})
        check(ring(gpus, kind), gpus * kMib, fidelity);
    // Of Simple, 5 MiB are two loops of 2 MiB and one of 1 MiB; of LL128, 120,000 B are one, with flags.
    check(ring(4), 4 * 5 * kMib, fidelity);
    for (const char* protocol : {"LL", "LL128"}) check(with_protocol(ring(4), protocol), 4 * 120'000, fidelity);
  }
  // Where transfers meet on a link, the packets of a collective's connections and of single transfers take turns in
  // other ways.
  check(ring(12), 12 * kMib, network::Fidelity::analytic);
  for (const char* protocol : {"Simple", "LL"}) check(relay(protocol), 12 * kMib, network::Fidelity::analytic);
  check(all_pairs(4), 4 << 15, network::Fidelity::analytic);
  for (const XmlAlgorithm& one : {relay("Simple"), relay("LL"), all_pairs(4)}) {
    const auto in_packets = [&](const auto& takes) {
      return static_cast<double>(takes(one, 12 << 15, network::Fidelity::packet));
    };
    CHECK(in_packets(as_collective) == Approx(in_packets(as_program)).epsilon(0.03));
  }
}

TEST_CASE("a given ring takes what our own ring does, with the costs of every protocol") {
  for (const std::uint32_t n : {2u, 4u, 8u}) {
    const std::int64_t bytes = n * kMib;
    CAPTURE(n);
    const auto gpus = static_cast<int>(n);
    CHECK(as_collective(ring(gpus), bytes, network::Fidelity::analytic) ==
          2 * (n - 1) * transfer_alone(bytes / n, network::Fidelity::analytic));
    CHECK(as_collective(ring(gpus), bytes, network::Fidelity::packet) ==
          alone("all_reduce", bytes, all_of(n), n, network::Fidelity::packet));
    for (const char* protocol : {"Simple", "LL", "LL128"}) {
      const collective::TunerRule rule = rule_of(with_protocol(ring(gpus), protocol));
      collective::Shape given =
          choose_shape(library_with({rule}, Protocol::automatic), node(n), Kind::all_reduce, n * 30'000);
      REQUIRE(given.algorithm == collective::Algorithm::given);
      CHECK(given.protocol == rule.protocol);
      collective::Shape own{Kind::all_reduce, collective::Algorithm::ring, n, n * 30'000, n};
      own.protocol = rule.protocol;
      CHECK(predicted_ps(given, node(n)) == predicted_ps(own, node(n)));
      const collective::Dag a = build(given), b = build(own);
      CHECK(a.launch_ps == b.launch_ps);
      REQUIRE(a.transfers.size() == b.transfers.size());
      for (std::size_t i = 0; i < a.transfers.size(); ++i) {
        CHECK(a.transfers[i].bytes == b.transfers[i].bytes);
        CHECK(a.transfers[i].delay_ps == b.transfers[i].delay_ps);
      }
    }
  }
}

TEST_CASE("over two nodes a given ring waits for slots, which our own ring has without end") {
  constexpr std::uint32_t kMembers = 12;
  collective::TunerRule rule = rule_of(ring(kMembers));
  for (const auto fidelity : {network::Fidelity::analytic, network::Fidelity::packet}) {
    const auto takes = [&](std::int64_t slots) {
      collective::GivenAlgorithm given = *rule.given;
      given.slots = slots;
      rule.given = {std::make_shared<const collective::GivenAlgorithm>(given)};
      return alone("all_reduce", kMembers * kMib, all_of(kMembers), kMembers, fidelity, {rule});
    };
    const Time own = alone("all_reduce", kMembers * kMib, all_of(kMembers), kMembers, fidelity);
    if (fidelity == network::Fidelity::analytic) {
      CHECK(takes(1'000) == own);
      CHECK(takes(2) >= own);
    } else {  // packets of unlike order take turns in other ways where the two directions of a NIC meet
      CHECK(static_cast<double>(takes(1'000)) == Approx(static_cast<double>(own)).epsilon(0.01));
    }
  }
}

TEST_CASE("an algorithm is chosen for its collective, its members, and bytes that it is meant for and divides") {
  std::string text = ring(4).text();
  text.insert(text.find(" inplace"), " minBytes=\"4096\" maxBytes=\"65536\"");
  const collective::TunerRule rule = msccl::rule_of(text, "a.xml");
  const auto is_chosen = [&](Kind kind, std::int64_t bytes, std::uint32_t members, Protocol protocol = Protocol::none) {
    const collective::Shape shape = choose_shape(library_with({rule}, protocol), node(members), kind, bytes);
    return static_cast<bool>(shape.given) && shape.algorithm == collective::Algorithm::given;
  };
  CHECK(is_chosen(Kind::all_reduce, 4'096, 4));
  CHECK(is_chosen(Kind::all_reduce, 65'536, 4, Protocol::automatic));
  CHECK_FALSE(is_chosen(Kind::all_reduce, 4'095, 4));
  CHECK_FALSE(is_chosen(Kind::all_reduce, 4'098, 4));
  CHECK_FALSE(is_chosen(Kind::all_reduce, 65'540, 4));
  CHECK_FALSE(is_chosen(Kind::all_reduce, 8'192, 8));
  CHECK_FALSE(is_chosen(Kind::all_gather, 8'192, 4));
  // What is not chosen is as without.
  CHECK(choose_shape(library_with({rule}, Protocol::none), node(8), Kind::all_reduce, 8'192) ==
        choose_shape(library_with({}, Protocol::none), node(8), Kind::all_reduce, 8'192));
  CHECK_FALSE(rule.given->divides(0));
  // A chunk of 4 GiB is 2,048 loops of 2 MiB, each of 4 x 7 steps; 2^39 loops are too many.
  CHECK(rule.given->divides(std::int64_t{4} << 32));
  CHECK_FALSE(rule.given->divides(std::int64_t{1} << 62));
}

TEST_CASE("an exchange of unequal shares is left to the library") {
  XmlAlgorithm exchange{"alltoall", "Simple", 2, false, {}, 0};
  for (int gpu = 0; gpu < 2; ++gpu) {
    const std::string own = fmt::format("{}", gpu), other = fmt::format("{}", 1 - gpu);
    exchange.gpus.push_back({{1 - gpu, 1 - gpu, 0, {{"s", "i" + other, "o" + own}, {"r", "i" + own, "o" + other}}},
                             {-1, -1, -1, {{"cpy", "i" + own, "o" + own}}}});
  }
  const collective::Library library = library_with({rule_of(exchange)}, Protocol::none);
  CHECK(choose_shape(library, node(2), Kind::all_to_all, 2'000).given);
  CHECK_FALSE(choose_shape(library, node(2), Kind::all_to_all, 2'000, {{500, 1'500}, false}).given);
}

TEST_CASE("the first of several files that fits is taken, wherever it is, and keys have what it does") {
  experiments::GraphCache graphs;
  core::step::SimulationContext context;
  const auto key = [&](const std::vector<std::pair<std::string, XmlAlgorithm>>& files) {
    return context.summary(configure(sweep_with(files).experiments.front(), graphs)).step;
  };
  const std::vector<std::pair<std::string, XmlAlgorithm>> none;
  std::set<std::uint32_t> sizes;
  for (const auto& one : tuner_choices(configure(sweep_with(none).experiments.front(), graphs)))
    if (one.kind == Kind::all_reduce) sizes.insert(one.members);
  REQUIRE(!sizes.empty());
  const auto members = static_cast<int>(*sizes.begin());
  CHECK(key({{"a.xml", ring(members)}}) != key(none));
  CHECK(key({{"a.xml", ring(members)}}) == key({{"b.xml", ring(members)}}));
  CHECK(key({{"a.xml", ring(members)}}) == key({{"a.xml", ring(members)}, {"c.xml", all_pairs(members)}}));
  CHECK(key({{"c.xml", all_pairs(members)}, {"a.xml", ring(members)}}) != key({{"a.xml", ring(members)}}));
  CHECK(key({{"a.xml", ring(63)}}) == key(none));  // no group has so many
  for (const auto& one : tuner_choices(configure(sweep_with({{"a.xml", ring(members)}}).experiments.front(), graphs)))
    CHECK(one.file.ends_with("a.xml") ==
          (one.kind == Kind::all_reduce && one.members == static_cast<std::uint32_t>(members) &&
           one.bytes % members == 0));
}

TEST_CASE("a sweep says what its algorithms are for, and refuses protocols that they do not have") {
  CHECK_THAT(
      sweep_with({{"a.xml", ring(4)}}).assumed,
      Contains("a.xml is for all_reduce of 4 members, of bytes that 4 divides; for all else the library chooses"));
  const TemporaryFolder folder;
  folder.put("a.xml", ring(4).text());
  const std::string file = "collectives.msccl_files=" + (folder / "a.xml").string();
  CHECK_THAT(testing::error_of(testing::kSingle, {file, "collectives.protocol=simple"}),
             Contains("violates rule tuner_protocol") && Contains("protocol is simple"));
  for (const char* protocol : {"none", "auto"})
    CHECK(testing::error_of(testing::kSingle, {file, fmt::format("collectives.protocol={}", protocol)}) ==
          "(no error)");
  folder.put("b.xml", "<algo>");
  CHECK_THAT(testing::error_of(testing::kSingle, {file + ":" + (folder / "b.xml").string()}), Contains("b.xml:1: "));
  CHECK_THAT(testing::error_of(testing::kSingle, {file + ":nowhere.xml"}), Contains("nowhere.xml"));
}

TEST_CASE("lower bounds are below steps whose collectives have an algorithm of MSCCL") {
  experiments::GraphCache graphs;
  for (const int members : {2, 4, 8}) {
    const experiments::Sweep sweep =
        sweep_with({{"a.xml", ring(members)}, {"b.xml", ring(members, "allgather")}, {"c.xml", all_pairs(members)}});
    const auto configuration = configure(sweep.experiments.front(), graphs);
    core::step::SimulationContext context;
    core::step::IsolatedResults known;
    CHECK(core::step::LowerBounds().of(configuration) <= context.run(context.compile(configuration), known).step_ps);
  }
}
