// A part of a layer, such as attention, a feed-forward network or a state-space mixer: what it has in weights, how they
// are divided over ranks, and what one rank computes. Every type of part is one file in core/workload/parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/workload/model/modules.hpp"

namespace manyworlds::core::workload {

struct Model;
struct Operator;
struct PartOnRank;

/// Weights of a part: divided over tensor-parallel ranks, and whole on each of them. Those of routed experts are not
/// among them (LayerPart::expert_parameters()), nor those of SharedTables.
struct PartParameters {
  std::int64_t sharded = 0, replicated = 0;
};

/// Ranks that a size is divided over: those of tensor parallelism, or of expert parallelism, or those that share one
/// expert.
enum class ShardAxis : std::uint8_t { tensor, expert, expert_tensor };

/// A size that must be a multiple of the number of ranks that it is divided over.
struct ShardedSize {
  std::string_view name;
  std::int64_t size = 0;
  ShardAxis axis = ShardAxis::tensor;
  bool is_of_keys = false;  // heads of keys and values, of which a SharesKeyHeads may have less than ranks
};

/// Names and modules of the norm before a part and of the sum with the residual stream behind it.
struct BranchNames {
  std::string_view norm, residual;
  Modules recompute_module = 0, offload_module = 0;  // of the norm
};

/// Bytes of the embedding tables that a rank holds, and of the states of their optimizer.
struct TableBytes {
  std::int64_t weights = 0, optimizer = 0;
};

/// Embedding tables of a part that the ranks of expert parallelism share out. Only rows that were looked up have
/// gradients, which the part itself applies in its backward pass: no replica sums them, no other optimizer sees them.
class SharedTables {
 public:
  virtual ~SharedTables() = default;

  /// Returns the weights on all ranks together, and those of the rows that a sample looks up.
  virtual std::int64_t table_parameters() const = 0;
  virtual std::int64_t looked_up_parameters() const = 0;
  /// Returns what rank `rank` of `ranks` holds.
  virtual TableBytes bytes_on(std::int64_t ranks, std::int64_t rank) const = 0;
  /// Whether these ranks have unequal shares.
  virtual bool ranks_differ(std::int64_t ranks) const = 0;
};

/// How a size of a part follows from its options and those of the model, by their names; `sequence` tokens of one
/// sample, of which attention has `pairs` of a query and a key.
struct PartFormulas {
  std::string parameters;         // without routed experts and tables that ranks share out
  std::string expert_parameters;  // of one routed expert; empty: none
  std::string forward_flops;      // of GEMMs and attention, one sample
};

class LayerPart {
 public:
  virtual ~LayerPart() = default;

  virtual BranchNames branch_names() const = 0;

  /// Returns the name of a size that the part needs and a model of these dimensions lacks; empty: none.
  virtual std::string missing_size(const Model& model) const = 0;

  /// Returns the weights of the part in a model of these dimensions, norms inside it included.
  virtual PartParameters parameters(const Model& model) const = 0;
  /// Returns the weights of the pairs of low rank beside its linear layers, if the model's options ask for them (LoRA).
  virtual PartParameters lora_parameters(const Model&) const { return {}; }

  /// Whether tokens are routed to experts, whose number and loads the model's options give.
  virtual bool has_experts() const { return false; }
  /// Returns the parameters of one of its experts, sharded over `etp` ranks.
  virtual std::int64_t expert_parameters(const Model&, std::int64_t /*etp*/) const { return 0; }

  /// Returns its embedding tables, if it has any, even if ranks share none of them out.
  virtual const SharedTables* tables() const { return nullptr; }

  /// The part in a set of workload::data_part; 0: tensor-parallel ranks cannot share it out by samples.
  virtual Modules data_part() const { return 0; }

  /// Whether ranks that share the tokens of a sample (context parallelism) can compute it.
  virtual bool shares_context() const { return true; }
  /// Whether it reads the output of a network before its own.
  virtual bool reads_other_network() const { return false; }

  /// Returns the sizes that parallelism divides.
  virtual std::vector<ShardedSize> sharded_sizes(const Model& model) const = 0;

  virtual PartFormulas formulas(const Model& model) const = 0;

  /// Appends what a rank computes of the part, in forward order.
  virtual void add_operators(std::vector<Operator>& operators, const PartOnRank& on_rank) const = 0;

  /// Returns the bytes of gradients and temporary tensors at the maximum of the part's backward pass, without those of
  /// the residual stream.
  virtual std::int64_t working_bytes(const PartOnRank& on_rank) const = 0;

  /// Returns the bytes that a rank keeps of a micro-batch from token to token while it generates (keys and values of
  /// the cached tokens and of those of the step, or a state); none: the part cannot generate.
  virtual std::optional<std::int64_t> cached_bytes(const PartOnRank&) const { return std::nullopt; }

  /// Returns the bytes of the buffer that all layers with such parts share, if there is one.
  virtual std::int64_t shared_buffer_bytes(const PartOnRank&) const { return 0; }
};

}  // namespace manyworlds::core::workload
