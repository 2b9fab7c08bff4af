// How routers spread tokens over experts, as data: for every layer a weight for each of its experts. What a measured
// run counted, or what a law gives: Zipf's, whose r-th expert is chosen in proportion to r^-exponent.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/sharing/key.hpp"

namespace manyworlds::core::workload {

struct Routing {
  std::vector<std::vector<std::int64_t>> loads;  // distinct ones: weights by expert, which only count by their shares
  std::vector<std::uint32_t> load_of_layer;      // by layer of the model; of a layer without experts: any
  sharing::Key key;                              // of both
};

/// Of weights by layer and expert, none below 0.
std::shared_ptr<const Routing> make_routing(const std::vector<std::vector<std::int64_t>>& by_layer);

/// r^-exponent for r from 1 to `experts` in units of 2^-40, at least 1: the same on every machine.
std::vector<std::int64_t> zipf_weights(std::int64_t experts, double exponent);

/// The same weights in each layer, at experts in an order that is drawn from `seed` for each layer by itself.
std::shared_ptr<const Routing> zipf_routing(std::int64_t layers, std::int64_t experts, double exponent,
                                            std::int64_t seed);

/// `copies` tokens over experts in proportion to their weights, none to an expert more than `most` (a token visits an
/// expert once): what others cannot take goes to the rest in proportion. Whole tokens: the largest remainders are
/// rounded up, of equal ones that of the first expert. They add up to `copies`, which must be at most `most` for each
/// expert of some weight.
std::vector<std::int64_t> tokens_by_weight(std::span<const std::int64_t> weights, std::int64_t copies,
                                           std::int64_t most);

}  // namespace manyworlds::core::workload
