#include "core/collective/algorithms/algorithm_info.hpp"

namespace manyworlds::core::collective {

bool everywhere(Kind, const Communicator&) {
  return true;
}

bool nowhere(Kind, const Communicator&) {
  return false;
}

bool inside_a_node(Kind, const Communicator& communicator) {
  return communicator.per_node == communicator.members;
}

bool across_nodes(Kind, const Communicator& communicator) {
  return communicator.per_node != communicator.members;
}

bool on_two_levels(Kind, const Communicator& communicator) {
  return communicator.per_node > 1 && communicator.per_node != communicator.members;
}

bool always(const Shape&) {
  return true;
}

bool has_one_level(const Shape& shape) {
  return shape.per_node == 1 || shape.per_node == shape.members;
}

}  // namespace manyworlds::core::collective
