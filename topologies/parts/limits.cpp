#include "topologies/parts/limits.hpp"

#include "core/base/error.hpp"
#include "core/network/fabric/router.hpp"

namespace manyworlds::topologies {

void check_limits(const core::network::Graph& graph, std::int64_t vertices, std::int64_t cables,
                  std::string_view what) {
  if (static_cast<std::int64_t>(graph.vertices.size()) + vertices > kMaxVertices)
    throw core::InputError(
        fmt::format("{} {} switches are too many; a fabric may have {} GPUs and switches in all: "
                    "use fewer, or larger switches in the tier below",
                    vertices, what, kMaxVertices));
  if (static_cast<std::int64_t>(graph.links.size()) / 2 + cables > kMaxCables)
    throw core::InputError(
        fmt::format("{} cables of {} switches are too many; a fabric may have {} in all: ask for "
                    "fewer cables or switches",
                    cables, what, kMaxCables));
}

void check_path_length(std::string_view topology, std::int64_t links, std::string_view remedy) {
  if (links > static_cast<std::int64_t>(core::network::kMaxHops))
    throw core::InputError(fmt::format("{} has paths of {} links; at most {} are supported: {}", topology, links,
                                       core::network::kMaxHops, remedy));
}

}  // namespace manyworlds::topologies
