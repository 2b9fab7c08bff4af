// Generates the transfers of a two-level collective, for AlgorithmInfo::generator.
#pragma once

#include <cstdint>
#include <memory>

#include "core/collective/dag/transfer_generator.hpp"

namespace manyworlds::core::collective {

/// Returns the number of slices of a channel. In nodes with several members, a transfer inside the node carries one
/// block per node.
std::uint32_t two_level_slices(const Shape& shape);

/// Returns nothing on a full mesh, where the members of a node send to each other at once.
std::shared_ptr<const TransferGenerator> two_level_generator(const Shape& shape, std::uint32_t width);

}  // namespace manyworlds::core::collective
