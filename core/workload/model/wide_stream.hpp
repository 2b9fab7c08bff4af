// Parts behind which the residual stream of a token is several vectors.
#pragma once

#include <cstdint>

namespace manyworlds::core::workload {

struct Model;

/// What a LayerPart is, besides, that makes several vectors of a token's one, or one of several.
class WidensStream {
 public:
  WidensStream() = default;
  WidensStream(const WidensStream&) = delete;
  WidensStream& operator=(const WidensStream&) = delete;
  virtual ~WidensStream() = default;

  /// Returns the vectors of a token in front of the part, and behind the part that it connects.
  virtual std::int64_t streams_in_front() const = 0;
  virtual std::int64_t streams_behind() const = 0;
};

/// Returns the vectors of a token behind the first `layers` layers: those behind the last such part of the last one,
/// and 1 if that has none. In front of the first layer they are those that its first part reads, as the stage that
/// embeds tokens widens them (Megatron-LM, core/transformer/transformer_block.py @d48bd6b, input_expand()).
std::int64_t streams_behind(const Model& model, std::int64_t layers);

}  // namespace manyworlds::core::workload
