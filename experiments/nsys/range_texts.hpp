// What the text of a range of NVTX says it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "experiments/nsys/nccl_calls.hpp"

namespace manyworlds::experiments::nsys {

struct RangeText {
  std::optional<NcclRange> nccl;
  bool creates_communicator = false;
  std::string
      span;  // a step, an optimizer or an operator of the backward pass, as PyTorch's profiler names it; or empty
};

/// Returns what a range is: a call of NCCL; a step, of a text such as `iteration 7`, `step: 7` or `ProfilerStep#7`; or
/// what torch.autograd.profiler.emit_nvtx pushes.
RangeText range_text(std::string_view text);

}  // namespace manyworlds::experiments::nsys
