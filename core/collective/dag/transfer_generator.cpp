#include "core/collective/dag/transfer_generator.hpp"

#include "core/base/error.hpp"

namespace manyworlds::core::collective {

TransferGenerator::TransferGenerator(const Shape& shape, std::uint32_t width)
    : shape_(shape), width_(width), costs_(costs_of(shape)) {
  MANYWORLDS_CHECK(width > 0 && shape.members % width == 0, "{} members in rows of {}", shape.members, width);
}

Transfer TransferGenerator::transfer_between(std::uint32_t source, std::uint32_t destination, std::uint32_t pair,
                                             std::int64_t data_bytes) const {
  const bool inter_node = source / shape_.per_node != destination / shape_.per_node;
  return {pair, inter_node ? costs_.inter_node_ps : costs_.intra_node_ps, costs_.wire_bytes(data_bytes, inter_node)};
}

bool TransferGenerator::has_equal_blocks(std::uint32_t parts) const {
  const std::uint32_t n = shape_.members;
  const std::int64_t largest = chunk_bytes(shape_.bytes, n, 0), smallest = chunk_bytes(shape_.bytes, n, n - 1);
  for (std::uint32_t part = 0; part < parts && largest != smallest; ++part)
    for (const bool inter_node : {false, true})
      if (costs_.wire_bytes(chunk_bytes(largest, parts, part), inter_node) !=
          costs_.wire_bytes(chunk_bytes(smallest, parts, part), inter_node))
        return false;
  return true;
}

}  // namespace manyworlds::core::collective
