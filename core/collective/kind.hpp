// Names of the collective operations and of the algorithms that carry them out.
#pragma once

#include <cstdint>

namespace manyworlds::core::collective {

/// `bytes` of an operation is, per rank: all_reduce the vector; all_gather the gathered result; reduce_scatter the
/// vector that is reduced; all_to_all what a rank sends in all (its own part included); send what is sent.
enum class Kind : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, send };
enum class Algorithm : std::uint8_t { ring, two_level };

}  // namespace manyworlds::core::collective
