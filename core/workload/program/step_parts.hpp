// The parts that the time of a compute stream is made of, in one table: what accounts, results, columns, pictures and
// the energy model know of them. A new part is a line here, and the place that accounts time to it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace manyworlds::core::workload {

/// Every instant of a step counts as one part. `host`: no kernel runs because the host has not launched the next one
/// yet. `slowed`: the extra time of kernels that run concurrently with collectives. exposed_*: waiting for
/// communication of one parallel dimension, or for copies from and to host memory. `kernels` and `exposed_other` are of
/// given programs: kernels of no known pass, and communication of no known dimension. `bubble`: waiting for a pipeline
/// neighbour or for the end of the step. `stall`: waiting for the slowest member of a collective.
enum class StepPart : std::uint8_t {
  forward,
  backward,
  recompute,
  optimizer,
  kernels,
  host,
  slowed,
  exposed_tp,
  exposed_dp,
  exposed_pp,
  exposed_cp,
  exposed_ep,
  exposed_other,
  exposed_offload,
  bubble,
  stall
};

/// What a GPU does during a part, which determines its power.
enum class Activity : std::uint8_t { kernels, optimizer, communication, waiting };

struct StepPartInfo {
  StepPart part;
  std::string_view column;  // the name, then "_s"
  Activity activity;
  const char* colour;  // in pictures; distinguishable from its neighbours on light and dark backgrounds
  const char* description;
  constexpr std::string_view name() const { return column.substr(0, column.size() - 2); }
};

inline constexpr std::array kStepParts{
    StepPartInfo{StepPart::forward, "forward_s", Activity::kernels, "#2f6db3", "forward kernels"},
    StepPartInfo{StepPart::backward, "backward_s", Activity::kernels, "#6fa8e6", "backward kernels"},
    StepPartInfo{StepPart::recompute, "recompute_s", Activity::kernels, "#17a2a2",
                 "forward kernels run again for the backward pass"},
    StepPartInfo{StepPart::optimizer, "optimizer_s", Activity::optimizer, "#8a7fd6", "optimizer kernels"},
    StepPartInfo{StepPart::kernels, "kernels_s", Activity::kernels, "#5b8c5a",
                 "kernels of a given program, of no known pass"},
    StepPartInfo{StepPart::host, "host_s", Activity::waiting, "#9aa0a6",
                 "waiting for the host to launch the next kernel"},
    StepPartInfo{StepPart::slowed, "slowed_s", Activity::kernels, "#c9a227",
                 "extra time of kernels during collectives"},
    StepPartInfo{StepPart::exposed_tp, "exposed_tp_s", Activity::communication, "#d1603d",
                 "compute waited for tensor-parallel communication"},
    StepPartInfo{StepPart::exposed_dp, "exposed_dp_s", Activity::communication, "#b0413e",
                 "compute waited for data-parallel communication"},
    StepPartInfo{StepPart::exposed_pp, "exposed_pp_s", Activity::communication, "#e8a15c",
                 "compute waited for pipeline communication"},
    StepPartInfo{StepPart::exposed_cp, "exposed_cp_s", Activity::communication, "#c77dbb",
                 "compute waited for context-parallel communication"},
    StepPartInfo{StepPart::exposed_ep, "exposed_ep_s", Activity::communication, "#8c4f9f",
                 "compute waited for expert-parallel communication"},
    StepPartInfo{StepPart::exposed_other, "exposed_other_s", Activity::communication, "#a0527a",
                 "compute waited for communication of a given program, of no known dimension"},
    StepPartInfo{StepPart::exposed_offload, "exposed_offload_s", Activity::waiting, "#8fb39a",
                 "compute waited for activations to go to the host or to come back"},
    StepPartInfo{StepPart::bubble, "bubble_s", Activity::waiting, "#57a773",
                 "compute waited for a pipeline neighbour or the end of the step"},
    StepPartInfo{StepPart::stall, "stall_s", Activity::waiting, "#7a6048",
                 "compute waited for the slowest member of a collective"},
};
static_assert([] {
  for (std::size_t i = 0; i < kStepParts.size(); ++i)
    if (static_cast<std::size_t>(kStepParts[i].part) != i || !kStepParts[i].column.ends_with("_s")) return false;
  return true;
}());

/// A value for each part, in the order of kStepParts.
template <class T>
class ByPart {
 public:
  constexpr T& operator[](StepPart part) { return values_[static_cast<std::size_t>(part)]; }
  constexpr const T& operator[](StepPart part) const { return values_[static_cast<std::size_t>(part)]; }
  constexpr auto begin() { return values_.begin(); }
  constexpr auto begin() const { return values_.begin(); }
  constexpr auto end() { return values_.end(); }
  constexpr auto end() const { return values_.end(); }
  static constexpr std::size_t size() { return kStepParts.size(); }
  bool operator==(const ByPart&) const = default;

 private:
  std::array<T, kStepParts.size()> values_{};
};

constexpr std::string_view name_of(StepPart part) {
  return kStepParts[static_cast<std::size_t>(part)].name();
}

}  // namespace manyworlds::core::workload
