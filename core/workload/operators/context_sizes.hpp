// Sizes that ranks which share the tokens of a sample divide besides: tokens of a part of its own, or of another
// network, and the heads of attention.
#pragma once

#include <cstdint>
#include <string>

namespace manyworlds::core::workload {

struct Model;
struct Strategy;

/// A part derives from it beside LayerPart if context-parallel ranks divide more of it than the tokens of its network.
class DividesInContext {
 public:
  DividesInContext() = default;
  DividesInContext(const DividesInContext&) = delete;
  DividesInContext& operator=(const DividesInContext&) = delete;
  virtual ~DividesInContext() = default;

  /// Returns the size that ranks cannot share out, "text 100, cp x tp 8"; empty: none.
  virtual std::string undivided_in_context(const Model& model, const Strategy& strategy) const = 0;
};

/// Returns the same of `tokens` called `name`, each of which one rank has outside tensor-parallel regions.
std::string undivided_tokens(const char* name, std::int64_t tokens, const Strategy& strategy);
/// Returns the same of heads, of which every rank has a share where tokens are traded for heads (ulysses).
std::string undivided_heads(const Model& model, const Strategy& strategy);

}  // namespace manyworlds::core::workload
