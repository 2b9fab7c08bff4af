// ASTRA-sim's files as tests write them, and steps of the programs that they become.
#pragma once

#include <string>
#include <vector>

#include "experiments/astra_sim/read_astra_sim.hpp"
#include "experiments/chakra/trace.hpp"
#include "tests/experiments/given_steps.hpp"

namespace manyworlds::tests::astra_sim_files {

using namespace experiments;
using namespace experiments::astra_sim;
using chakra::Attribute;
using chakra::CommType;
using chakra::NodeType;
using chakra::TraceNode;

inline Attribute whole(std::string name, std::int64_t value) {
  return Attribute::of(std::move(name), Attribute::kInt64, static_cast<std::uint64_t>(value));
}

inline TraceNode node(std::uint64_t id, NodeType type, std::uint64_t us, std::vector<std::uint64_t> after = {},
                      std::vector<Attribute> attributes = {}) {
  TraceNode one;
  one.id = id;
  one.name = "node";
  one.type = static_cast<std::uint32_t>(type);
  one.duration_us = us;
  one.data_deps = std::move(after);
  one.attributes = std::move(attributes);
  return one;
}

inline TraceNode collective_node(std::uint64_t id, CommType type, std::int64_t bytes,
                                 std::vector<std::uint64_t> after = {}, const std::string& group = "") {
  TraceNode one = node(id, NodeType::comm_coll, 0, std::move(after),
                       {whole("comm_type", static_cast<std::int64_t>(type)), whole("comm_size", bytes)});
  if (!group.empty()) one.attributes.push_back(Attribute::of_text("pg_name", group));
  return one;
}

inline TraceNode transfer(std::uint64_t id, bool receives, std::int64_t peer, std::int64_t bytes,
                          std::vector<std::uint64_t> after = {}) {
  return node(id, receives ? NodeType::comm_recv : NodeType::comm_send, 0, std::move(after),
              {whole(receives ? "comm_src" : "comm_dst", peer), whole("comm_tag", 0), whole("comm_size", bytes)});
}

using Ranks = std::vector<std::vector<TraceNode>>;

inline std::vector<chakra::TraceFile> files_of(const Ranks& ranks) {
  std::vector<chakra::TraceFile> files;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    files.push_back({fmt::format("t.{}.et", rank), chakra::trace_bytes({"0.0.4", {}, ranks[rank]})});
  return files;
}

/// The files of the measurements: one dimension, 50 GB/s and 500 ns a link; rings in 4 splits, one at a time.
inline std::string network_text(const std::string& block, int n) {
  return fmt::format("topology: [ {} ]\nnpus_count: [ {} ]\nbandwidth: [ 50.0 ]  # GB/s\nlatency: [ 500.0 ]  # ns\n",
                     block, n);
}
inline const std::string kSystem = R"({
    "scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
    "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
    "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"],
    "collective-optimization": "localBWAware", "local-mem-bw": 1600, "boost-mode": 0})";

inline Configuration files(const std::string& system, const std::string& network) {
  return {parse_system_file(system, "system.json"), parse_network_file(network, "network.yml"), {}};
}

/// `kSystem` with members put behind those that it has, which they replace.
inline std::string with(const std::string& members) {
  return kSystem.substr(0, kSystem.size() - 1) + ", " + members + "}";
}

inline programs::Imported imported(const Ranks& ranks, const Configuration& configuration,
                                   Communication communication = Congestion::unaware, const std::string& groups = "") {
  return import_astra_sim(files_of(ranks), groups, "t", configuration, communication);
}

inline Time step_ps(const Ranks& ranks, const Configuration& configuration,
                    Communication communication = Congestion::unaware, const std::string& groups = "") {
  return tests::step_of(imported(ranks, configuration, communication, groups).programs).step_ps;
}

inline std::string error(const Ranks& ranks, const Configuration& configuration,
                         Communication communication = Congestion::unaware, const std::string& groups = "") {
  return error_of([&] { imported(ranks, configuration, communication, groups); });
}

}  // namespace manyworlds::tests::astra_sim_files
