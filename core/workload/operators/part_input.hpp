// The input of a part that is not one vector of its own network's residual stream for each token: a part that changes
// channels, rows and columns reads what the network before it delivers, and a hyper-connection reads several vectors.
#pragma once

#include <cstdint>

namespace manyworlds::core::workload {

struct PartOnRank;

/// Bytes of a micro-batch's input on one rank, of all its tokens, and those that the part's operators save of it for
/// their backward passes: the same, those of this rank's tokens under sequence parallelism, or none.
struct PartInput {
  std::int64_t bytes = 0;
  std::int64_t saved = 0;
};

/// A part derives from it beside LayerPart if its input may have another shape than its output.
class ReshapesStream {
 public:
  virtual ~ReshapesStream() = default;
  virtual PartInput input(const PartOnRank& on_rank) const = 0;
};

}  // namespace manyworlds::core::workload
