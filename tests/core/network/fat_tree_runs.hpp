// k-ary fat trees, flow tables, and completion times over them, for tests of the second engine.
#pragma once

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/network/fabric/graph.hpp"
#include "tests/source_folder.hpp"

namespace manyworlds::core::network {

/// k^3/4 hosts; every link 400 Gb/s and 1 us.
inline std::shared_ptr<Graph> k_ary_tree(std::uint32_t k) {
  auto graph = std::make_shared<Graph>();
  const std::uint32_t half = k / 2, hosts = k * half * half, leaves = hosts, spines = leaves + k * half,
                      cores = spines + k * half;
  const auto join = [&](std::uint32_t a, std::uint32_t b) {
    graph->add_cable(a, b, LinkKind::network, 400'000'000'000, kMicrosecond);
  };
  for (std::uint32_t i = 0; i < hosts; ++i) graph->add_vertex(VertexKind::gpu, "gpu" + std::to_string(i));
  for (std::uint32_t i = 0; i < 2 * k * half + half * half; ++i)
    graph->add_vertex(VertexKind::network_switch, "switch" + std::to_string(i));
  for (std::uint32_t i = 0; i < hosts; ++i) join(i, leaves + i / half);
  for (std::uint32_t leaf = 0; leaf < k * half; ++leaf)
    for (std::uint32_t i = 0; i < half; ++i) join(leaves + leaf, spines + leaf / half * half + i);
  for (std::uint32_t spine = 0; spine < k * half; ++spine)
    for (std::uint32_t i = 0; i < half; ++i) join(spines + spine, cores + spine % half * half + i);
  return graph;
}

struct TableFlow {
  std::uint32_t source, destination;
  std::int64_t bytes;
};

inline std::vector<TableFlow> flow_table(const std::string& name) {
  std::ifstream file(source_folder() + "/tests/flows/" + name + ".csv");
  std::vector<TableFlow> flows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    TableFlow flow{};
    fields >> flow.source >> flow.destination >> flow.bytes;
    flows.push_back(flow);
  }
  return flows;
}

struct Figures {
  double mean = 0, p99 = 0, least = 0;  // microseconds
};

inline Figures figures_of(std::vector<Time> times) {
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const Time time : times) sum += static_cast<double>(time);
  return {sum / static_cast<double>(times.size()) / 1e6,
          static_cast<double>(times[(times.size() * 99 + 99) / 100 - 1]) / 1e6,
          static_cast<double>(times.front()) / 1e6};
}

}  // namespace manyworlds::core::network
