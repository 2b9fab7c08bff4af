// Kernels that are fused and chains of kernels in their place: bytes, launches, times and memory against what they read
// and write.
#include <catch2/catch.hpp>
#include <vector>

#include "core/memory/activations.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/operators/attention_core.hpp"
#include "tests/core/workload/workload_grid.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

/// Kernels of one direction: how many, how often the host launches something for them, bytes, and time.
struct Sum {
  std::int64_t kernels = 0, launches = 0, bytes = 0;
  Time ps = 0;
  Sum& operator-=(const Sum& other) {
    kernels -= other.kernels, launches -= other.launches, bytes -= other.bytes, ps -= other.ps;
    return *this;
  }
};

Sum sum(const std::vector<Operator>& operators, bool forward) {
  Sum result;
  for (const Operator& each : operators)
    for (const WorkItem& work : forward ? each.forward : each.backward) {
      const KernelWork* kernel = work.kernel();
      if (kernel == nullptr) continue;
      ++result.kernels, result.launches += kernel->launches, result.bytes += kernel->shape.bytes;
      result.ps += compute::modelled_time(kernel->shape, round_gpu());
    }
  return result;
}

/// What a layer has more without a fusion.
Sum more(const Model& model, Strategy strategy, bool Stack::*fusion, bool forward, LayerKind kind = {}) {
  const std::vector<Operator> fused = layer_operators(model, strategy, kind);
  strategy.stack.*fusion = false;
  Sum result = sum(layer_operators(model, strategy, kind), forward);
  return result -= sum(fused, forward);
}

std::int64_t kept_more(const Model& model, Strategy strategy, bool Stack::*fusion, LayerKind kind = {}) {
  const auto saved = memory::layer_bytes(model, strategy, {kind, {}, 0}).saved.bytes;
  strategy.stack.*fusion = false;
  return memory::layer_bytes(model, strategy, {kind, {}, 0}).saved.bytes - saved;
}

/// On round_gpu() a byte takes a picosecond, and a launch 2 us.
void check(const Sum& more, std::int64_t kernels, std::int64_t bytes) {
  CHECK(more.kernels == kernels);
  CHECK(more.launches == kernels);
  CHECK(more.bytes == bytes);
  CHECK(more.ps == bytes + kernels * 2 * kMicrosecond);
}

}  // namespace

TEST_CASE("a chain of kernels takes the bytes of each and a launch each, where a fused one reads and writes once") {
  const Strategy strategy = layout(2, 1, 3, 3);
  Model plain = small(false, 1), gated = small(true, 1);
  const std::int64_t plain_tokens = 3 * plain.sequence, tokens = 3 * gated.sequence;
  std::int64_t inner = plain_tokens * plain.ffn() / 2;
  check(more(plain, strategy, &Stack::bias_activation_fusion, true), 1, 4 * inner);  // the bias is added first
  check(more(plain, strategy, &Stack::bias_activation_fusion, false), 0, 0);
  CHECK(kept_more(plain, strategy, &Stack::bias_activation_fusion) == 0);
  inner = tokens * gated.ffn() / 2;
  check(more(gated, strategy, &Stack::bias_activation_fusion, true), 1, (4 + 6 - 6) * inner);
  check(more(gated, strategy, &Stack::bias_activation_fusion, false), 3, (6 + 6 + 6 + 8 - 10) * inner);
  CHECK(kept_more(gated, strategy, &Stack::bias_activation_fusion) == 2 * inner);
  gated.biases = true;
  check(more(gated, strategy, &Stack::bias_activation_fusion, true), 2, (8 + 4 + 6 - 6) * inner);

  // Twice a layer: bias, dropout and its mask, residual.
  const std::int64_t hidden = plain_tokens * plain.hidden;
  check(more(plain, strategy, &Stack::bias_dropout_fusion, true), 2 * 2, 2 * (4 + 5 + 6 - 7) * hidden);
  check(more(plain, strategy, &Stack::bias_dropout_fusion, false), 0, 0);
  plain.biases = false;
  check(more(plain, strategy, &Stack::bias_dropout_fusion, true), 2, 2 * (5 + 6 - 7) * hidden);
  plain.dropout = false;
  check(more(plain, strategy, &Stack::bias_dropout_fusion, true), 0, 0);

  const std::int64_t turned = tokens * (8 + 4) / 2 * 64;
  for (const bool forward : {true, false}) {
    check(more(gated, strategy, &Stack::rope_fusion, forward), 4, (20 - 4) * turned);
    check(more(plain, strategy, &Stack::rope_fusion, forward), 0, 0);  // learned positions
    check(more(gated, strategy, &Stack::grouped_query_fusion, forward), 1, 2 * tokens * 2 * 64 * (8 + 4) / 2);
    check(more(plain, strategy, &Stack::grouped_query_fusion, forward), 0, 0);  // nothing is shared
  }
  CHECK(kept_more(gated, strategy, &Stack::grouped_query_fusion) == 2 * tokens * 2 * 64 * (8 - 4) / 2);
}

TEST_CASE("an RMSNorm that is not fused goes through memory in fp32 kernel by kernel, a layer norm never does") {
  const Strategy strategy = layout(2, 1, 3, 3);
  Model model = small(true, 1);
  model.norm = Norm::rms_norm;
  const std::int64_t rows = 3 * model.sequence, width = model.hidden;
  // Twice a layer. Forward: a cast, a square, a mean, two kernels over rows, a product, a cast and another product.
  const std::int64_t forward = 6 + 8 + 4 + 8 + 6 + 4, row_forward = 4 + 8 + 8 + 4;
  check(more(model, strategy, &Stack::norm_fusion, true), 2 * 7, 2 * rows * ((forward - 4) * width + row_forward));
  // Backward: the weight (4) and its gradient (6 + 2), a cast (6), x (8), the root (12 + 4), the mean (4), the square
  // (8 + 8 + 12), the sum of both gradients of x (12), a cast (6); over rows the root's formula in three kernels.
  const std::int64_t backward = 4 + 6 + 2 + 6 + 8 + 12 + 4 + 4 + 8 + 8 + 12 + 12 + 6;
  const std::int64_t row_backward = 4 + 4 + 8 + 8 + 12 + 4;
  check(more(model, strategy, &Stack::norm_fusion, false), 2 * 15, 2 * rows * ((backward - 6) * width + row_backward));
  // In memory are x in fp32 and what is multiplied by the weight, instead of x, and a root for each row.
  CHECK(kept_more(model, strategy, &Stack::norm_fusion) == 2 * rows * (4 * width + 4));
  // Heads of queries and keys have norms of their own.
  Model with_heads = model;
  with_heads.query_key_norm = true;
  const std::int64_t heads = rows * (8 + 4) / 2, head_width = 64;
  Sum added = more(with_heads, strategy, &Stack::norm_fusion, true);
  added -= more(model, strategy, &Stack::norm_fusion, true);
  check(added, 7, heads * ((forward - 4) * head_width + row_forward));
  model.norm = Norm::layer_norm;
  check(more(model, strategy, &Stack::norm_fusion, true), 0, 0);
  check(more(model, strategy, &Stack::norm_fusion, false), 0, 0);
}

TEST_CASE("gradients of weights that GEMMs do not add up are written, read and added in fp32: 4 bytes more a weight") {
  const Model model = small(true, 1);
  const Strategy strategy = layout(2, 1, 1, 1);
  const std::int64_t attention = 512 * (8 + 2 * 4) * 64 + 512 * 512, feed_forward = 3 * 512 * model.ffn();
  const Sum added = more(model, strategy, &Stack::gradient_accumulation_fusion, false);
  CHECK(added.kernels == 4);  // of queries, keys and values; output; up; down
  CHECK(added.bytes == (2 - 8 + 10) * (attention + feed_forward) / 2);
  check(more(model, strategy, &Stack::gradient_accumulation_fusion, true), 0, 0);
  // The largest of them in 16 bits is in memory for a moment.
  Strategy apart = strategy;
  apart.stack.gradient_accumulation_fusion = false;
  CHECK(memory::layer_bytes(model, apart, {}).working - memory::layer_bytes(model, strategy, {}).working ==
        2 * 2 * 512 * model.ffn() / 2);
}

TEST_CASE("tokens are put in order by index where permuting is not fused, and routers launch 72 kernels, not 31") {
  Model model = small(true, 1);
  model.experts = 8, model.experts_per_token = 2, model.expert_ffn_hidden = 256;
  Strategy strategy = layout(1, 1, 1, 4);
  strategy.dp = strategy.ep = 4;
  const LayerKind kind{.experts = true};
  const std::int64_t tokens = model.sequence, copies = 2 * tokens, h = 512, map = 8 * tokens;
  const std::int64_t fused = 2 * (tokens + copies) * h, gathered = 4 * copies * h;
  const std::int64_t added = 2 * tokens * h + 6 * copies * h;  // rows of zeros, and what is added to them
  check(more(model, strategy, &Stack::permute_fusion, true, kind), 3,
        2 * map + 9 * map + 8 * copies + gathered + added - 2 * fused);
  check(more(model, strategy, &Stack::permute_fusion, false, kind), 1, gathered + added - 2 * fused);
  const Sum router = more(model, strategy, &Stack::router_fusion, true, kind);
  CHECK(router.launches == 72 - 31);
  CHECK(router.bytes == 0);
  // The sigmoids of the unfused SwiGLU, and its result before it is weighted by the tokens' probabilities.
  CHECK(kept_more(model, strategy, &Stack::bias_activation_fusion, kind) == 2 * 2 * copies * 256);
}

TEST_CASE("projections of their own read their common input once each, and add the gradients of it") {
  const Model gated = small(true, 1), plain = small(false, 1);
  const Strategy strategy = layout(2, 1, 3, 3);
  const std::int64_t input = 3 * gated.sequence * gated.hidden;
  const Sum forward = more(gated, strategy, &Stack::projection_fusion, true);
  CHECK(forward.kernels == 3);  // keys, values, gate
  CHECK(forward.bytes == 3 * 2 * input);
  const Sum backward = more(gated, strategy, &Stack::projection_fusion, false);
  CHECK(backward.kernels == 3 * 3);  // a gradient of weights and of the input, and a sum
  CHECK(backward.bytes == 3 * (2 + 2 + 6) * input);
  CHECK(more(plain, strategy, &Stack::projection_fusion, true).kernels == 2);
  CHECK(kept_more(gated, strategy, &Stack::projection_fusion) == 0);
}

TEST_CASE("where the sequence is not the first dimension, what is gathered or scattered over it is copied") {
  const Model model = small(true, 1);
  Strategy strategy = layout(2, 1, 3, 3);
  check(more(model, strategy, &Stack::sequence_first, true), 0, 0);
  strategy.sequence_parallel = true;
  const std::int64_t copy = 4 * 3 * model.sequence * model.hidden;
  // Forward the inputs of two GEMMs and the outputs of two; backward gradients of all four, and the two inputs again.
  check(more(model, strategy, &Stack::sequence_first, true), 4, 4 * copy);
  check(more(model, strategy, &Stack::sequence_first, false), 6, 6 * copy);
  // Async TP gathers in place and adds up parts; gradients of the inputs of two column-parallel GEMMs are not
  // overlapped.
  strategy.stack.overlap_tensor = true;
  check(more(model, strategy, &Stack::sequence_first, true), 2, 2 * (copy / 2 + copy / 4));
  check(more(model, strategy, &Stack::sequence_first, false), 4, 4 * copy);
}

TEST_CASE("a loss by PyTorch's kernels takes 14 and 22 bytes a logit, and 38 both ways over a sharded vocabulary") {
  const Model model = small(true, 1);
  for (const std::int64_t tp : {1, 2})
    for (const bool forward : {true, false}) {
      Strategy fused = layout(tp, 1, 3, 3), apart = fused;
      apart.stack.cross_entropy_fusion = false;
      const RankShapes shapes = rank_shapes(model, fused);
      Sum more = sum(head_operators(model, apart), forward);
      more -= sum(head_operators(model, fused), forward);
      const std::int64_t bytes = tp == 2 ? 38 : forward ? 14 : 22;
      CAPTURE(tp, forward);
      CHECK(more.bytes == (bytes - (forward ? 14 : 6)) * shapes.logits() - (forward ? 12 * shapes.tokens : 0));
    }
}

TEST_CASE("a masked softmax by PyTorch's kernels takes 36 and 40 bytes a score, 4 and 6 as one kernel") {
  Model model = small(true, 1);
  const Strategy strategy = layout(2, 1, 1, 1);
  REQUIRE(strategy.stack.attention == AttentionKernel::unfused);
  const RankShapes shapes = rank_shapes(model, strategy);
  const std::int64_t scores = shapes.samples * shapes.heads * shapes.sequence * shapes.keys;
  for (const bool dropout : {false, true}) {
    model.dropout = dropout;
    // A cast (2 + 4), scale, mask and softmax in fp32 (8 each), a cast (4 + 2).
    check(more(model, strategy, &Stack::masked_softmax_fusion, true), 4, (6 + 3 * 8 + 6 - 4) * scores);
    // Each has a gradient; that of the softmax reads its result as well.
    check(more(model, strategy, &Stack::masked_softmax_fusion, false), 4, (6 + 12 + 2 * 8 + 6 - 6) * scores);
    // The softmax's result is kept in fp32; in 16 bits as well, where no dropout keeps a product of it.
    CHECK(kept_more(model, strategy, &Stack::masked_softmax_fusion) == (dropout ? 2 : 4) * scores);
    // Backward: two gradients in 16 bits; one by one the first is in fp32 as well, and the second in fp32 alone.
    RankShapes one_by_one = shapes;
    one_by_one.stack.masked_softmax_fusion = false;
    CHECK(score_working_bytes(shapes) == 2 * 2 * scores);
    CHECK(score_working_bytes(one_by_one) == (2 + 4 + 4) * scores);
  }
}

TEST_CASE("Adam by its operations moves 88 bytes a parameter, 30 as one kernel") {
  Strategy strategy = layout(1, 1, 1, 1);
  const auto bytes = [&] {
    std::int64_t sum = 0;
    for (const compute::Kernel& kernel : optimizer_kernels(strategy, {1'000, 0})) sum += kernel.bytes;
    return sum;
  };
  CHECK(bytes() == (4 + 30 + 4) * 1'000);
  strategy.stack.optimizer_fusion = false;
  CHECK(bytes() == (4 + 88 + 4) * 1'000);
}
