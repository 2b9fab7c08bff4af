// Losses in chunks: FLOPs, bytes, collectives and memory against closed forms and against the loss of all tokens.
#include <catch2/catch.hpp>
#include <map>

#include "core/memory/footprint.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

constexpr std::int64_t kHidden = 256, kTokens = 2 * 512, kVocabulary = 8'192;

Model small_model() {
  Model model = llama(4, kHidden, 8, 4, 512, kVocabulary);
  model.sequence = 512;
  return model;
}

Strategy in_chunks(std::int64_t tp, bool sequence_parallel, std::int64_t chunks) {
  Strategy strategy = layout(tp, 1, 2, 2);
  strategy.sequence_parallel = sequence_parallel;
  strategy.stack.attention = AttentionKernel::flash2;
  strategy.stack.loss_chunks = chunks;
  return strategy;
}

/// Kernels and collectives of a direction of the head.
struct Sums {
  std::int64_t gemms = 0, flops = 0, loss_bytes = 0, gradient_bytes = 0, weight_gradients = 0, weight_bytes = 0;
  std::map<collective::Kind, std::int64_t> collectives, collective_bytes;
};

Sums sums_of(const std::vector<Operator>& head, OpList Operator::*direction) {
  Sums sums;
  for (const Operator& each : head)
    for (const WorkItem& work : each.*direction) {
      if (const CollectiveStart* start = work.start())
        ++sums.collectives[start->kind], sums.collective_bytes[start->kind] += start->bytes;
      if (work.kernel() == nullptr) continue;
      const compute::Kernel& shape = work.kernel()->shape;
      sums.gemms += shape.kernel_class == compute::KernelClass::gemm ? 1 : 0;
      sums.flops += shape.flops;
      if (shape.name.starts_with("loss")) sums.loss_bytes += shape.bytes;
      if (shape.name == "hidden_gradient") sums.gradient_bytes += shape.bytes;
      if (work.computes_weight_gradient()) ++sums.weight_gradients, sums.weight_bytes += shape.bytes;
    }
  return sums;
}

std::int64_t flops_of(const Model& model, const Strategy& strategy) {
  const auto head = head_operators(model, strategy);
  return sums_of(head, &Operator::forward).flops + sums_of(head, &Operator::backward).flops;
}

}  // namespace

TEST_CASE("a loss in chunks has the FLOPs of one of all tokens, all of them in the forward pass") {
  for (const std::int64_t tp : {1, 2})
    for (const std::int64_t chunks : {2, 8, 64}) {
      CAPTURE(tp, chunks);
      const Strategy strategy = in_chunks(tp, false, chunks);
      const auto head = head_operators(small_model(), strategy);
      const Sums forward = sums_of(head, &Operator::forward);
      CHECK(forward.flops == 3 * 2 * kTokens * kHidden * kVocabulary / tp);
      CHECK(forward.flops == flops_of(small_model(), in_chunks(tp, false, 1)));
      CHECK(sums_of(head, &Operator::backward).flops == 0);
      CHECK(forward.gemms == 3 * chunks);
    }
}

TEST_CASE("one chunk is the vocabulary layer and the loss as they were") {
  std::vector<std::string_view> names;
  for (const Operator& each : head_operators(small_model(), in_chunks(1, false, 1))) names.push_back(each.name);
  CHECK(names == std::vector<std::string_view>{"final_norm", "vocabulary", "cross_entropy"});
}

TEST_CASE("every chunk reads the weight, and reads and writes its gradient, and logits move as often as in one loss") {
  for (const bool fused : {true, false})
    for (const std::int64_t chunks : {2, 4, 16}) {
      CAPTURE(fused, chunks);
      Strategy strategy = in_chunks(1, false, chunks), whole = in_chunks(1, false, 1);
      for (Strategy* one : {&strategy, &whole}) one->stack.gradient_accumulation_fusion = fused;
      const auto head = head_operators(small_model(), strategy), all = head_operators(small_model(), whole);
      const Sums forward = sums_of(head, &Operator::forward);
      const std::int64_t weight = kHidden * kVocabulary;
      // Both operands once, and the gradient: 8 bytes of an element, or 2 and another kernel's 10.
      CHECK(forward.weight_bytes == 2 * kTokens * (kHidden + kVocabulary) + chunks * (fused ? 8 : 12) * weight);
      CHECK(forward.weight_gradients == (fused ? 1 : 2) * chunks);
      CHECK(forward.loss_bytes ==
            sums_of(all, &Operator::forward).loss_bytes + sums_of(all, &Operator::backward).loss_bytes);
      // Zeros in fp32, each chunk's gradient to fp32 and to its place, all of it to 16 bits.
      CHECK(forward.gradient_bytes == (4 + 6 + 8 + 6) * kTokens * kHidden);
    }
}

TEST_CASE("hidden states are gathered once for all chunks, their gradients summed once, and each chunk sums its loss") {
  using collective::Kind;
  for (const bool sequence_parallel : {false, true}) {
    CAPTURE(sequence_parallel);
    const auto head = head_operators(small_model(), in_chunks(2, sequence_parallel, 4));
    Sums forward = sums_of(head, &Operator::forward), backward = sums_of(head, &Operator::backward);
    CHECK(forward.collectives[Kind::all_reduce] == 2 * 4);  // maximum and sum
    CHECK(forward.collective_bytes[Kind::all_reduce] == (4 + 8) * kTokens);
    CHECK(forward.collectives[Kind::all_gather] == (sequence_parallel ? 1 : 0));
    CHECK(forward.collective_bytes[Kind::all_gather] == (sequence_parallel ? 2 * kTokens * kHidden : 0));
    const Kind sum = sequence_parallel ? Kind::reduce_scatter : Kind::all_reduce;
    CHECK(backward.collectives == std::map<Kind, std::int64_t>{{sum, 1}});
    CHECK(backward.collective_bytes[sum] == 2 * kTokens * kHidden);
  }
}

TEST_CASE("a frozen head has no gradients of its weight in chunks, and a step that scores forward passes alone") {
  Model tuned = small_model();
  tuned.lora_rank = 16;
  const auto head = head_operators(tuned, in_chunks(1, false, 4));
  CHECK(sums_of(head, &Operator::forward).weight_gradients == 0);
  CHECK(sums_of(head, &Operator::forward).flops == 2 * 2 * kTokens * kHidden * kVocabulary);
  Model scored = small_model();
  scored.inference = Inference::scoring;
  for (const bool sequence_parallel : {false, true}) {
    const auto scoring = head_operators(scored, in_chunks(2, sequence_parallel, 4));
    const Sums forward = sums_of(scoring, &Operator::forward);
    CHECK(forward.gemms == 4);
    CHECK(forward.flops == 2 * kTokens * kHidden * kVocabulary / 2);
    CHECK(forward.gradient_bytes == 0);
    for (const Operator& each : scoring) CHECK(each.backward.empty());
  }
}

TEST_CASE("the weight gradients of a head in chunks are in no half of a backward pass") {
  const StageWork work = stage_work_without_costs(small_model(), in_chunks(2, true, 4), RankClass{0});
  const PartWork& head = work.of(work.chunks.front().back());
  for (const Phase& phase : head.weight_gradient)
    for (const WorkItem& item : phase.ops) CHECK(item.kernel() == nullptr);
  CHECK(head.weight_gradient_input_bytes == 0);
  CHECK(head.has_backward());
}

namespace {

/// Bytes of a step's peak where this is the loss: hidden states and their gradients in 16 bits and fp32, logits.
memory::Footprint peak_of(const Model& model, const Strategy& strategy) {
  return memory::footprint(model, strategy, round_gpu(), RankClass{0});
}

}  // namespace

TEST_CASE("a loss in chunks holds the logits of one, hidden states, and their gradient in fp32") {
  Model model = small_model();
  model.vocabulary = 32'768;  // the loss is where memory peaks
  for (const std::int64_t tp : {1, 2})
    for (const bool sequence_parallel : {false, true}) {
      if (tp == 1 && sequence_parallel) continue;
      const auto whole = peak_of(model, in_chunks(tp, sequence_parallel, 1)),
                 parts = peak_of(model, in_chunks(tp, sequence_parallel, 4));
      CAPTURE(tp, sequence_parallel);
      const std::int64_t logits = kTokens * 32'768 / tp, hidden = kTokens * kHidden;
      CHECK(whole.logits == 6 * logits);
      CHECK(parts.logits == 6 * logits / 4);
      // Saved is the gradient of all hidden states instead of the rank's own share of them.
      CHECK(parts.activations == whole.activations + 2 * hidden - 2 * hidden / (sequence_parallel ? tp : 1));
      // Besides, or in place of it before: hidden states in 16 bits and their gradient in fp32.
      CHECK(parts.working + 2 * hidden == (2 + 4) * hidden);
      CHECK(parts.weights == whole.weights);
      CHECK(parts.gradients == whole.gradients);
    }
}

TEST_CASE("with many chunks memory peaks with the gradient of the head's weight, in the forward pass") {
  Model model = small_model();
  model.vocabulary = 524'288;
  const std::int64_t logits = kTokens * 524'288, hidden = kTokens * kHidden, weight = kHidden * 524'288;
  const auto parts = peak_of(model, in_chunks(1, false, 64));
  CHECK(parts.logits == 2 * logits / 64);
  CHECK(parts.working == 4 * hidden + 2 * weight + 2 * hidden / 64);
}

TEST_CASE("a step that scores has the logits of a chunk") {
  Model model = small_model();
  model.vocabulary = 524'288;
  model.inference = Inference::scoring;
  const std::int64_t logits = kTokens * 524'288;
  CHECK(peak_of(model, in_chunks(1, false, 1)).logits == 6 * logits);
  CHECK(peak_of(model, in_chunks(1, false, 8)).logits == 6 * logits / 8);
}

TEST_CASE("a last stage with several micro-batches in flight keeps gradients of hidden states instead of logits") {
  Model model = small_model();
  model.vocabulary = 32'768;
  Strategy strategy = layout(1, 2, 2, 2 * 4);
  strategy.stack.attention = AttentionKernel::flash2;
  strategy.schedule = schedule_by_name("gpipe");
  const auto last = [&](std::int64_t chunks) {
    strategy.stack.loss_chunks = chunks;
    return memory::footprint(model, strategy, round_gpu(), RankClass{1});
  };
  const std::int64_t logits = kTokens * 32'768;
  CHECK(last(1).logits == (4 * 4 + 2) * logits);  // all four micro-batches in fp32, one in 16 bits
  CHECK(last(4).logits == 6 * logits / 4);
  CHECK(last(4).activations == last(1).activations);
}
