// The list of collective algorithms: one line each, in the order in which `manyworlds list collectives` shows them.
// A line names the file algorithms/NAME.cpp, which has all that is known of the algorithm
// (algorithms/algorithm_info.hpp).
#pragma once

#include <cstdint>

namespace manyworlds::core::collective {

// An algorithm's place is its number in keys, so a new one stands at the end. Of equally fast ones an automatic library
// takes the first.
// clang-format off
#define MANYWORLDS_ALGORITHMS(entry) \
  entry(ring)                        \
  entry(two_level)                   \
  entry(node_leaders)                \
  entry(halving_doubling)            \
  entry(recursive_doubling)          \
  entry(double_tree)                 \
  entry(direct)                      \
  entry(in_switch)                   \
  entry(pairwise)                    \
  entry(node_aware)                  \
  entry(hybrid_ep)                   \
  entry(chain)                       \
  entry(binomial_tree)               \
  entry(parameter_server)
// clang-format on

#define MANYWORLDS_ENUMERATOR(name) name,
enum class Algorithm : std::uint8_t {
  MANYWORLDS_ALGORITHMS(MANYWORLDS_ENUMERATOR)  // see algorithms() for what each one is
  automatic,                                    // only in Library: the fastest one by the cost model
  as_all_reduce,  // only in Library: the all-reduce algorithm if it supports this kind, otherwise ring
  given           // only in Shape and rules: an algorithm that is data (Shape::given)
};
#undef MANYWORLDS_ENUMERATOR

}  // namespace manyworlds::core::collective
