// How routers distribute tokens over experts, as data: a weight for each expert of every layer. Weights are counts of a
// measured run, or follow a law: Zipf's, whose r-th expert is chosen in proportion to r^-exponent.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/sharing/key.hpp"

namespace manyworlds::core::workload {

struct Routing {
  std::vector<std::vector<std::int64_t>> loads;  // distinct loads: weights by expert, of which only the ratios matter
  std::vector<std::uint32_t>
      load_by_layer;  // index into `loads` by layer of the model; arbitrary for layers without experts
  sharing::Key key;   // covers both members
};

/// Returns the routing with these weights by layer and expert, none of them below 0.
std::shared_ptr<const Routing> make_routing(const std::vector<std::vector<std::int64_t>>& by_layer);

/// Returns r^-exponent for r from 1 to `experts`, in units of 2^-40 and at least 1: the same on every machine.
std::vector<std::int64_t> zipf_weights(std::int64_t experts, double exponent);

/// Returns a routing with the same Zipf weights in each layer, assigned to experts in an order drawn from `seed` for
/// each layer.
std::shared_ptr<const Routing> zipf_routing(std::int64_t layers, std::int64_t experts, double exponent,
                                            std::int64_t seed);

/// Distributes `rows` (token, expert) rows over experts in proportion to their weights, at most `max_per_expert` to
/// each (a token visits an expert once); the excess of full experts goes to the others in proportion. Rows are whole:
/// the largest remainders are rounded up, and the first expert wins ties. The rows sum to `rows`, which must be at most
/// `max_per_expert` for each expert of nonzero weight.
std::vector<std::int64_t> tokens_by_weight(std::span<const std::int64_t> weights, std::int64_t rows,
                                           std::int64_t max_per_expert);

}  // namespace manyworlds::core::workload
