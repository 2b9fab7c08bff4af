// What a layer keeps of a micro-batch from its forward to its backward pass: what runs forward again is not kept, and
// what goes to the host's memory in between is not on the GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/layer/operators.hpp"
#include "core/workload/model/modules.hpp"
#include "core/workload/strategy/cut.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

struct Keeping {
  bool input_alone = false;  // the whole layer runs again
  Modules made_again = 0;    // else these do
  Modules sent_away = 0;     // of what is kept
  auto operator<=>(const Keeping&) const = default;
};

/// Of the layer that has `place` layers before it in a chunk of pipeline rank `stage`.
Keeping keeping_of(const Strategy& strategy, std::int64_t stage, std::int64_t place);

/// Moves what a layer's operators make again from kept to remade bytes, and tells each before whose backward pass its
/// forward pass runs again: before that of the last operator that needs what it made.
void keep_less(std::vector<Operator>& layer, const Keeping& keeping, const Cut& rank);

/// Most bytes that are made again and not yet used up, going through the layer's backward pass.
std::int64_t most_remade(const std::vector<Operator>& layer);

/// Bytes of what is kept that go to the host.
std::int64_t away_bytes(const std::vector<Operator>& layer, const Keeping& keeping);

}  // namespace manyworlds::core::workload
