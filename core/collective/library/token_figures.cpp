#include "core/collective/library/token_figures.hpp"

#include <fmt/format.h>

namespace manyworlds::core::collective {
namespace {

constexpr double kMaxUs = 4'000, kMaxNs = 1e6, kMaxRate = 1e6;

// The unit of most rates is not GB/s alone: they are of compute units, and do not follow the links of a GPU.
constexpr const char* kUnitRate = "GB/s of a compute unit";

const TokenFigureInfo kLaunch{"launch_us", "us", "from the entry to the first row", kMaxUs, &TokenFigures::launch_us};
const TokenFigureInfo kPerLog2{"launch_per_log2_us", "us",
                               "added for each doubling of the nodes, or in a node of the experts of a rank "
                               "(low latency) or the ranks (TensorRT-LLM)",
                               kMaxUs, &TokenFigures::launch_per_log2_us};
const TokenFigureInfo kRow{"row_gb_per_s", "GB/s of a row", "rate at which the first row passes alone", kMaxRate,
                           &TokenFigures::row_gb_per_s};
const TokenFigureInfo kDestination{"destination_ns", "ns", "what a compute unit takes for each destination of a token",
                                   kMaxNs, &TokenFigures::destination_ns};
const TokenFigureInfo kDestinationRate{"destination_gb_per_s", kUnitRate,
                                       "rate at which a compute unit moves the row of each destination", kMaxRate,
                                       &TokenFigures::destination_gb_per_s};
const TokenFigureInfo kTokenRate{"token_gb_per_s", kUnitRate, "rate at which a compute unit moves a token's own row",
                                 kMaxRate, &TokenFigures::token_gb_per_s};
const TokenFigureInfo kWire{"wire_gb_per_s", "GB/s of the kernels", "rate that the kernels reach on a GPU's links",
                            kMaxRate, &TokenFigures::wire_gb_per_s};
// Kernels that fill the GPU reach a share of its links.
const TokenFigureInfo kLinkWire{"wire_gb_per_s", "GB/s", "rate that the kernels reach on a GPU's links", kMaxRate,
                                &TokenFigures::wire_gb_per_s};

}  // namespace

const std::array<TokenSetInfo, kTokenSets>& token_sets() {
  static const std::array<TokenSetInfo, kTokenSets> sets{
      TokenSetInfo{"deepep",
                   "DeepEP's normal kernels in a node",
                   {kLaunch, kRow, kDestination, kDestinationRate, kTokenRate, kWire}},
      {"deepep_between", "DeepEP's normal kernels over nodes", {kLaunch, kPerLog2, kDestinationRate, kTokenRate}},
      {"low_latency",
       "DeepEP's low-latency kernels in a node",
       {kLaunch, kPerLog2, kRow, kDestination, kTokenRate, kLinkWire}},
      {"low_latency_between", "DeepEP's low-latency kernels over nodes", {kLaunch, kPerLog2}},
      {"trtllm_two_sided",
       "TensorRT-LLM's two-sided kernels",
       {kLaunch, kPerLog2, kDestination, kTokenRate, kLinkWire}},
      {"trtllm_one_sided", "TensorRT-LLM's one-sided kernels", {kLaunch, kPerLog2, kTokenRate, kLinkWire}}};
  return sets;
}

std::string figure_name(const TokenSetInfo& set, bool combine, const TokenFigureInfo& figure) {
  return fmt::format("{}{}_{}_{}", kTokenPrefix, set.name, combine ? "combine" : "dispatch", figure.name);
}

std::string from_name(const TokenSetInfo& set) {
  return fmt::format("{}{}_from", kTokenPrefix, set.name);
}

}  // namespace manyworlds::core::collective
