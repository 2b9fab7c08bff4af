// A decoder-only transformer as operators with the exact shapes one rank works on: kernels forward and backward, the
// collectives of tensor parallelism (Shoeybi et al. 2019) and of sequence parallelism (Korthikanti et al. 2022), and
// what each operator keeps for its backward pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "core/collective/dag/split.hpp"
#include "core/compute/kernel.hpp"
#include "core/compute/measured.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/model/modules.hpp"
#include "core/workload/program/program.hpp"
#include "core/workload/strategy/cut.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Which of the collectives started so far a join waits for.
struct Awaited {
  std::optional<Role> role;  // those of one role; none: of all
  std::int64_t but = 0;      // not so many of those started last
};

/// One item of a rank's work on a micro-batch: a kernel; a collective among the ranks that share the micro-batch, which
/// starts after the kernels before it; or the point from which kernels need the collectives started so far. With
/// Role::send_context it is an exchange: a rank sends to the next of its context ring and receives from the one before.
struct Work {
  enum class Kind : std::uint8_t { kernel, start, join };
  Kind kind = Kind::kernel;
  compute::Kernel kernel;                                      // kernel
  std::int64_t launches = 1;                                   // kernel: how often the host launches something for it
  compute::Price price;                                        // kernel, once its part is priced (workload/prices.hpp)
  collective::Kind collective = collective::Kind::all_reduce;  // start
  std::int64_t bytes = 0;                                      // start: see collective::Kind
  collective::Split split;                                     // start: who sends how much, where it is not the same
  Role role = Role::tensor;                                    // start
  std::string_view name;                                       // start
  Awaited awaited;                                             // join
  bool of_experts = false;                                     // needs to know how many tokens came to each expert
  bool of_load = false;                                        // depends on the experts of this rank and layer
  bool of_weights = false;                                     // kernel: gradients of weights, which no rank waits for
};
using Tape = std::vector<Work>;

inline constexpr std::int64_t kNotAgain = -1;

struct Operator {
  std::string_view name;
  Tape forward, backward;
  std::int64_t kept_bytes = 0;    // for the backward pass: mostly what went in
  std::int64_t core_bytes = 0;    // kept too: scores and masks inside attention
  std::int64_t tensors = 1;       // as many of these, where they are alike
  std::int64_t weight_bytes = 0;  // what gradients of weights are made from, 16-bit gradients of what came out included
  Modules part_of = 0;            // modules that it belongs to
  Modules input_of = 0;           // modules whose results it has as input
  std::int64_t input_bytes = 0;   // of kept_bytes: those results
  Modules offloaded_as = 0;       // what it keeps may go to the host under this name

  // What runs again in the backward pass (workload/keeping.hpp). Numbers of operators of the same layer.
  std::int64_t again_before = kNotAgain;   // its forward pass, before the backward pass of this one
  std::int64_t remade_bytes = 0;           // not kept but made again
  std::int64_t remade_before = kNotAgain;  // when they are
};

/// In forward order; the backward pass runs them in reverse.
std::vector<Operator> embedding_operators(const Model& model, const Strategy& strategy);
/// On the ranks of that place among those that share the layer's experts.
std::vector<Operator> layer_operators(const Model& model, const Strategy& strategy, LayerKind kind = {},
                                      std::int64_t expert_rank = 0);
/// Final norm, vocabulary layer and loss.
std::vector<Operator> head_operators(const Model& model, const Strategy& strategy);

/// GEMM and attention FLOPs of one sequence, forward and backward, nothing recomputed, vocabulary unpadded: what
/// model FLOPs utilisation counts (Narayanan et al. 2021, appendix: 72 s l h^2 (1 + s/6h + V/12lh) for GPT). Experts as
/// if they were balanced.
std::int64_t model_flops_per_sequence(const Model& model);

}  // namespace manyworlds::core::workload
