#include "experiments/graphs/rank_graph.hpp"

#include <fmt/format.h>

namespace manyworlds::experiments::graphs {

std::string node_text(std::uint64_t id, const std::string& name) {
  return fmt::format("node {} ('{}')", id, name.substr(0, 60));
}

}  // namespace manyworlds::experiments::graphs
