// Generates the transfers of a ring, for AlgorithmInfo::generator.
#pragma once

#include <cstdint>
#include <memory>

#include "core/collective/dag/transfer_generator.hpp"

namespace manyworlds::core::collective {

std::shared_ptr<const TransferGenerator> ring_generator(const Shape& shape, std::uint32_t width);

}  // namespace manyworlds::core::collective
