// Sufficient factors: the gradient of a weight W (in x out) over b tokens is X^T dY, with X (b x in) the layer's inputs
// and dY (b x out) the gradients of its outputs, so that replicas can gather X and dY of all of them instead of summing
// gradients; each then computes the sum over n b tokens itself, which loses nothing (Xie et al. 2014; Zhang et al.
// 2017, Poseidon; Zhang et al. 2023, TAG, as SFB).
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/operators/operator.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// A weight and the tokens of one replica's step.
struct DenseWeight {
  std::int64_t in = 0, out = 0, tokens = 0;
  std::int64_t parameters() const { return in * out; }
  std::int64_t factor_elements() const { return tokens * (in + out); }
};

inline constexpr std::int64_t kFactorBytes = 2;  // of an element of a factor

/// Returns the bytes that a replica receives if all `replicas` gather their factors: those of the others.
std::int64_t received_factor_bytes(const DenseWeight& weight, std::int64_t replicas);
/// Returns the bytes that a replica receives in a ring all-reduce of the weight's gradients, of `gradient_bytes` each:
/// 2 (n - 1) / n of them, as in parameter servers that share the weight out evenly among the replicas (Zhang et al.
/// 2017, table 1).
double received_sum_bytes(const DenseWeight& weight, std::int64_t replicas, std::int64_t gradient_bytes);
/// Whether factors bring a replica fewer bytes than sums: n b (in + out) factors of 16 bits against twice the
/// gradients. With two replicas and gradients in 16 bits this is TAG's rule, b (in + out) < in out.
bool factors_take_fewer_bytes(const DenseWeight& weight, std::int64_t replicas, std::int64_t gradient_bytes);

/// Takes the weight gradients of a layer without experts out of its backward pass where replicas exchange their
/// factors: Operator::factors has what they gather instead, and the kernels that follow. GEMMs that share an input are
/// one weight. Nothing changes where `strategy` sums gradients or has one replica.
void exchange_factors(std::vector<Operator>& layer, const Strategy& strategy, const RankShapes& shapes);

}  // namespace manyworlds::core::workload
