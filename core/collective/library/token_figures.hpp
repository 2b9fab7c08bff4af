// Measured constants of the kernels that exchange experts' tokens: DeepEP's and TensorRT-LLM's. token_exchange.hpp has
// the times that follow from them, docs/model/collectives.md the equation.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::core::collective {

/// Sets of kernels that were measured apart: inside a node, and between nodes.
enum class TokenSet : std::uint8_t {
  deepep,
  deepep_between,
  low_latency,
  low_latency_between,
  trtllm_two_sided,
  trtllm_one_sided
};
inline constexpr std::size_t kTokenSets = 6;

/// The constants of one direction. A rate of 0 means that the step is free; a launch of 0 that nothing was measured.
struct TokenFigures {
  double launch_us = 0;
  double launch_per_log2_us = 0;    // for each doubling: see TokenExchange::doublings
  double row_gb_per_s = 0;          // rate at which the first row passes, which nothing overlaps
  double destination_ns = 0;        // of a compute unit for each destination of a token
  double destination_gb_per_s = 0;  // of a compute unit, for each destination's copy of a row
  double token_gb_per_s = 0;        // of a compute unit, for a token's own row
  double wire_gb_per_s = 0;         // that the kernels reach on a GPU's links inside the node; 0: what the library does
  bool operator==(const TokenFigures&) const = default;
};

struct TokenKernelFigures {
  TokenFigures dispatch, combine;
  std::string from;  // the GPU whose values these are; empty: this GPU
  bool operator==(const TokenKernelFigures&) const = default;
};
using TokenCalibration = std::array<TokenKernelFigures, kTokenSets>;

struct TokenFigureInfo {
  const char *name, *unit, *help;
  double maximum;
  double TokenFigures::*member;
};

struct TokenSetInfo {
  const char *name, *help;
  std::vector<TokenFigureInfo> figures;  // those that were measured
};

/// Returns the sets in the order of TokenSet.
const std::array<TokenSetInfo, kTokenSets>& token_sets();

inline constexpr std::string_view kTokenPrefix = "library_tokens_";  // of all names of options here
/// Returns the name of a figure's option: "library_tokens_deepep_dispatch_launch_us", …
std::string figure_name(const TokenSetInfo& set, bool combine, const TokenFigureInfo& figure);
/// Returns the name of the option that has the lender: "library_tokens_deepep_from", …
std::string from_name(const TokenSetInfo& set);

}  // namespace manyworlds::core::collective
