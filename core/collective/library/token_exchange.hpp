// Exchanges of experts' tokens by kernels that were measured: DeepEP (github.com/deepseek-ai/DeepEP, README, "Design";
// DeepSeek-AI 2024, arXiv 2412.19437, section 3.2.2) and TensorRT-LLM's all-to-all. The network carries the rows, as in
// any exchange (algorithms/hybrid_ep.cpp); what the kernels take besides is paid before the first row.
#pragma once

#include "core/collective/library/library.hpp"

namespace manyworlds::core::collective {

/// Whose kernels exchange tokens. hybrid_ep has the figures of Calibration::dispatch_launch_us.
enum class TokenKernels : std::uint8_t { hybrid_ep, deepep, low_latency, trtllm_two_sided, trtllm_one_sided };

/// Returns the names of TokenKernels, in its order.
const std::vector<std::string>& token_kernel_names();

struct TokenExchange {
  TokenKernels kernels = TokenKernels::hybrid_ep;
  bool combine = false;        // results return to their tokens' ranks, and are added up there
  std::int64_t bytes = 0;      // that a member sends, rows for itself included
  std::int64_t row_bytes = 1;  // of a token
  double ranks_reached = 1;    // rows of a token: ranks that it goes to, or with low_latency experts
  double nodes_reached = 1;    // nodes that it goes to
  double units = 1;            // compute units that share the tokens
  double experts_of_rank = 1;

  double tokens() const;  // of a member
  /// Returns the doublings that TokenFigures::launch_per_log2_us counts.
  double doublings(std::uint32_t members, std::uint32_t nodes) const;
};

/// Returns the sets of figures that kernels need among members of one node, or of several.
std::vector<TokenSet> token_sets_of(TokenKernels kernels, bool between);

/// Returns the shape of an exchange. If the library is calibrated, it has the costs of its kernels: an exchange alone
/// takes the launch and the longer of the work of compute units and the rows' time on the wire, as fitted. Throws
/// InputError if these kernels were not measured between such members.
Shape token_exchange_shape(Library library, const Communicator& communicator, const TokenExchange& tokens);

}  // namespace manyworlds::core::collective
