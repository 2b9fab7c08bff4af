// Operators: kernels forward and backward with the exact shapes of one rank, the collectives between them, and what
// each operator saves for its backward pass.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "core/collective/dag/split.hpp"
#include "core/compute/kernel.hpp"
#include "core/compute/measured.hpp"
#include "core/workload/model/modules.hpp"
#include "core/workload/program/program.hpp"

namespace manyworlds::core::workload {

/// A kernel, how it is launched and what it costs.
struct KernelWork {
  compute::Kernel shape;
  std::int64_t launches = 1;      // by the host
  bool weight_gradient = false;   // computes weight gradients, which no rank waits for
  bool depends_on_load = false;   // depends on this rank's experts in this layer
  compute::KernelCost cost = {};  // set when its part is costed (layer/kernel_costs.hpp)
};

/// A collective among the ranks that share the micro-batch, which starts after the kernels before it. One of
/// Role::send_context is an exchange: a rank sends to the next rank of its context ring and receives from the previous
/// one.
struct CollectiveStart {
  std::string_view name;
  collective::Kind kind = collective::Kind::all_reduce;
  std::int64_t bytes = 0;  // see collective::Kind
  Role role = Role::tensor;
  collective::Split split = {};  // bytes by member, if they differ
};

/// Kernels after it need the collectives started so far.
struct Join {
  std::optional<Role> role;      // only collectives of this role; none: all roles
  std::int64_t except_last = 0;  // excludes this many of the last ones started
};

/// One item of a rank's work on a micro-batch.
struct WorkItem {
  std::variant<KernelWork, CollectiveStart, Join> action;
  bool needs_token_counts = false;  // needs the number of tokens of each expert

  const KernelWork* kernel() const { return std::get_if<KernelWork>(&action); }
  KernelWork* kernel() { return std::get_if<KernelWork>(&action); }
  const CollectiveStart* start() const { return std::get_if<CollectiveStart>(&action); }
  bool computes_weight_gradient() const { return kernel() && kernel()->weight_gradient; }
};
using OpList = std::vector<WorkItem>;

/// A weight whose gradient a replica computes from the factors of all replicas: inputs and gradients of outputs.
struct WeightFactors {
  std::int64_t parameters = 0;      // of the weight: gradients that no bucket has
  std::int64_t gathered_bytes = 0;  // factors of all replicas, in 16 bits
  OpList gradient;                  // kernels over the tokens of all replicas
};

inline constexpr std::int64_t kNotRecomputed = -1;

struct Operator {
  std::string_view name;
  OpList forward, backward;
  std::int64_t saved_bytes = 0;                  // for the backward pass: mostly the input
  std::int64_t attention_core_bytes = 0;         // saved as well: scores and masks inside attention
  std::int64_t tensor_count = 1;                 // number of equal tensors that are saved
  std::int64_t weight_gradient_input_bytes = 0;  // inputs of weight gradients, including 16-bit gradients of outputs
  Modules in_modules = 0;                        // modules that it belongs to
  Modules input_from = 0;                        // modules whose outputs are its input
  std::int64_t module_output_bytes = 0;          // the share of saved_bytes that is such output
  Modules offload_module = 0;                    // module under which its saved activations are offloaded

  std::optional<WeightFactors> factors;  // if replicas exchange them (weights/sufficient_factors.hpp)

  // Recomputation in the backward pass (layer/activation_policy.hpp). Indices are those of operators in the same layer.
  std::int64_t recompute_before = kNotRecomputed;   // its forward pass is repeated before this one's backward pass
  std::int64_t recomputed_bytes = 0;                // recomputed instead of saved
  std::int64_t recomputed_before = kNotRecomputed;  // operator before whose backward pass this happens
  OpList recompute;                                 // what runs then; empty: the forward pass
  const OpList& recompute_pass() const { return recompute.empty() ? forward : recompute; }
};

}  // namespace manyworlds::core::workload
