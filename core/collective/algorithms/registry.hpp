// All collective algorithms; core/collective/dag/algorithm.hpp lists them.
#pragma once

#include <vector>

#include "core/collective/algorithms/algorithm_info.hpp"

namespace manyworlds::core::collective {

/// Returns all algorithms, in the order of Algorithm.
const std::vector<AlgorithmInfo>& algorithms();
/// That of Algorithm::given, which is not among them, is "given".
const AlgorithmInfo& info_of(Algorithm algorithm);
/// Returns the generator of a shape's transfers, `width` in a row; null if they have to be written out by build().
std::shared_ptr<const TransferGenerator> generator_of(const Shape& shape, std::uint32_t width);

bool supports(Algorithm algorithm, Kind kind);

/// Returns the name of a kind, as in options and results.
const char* name_of(Kind kind);

}  // namespace manyworlds::core::collective
