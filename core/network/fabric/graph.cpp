// Builds a graph vertex by vertex and cable by cable.
#include "core/network/fabric/graph.hpp"

#include <map>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::core::network {

std::uint32_t Graph::add_vertex(VertexKind kind, std::string name) {
  const auto id = static_cast<std::uint32_t>(vertices.size());
  if (kind == VertexKind::gpu) {
    MANYWORLDS_CHECK(gpus == id, "GPU {} comes after another kind of vertex", name);
    ++gpus;
  }
  vertices.push_back(kind);
  names.push_back(std::move(name));
  return id;
}

std::uint32_t Graph::add_cable(std::uint32_t a, std::uint32_t b, LinkKind kind, std::int64_t bits_per_second,
                               Time latency_ps) {
  return add_cable({a, b, kind, bits_per_second, latency_ps});
}

std::uint32_t Graph::add_cable(const Link& forward) {
  const auto& [a, b, kind, bits_per_second, latency_ps, order, length] = forward;
  MANYWORLDS_CHECK(a != b && a < vertices.size() && b < vertices.size(), "cable {} - {} among {} vertices", a, b,
                   vertices.size());
  MANYWORLDS_CHECK(bits_per_second > 0 && latency_ps >= 1 && length >= 1, "cable {} - {}: {} b/s, {} ps", names[a],
                   names[b], bits_per_second, latency_ps);
  const auto id = static_cast<std::uint32_t>(links.size());
  links.push_back(forward);
  links.push_back(forward);
  std::swap(links.back().from, links.back().to);
  return id;
}

std::vector<std::string> link_names(const Graph& graph) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> parallel;
  std::vector<std::string> names;
  for (const Link& link : graph.links) {
    names.push_back(fmt::format("{}->{}", graph.names[link.from], graph.names[link.to]));
    if (const int number = ++parallel[{link.from, link.to}]; number > 1) names.back() += fmt::format("#{}", number);
  }
  return names;
}

}  // namespace manyworlds::core::network
