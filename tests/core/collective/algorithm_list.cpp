// What each algorithm says of itself, held against its own DAGs. An algorithm is tested here by standing in the list.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "core/collective/algorithms/registry.hpp"
#include "core/collective/library/library.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::collective;

namespace {

/// Calls `visit` with every algorithm x kind x members x members per node, some of a power of two and some not.
template <class Visit>
void every_shape(Visit visit) {
  for (const AlgorithmInfo& info : algorithms())
    for (const Kind kind : info.kinds)
      for (const std::uint32_t members : {2u, 4u, 6u, 12u, 16u})
        for (std::uint32_t per_node = 1; per_node <= members; ++per_node) {
          if (members % per_node != 0) continue;
          const Shape shape{kind, info.algorithm, members, 1'000 * members, per_node};
          INFO(shape.text() << " per node " << per_node);
          visit(info, shape);
        }
}

bool same_dag(const Dag& a, const Dag& b) {
  const auto bytes = [](const Dag& dag) {
    std::vector<std::pair<std::uint32_t, std::int64_t>> all;
    for (const Transfer& transfer : dag.transfers) all.emplace_back(transfer.pair, transfer.bytes);
    return all;
  };
  return a.pairs == b.pairs && a.switches == b.switches && bytes(a) == bytes(b) && a.wait_count == b.wait_count &&
         a.successors_begin == b.successors_begin && a.successors == b.successors && a.entry == b.entry;
}

CostTerms terms_of(const AlgorithmInfo& info, const Shape& shape) {
  const std::int64_t passes = shape.kind == Kind::all_reduce ? 2 : 1, nodes = shape.members / shape.per_node;
  return info.cost(shape, {shape.members, shape.per_node, nodes, shape.bytes, shape.channels, passes});
}

Library automatic(bool calibrated) {
  Library library;
  library.all_reduce = library.all_to_all = library.broadcast = Algorithm::automatic;
  library.protocol = calibrated ? Protocol::calibrated : Protocol::none;
  Calibration& figures = library.calibration;
  figures.architecture = Architecture::hopper, figures.link_share = 0.8, figures.nic_share = 0.5;
  figures.launch_us = 20, figures.hop_us = 2, figures.hop_between_us = 5, figures.copy_gb_per_s = 500;
  figures.ll_launch_us = 4, figures.ll_hop_us = 1, figures.ll_hop_between_us = 3, figures.ll_copy_gb_per_s = 200;
  figures.ll128_launch_us = 10, figures.ll128_hop_us = 2, figures.ll128_share = 0.9;
  figures.in_switch_launch_us = 40, figures.in_switch_copy_gb_per_s = 1'000;
  return library;
}

}  // namespace

TEST_CASE("an algorithm's number in keys is its place in the list, and those of stored results keep theirs") {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : algorithms()) {
    CHECK(static_cast<std::size_t>(info.algorithm) == names.size());
    names.emplace_back(info.name);
  }
  const std::vector<std::string> stored{
      "ring",        "two_level", "node_leaders", "halving_doubling", "recursive_doubling",
      "double_tree", "direct",    "in_switch",    "pairwise",         "node_aware",
      "hybrid_ep",   "chain",     "binomial_tree"};
  REQUIRE(names.size() >= stored.size());
  CHECK(std::equal(stored.begin(), stored.end(), names.begin()));
  CHECK(std::set(names.begin(), names.end()).size() == names.size());
}

TEST_CASE("options offer every algorithm for each kind that it implements, and for no other") {
  std::size_t offered = 0;
  for (const OptionInfo& option : library_options().infos())
    for (const AlgorithmInfo& info : algorithms()) {
      const auto implements = [&](Kind kind) { return option.name == name_of(kind); };
      const bool implemented = std::any_of(info.kinds.begin(), info.kinds.end(), implements);
      INFO(option.name << " " << info.name);
      CHECK(implemented == (std::count(option.choices.begin(), option.choices.end(), info.name) == 1));
      if (option.name == "chunk_bytes") CHECK(info.pipelined == (option.help.find(info.name) != std::string::npos));
      offered += implemented;
    }
  CHECK(offered > algorithms().size());
}

TEST_CASE("an algorithm that ignores nodes has the same DAG for every number of members per node") {
  std::size_t same = 0, different = 0;
  every_shape([&](const AlgorithmInfo& info, Shape shape) {
    const Dag dag = build(shape);
    const bool ignores_nodes = info.ignores_nodes != nullptr && info.ignores_nodes(shape);
    shape.per_node = 1;
    const bool is_same = same_dag(dag, build(shape));
    if (ignores_nodes) CHECK(is_same);
    ++(is_same ? same : different);
  });
  CHECK((same > 100 && different > 100));  // a control: DAGs do depend on nodes
}

TEST_CASE(
    "a cost has steps and bytes inside nodes if nodes have several members, and between them if there are several") {
  every_shape([](const AlgorithmInfo& info, const Shape& shape) {
    const CostTerms terms = terms_of(info, shape);
    CHECK(terms.intra_node_steps + terms.inter_node_steps > 0);
    CHECK(terms.intra_node_bytes + terms.inter_node_bytes >= shape.bytes / shape.members);
    if (shape.per_node == 1) CHECK((terms.intra_node_steps == 0 && terms.intra_node_bytes == 0));
    if (shape.per_node == shape.members) CHECK((terms.inter_node_steps == 0 && terms.inter_node_bytes == 0));
  });
}

TEST_CASE("an automatic library takes what says that it is considered, and a simpler algorithm says so of itself") {
  std::set<Algorithm> taken;
  for (const bool calibrated : {false, true})
    for (const Kind kind :
         {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all, Kind::broadcast})
      for (const std::uint32_t per_node : {1u, 4u, 8u})
        for (const std::uint32_t nodes : {1u, 2u, 8u})
          for (const std::int64_t bytes : {100, 100'000, 100'000'000}) {
            if (per_node * nodes == 1) continue;
            const Library library = automatic(calibrated);
            const Communicator members{
                per_node * nodes, per_node, {80'000'000'000, kMicrosecond}, {8'000'000'000, 2 * kMicrosecond}, true};
            const Shape shape = choose_shape(library, members, kind, bytes);
            const AlgorithmInfo& info = info_of(shape.algorithm);
            INFO(shape.text() << " per node " << per_node);
            CHECK((calibrated ? info.considered_if_calibrated : info.considered)(kind, members));
            CHECK((info.simplified == nullptr || info.simplified(shape) == shape.algorithm));
            taken.insert(shape.algorithm);
          }
  CHECK(taken.size() > 6);
}

TEST_CASE("what a library sets on a shape leaves the operation as it is, and sets it once") {
  every_shape([](const AlgorithmInfo& info, const Shape& shape) {
    for (const auto set : {info.use_every_nic, info.calibrate}) {
      if (set == nullptr) continue;
      Shape expected = shape, changed = shape;
      set(changed);
      expected.channels = changed.channels, expected.chunk_bytes = changed.chunk_bytes;
      CHECK(changed == expected);
      CHECK((shape.channels == changed.channels || info.multi_channel));
      set(changed);
      CHECK(changed == expected);
    }
  });
}
