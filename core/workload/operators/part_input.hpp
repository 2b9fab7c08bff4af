// The input of a part that is not the residual stream of its own network: a part that changes channels, rows and
// columns reads what the network before it delivers.
#pragma once

#include <cstdint>

namespace manyworlds::core::workload {

struct PartOnRank;

/// Bytes of a micro-batch's input on one rank, and whether the part's operators save it for their backward passes.
struct PartInput {
  std::int64_t bytes = 0;
  bool is_saved = true;
};

/// A part derives from it beside LayerPart if its input may have another shape than its output.
class ReshapesStream {
 public:
  virtual ~ReshapesStream() = default;
  virtual PartInput input(const PartOnRank& on_rank) const = 0;
};

}  // namespace manyworlds::core::workload
