// Attention beside a feed-forward network: the weights, FLOPs and bytes of both in a row, and fewer collectives.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/operator_sums.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

using I = std::int64_t;
using collective::Kind;

constexpr I kHidden = 256, kTokens = 512;

Model small_gpt() {
  Model model = gpt(1, kHidden, 8, 1'024);
  model.kv_heads = 4;
  model.sequence = kTokens;
  model.position = Position::rotary;
  model.dropout = false;
  return model;
}

Model beside(const Model& model, const OptionSet& own) {
  return described(model, {{branch_of(model, "parallel_attention", own)}}, {0});
}

Model in_a_row(const Model& model) {
  return described(model, {{branch_of(model, "attention"), branch_of(model, "mlp")}}, {0});
}

std::vector<Operator> layer_of(const Model& model, I tp, bool sequence_parallel) {
  Strategy strategy = layout(tp, 1, 1, 1);
  strategy.sequence_parallel = sequence_parallel;
  return layer_operators(model, strategy, model.layer_kind(0));
}

I bytes_of(const std::vector<Operator>& operators, OpList Operator::*direction) {
  I sum = 0;
  for (const Operator& each : operators)
    for (const WorkItem& work : each.*direction)
      if (const KernelWork* kernel = work.kernel()) sum += kernel->shape.bytes;
  return sum;
}

I saved_by(const std::vector<Operator>& operators) {
  I sum = 0;
  for (const Operator& each : operators) sum += each.saved_bytes + each.attention_core_bytes;
  return sum;
}

/// Returns how many collectives of a kind there are, each of the hidden states of all tokens.
I count(const std::vector<Operator>& operators, OpList Operator::*direction, Kind kind) {
  I found = 0;
  for (const Operator& each : operators)
    for (const WorkItem& work : each.*direction)
      if (const CollectiveStart* start = work.start(); start != nullptr && start->kind == kind) {
        CHECK(start->bytes == 2 * kTokens * kHidden);
        ++found;
      }
  return found;
}

I parameters(const Model& model) {
  return layer_parameters(model, layout(1, 1, 1, 1), model.layer_kind(0)).total();
}

}  // namespace

TEST_CASE("attention beside a network has the weights and FLOPs of both in a row") {
  for (const Activation activation : {Activation::gelu, Activation::swiglu}) {
    Model model = small_gpt();
    model.activation = activation;
    const Model row = in_a_row(model);
    // A layer in a row has two norms of two vectors each, and one beside has one norm, unless the network has its own.
    CHECK(parameters(beside(model, {})) == parameters(row) - 2 * kHidden);
    CHECK(parameters(beside(model, {{"own_norm", true}})) == parameters(row));
    // Queries, keys, values and the output of attention have 256 + 2 x 128 + 256 biases.
    CHECK(parameters(beside(model, {{"own_norm", true}, {"attention_biases", false}})) == parameters(row) - 768);
    for (const bool own_norm : {false, true}) {
      const std::vector<Operator> both = layer_of(beside(model, {{"own_norm", own_norm}}), 1, false);
      CHECK(flops_of(both, &Operator::forward) == flops_of(layer_of(row, 1, false), &Operator::forward));
      CHECK(flops_of(both, &Operator::backward) == flops_of(layer_of(row, 1, false), &Operator::backward));
    }
  }
}

TEST_CASE("attention beside a network moves and saves what one norm and one sum less do") {
  const Model model = small_gpt();
  constexpr I kElements = kTokens * kHidden;
  const std::vector<Operator> row = layer_of(in_a_row(model), 1, false), one = layer_of(beside(model, {}), 1, false),
                              two = layer_of(beside(model, {{"own_norm", true}}), 1, false);
  // In a row there are two norms (4 bytes an element) and two sums with the stream (6); beside, one sum of both outputs
  // takes the place of one with the stream, and one norm is not there unless the network has it.
  CHECK(bytes_of(one, &Operator::forward) == bytes_of(row, &Operator::forward) - 4 * kElements);
  CHECK(bytes_of(two, &Operator::forward) == bytes_of(row, &Operator::forward));
  // Backward a norm takes 6 bytes and the gradient that bypassed its part 6; gradients of one input are added by 6.
  CHECK(bytes_of(one, &Operator::backward) == bytes_of(row, &Operator::backward) - 6 * kElements);
  CHECK(bytes_of(two, &Operator::backward) == bytes_of(row, &Operator::backward));
  // In a row both norms save their input, and both first matrices theirs.
  CHECK(saved_by(one) == saved_by(row) - 4 * kElements);
  CHECK(saved_by(two) == saved_by(row) - 2 * kElements);
}

TEST_CASE("tensor-parallel ranks reduce what attention and a network beside it give at once") {
  const Model model = small_gpt();
  const Model row = in_a_row(model), one = beside(model, {}), two = beside(model, {{"own_norm", true}});
  const auto forward = [](const Model& each, bool sequence_parallel, Kind kind) {
    return count(layer_of(each, 2, sequence_parallel), &Operator::forward, kind);
  };
  const auto backward = [](const Model& each, bool sequence_parallel, Kind kind) {
    return count(layer_of(each, 2, sequence_parallel), &Operator::backward, kind);
  };
  CHECK(forward(row, false, Kind::all_reduce) == 2);
  CHECK(backward(row, false, Kind::all_reduce) == 2);
  CHECK(forward(one, false, Kind::all_reduce) == 1);
  CHECK(backward(one, false, Kind::all_reduce) == 1);
  CHECK(forward(two, false, Kind::all_reduce) == 1);
  CHECK(backward(two, false, Kind::all_reduce) == 2);  // gradients behind two norms
  CHECK(forward(row, true, Kind::all_gather) == 2);
  CHECK(forward(row, true, Kind::reduce_scatter) == 2);
  CHECK(backward(row, true, Kind::all_gather) == 4);
  CHECK(backward(row, true, Kind::reduce_scatter) == 2);
  CHECK(forward(one, true, Kind::all_gather) == 1);
  CHECK(forward(one, true, Kind::reduce_scatter) == 1);
  CHECK(backward(one, true, Kind::all_gather) == 2);  // of the input and of the output's gradient
  CHECK(backward(one, true, Kind::reduce_scatter) == 1);
  CHECK(forward(two, true, Kind::all_gather) == 2);
  CHECK(forward(two, true, Kind::reduce_scatter) == 1);
  CHECK(backward(two, true, Kind::all_gather) == 3);
  CHECK(backward(two, true, Kind::reduce_scatter) == 2);
}

TEST_CASE("values of a head may have another width than its keys") {
  Model model = small_gpt();
  model.biases = false;
  const auto of_width = [&](const OptionSet& own) {
    return described(model, {{branch_of(model, "attention", own, {BranchNorms::none, false})}}, {0});
  };
  const Model narrow = of_width({{"value_head_dim", I{16}}});
  CHECK(parameters(of_width({})) == kHidden * (256 + 128 + 128 + 256));
  CHECK(parameters(narrow) == kHidden * (256 + 128 + 4 * 16 + 8 * 16));
  // Forward, matrices of all tokens, and attention over half of the pairs: 32 numbers of keys and 16 of values a head.
  Strategy fused = layout(1, 1, 1, 1);
  fused.stack.attention = AttentionKernel::cudnn;
  CHECK(flops_of(layer_operators(narrow, fused, narrow.layer_kind(0)), &Operator::forward) ==
        2 * kTokens * kHidden * (256 + 128 + 64 + 128) + 2 * (kTokens * kTokens / 2) * 8 * (32 + 16));
}

TEST_CASE("a window of attention to both sides has the pairs that a loop over its tokens counts") {
  const Model model = small_gpt();
  Strategy fused = layout(1, 1, 1, 1);
  fused.stack.attention = AttentionKernel::cudnn;
  for (const I window : {1, 65, 129, 511}) {
    Model windowed = model;
    windowed.window = window;
    const Model listed = described(model, {{branch_of(windowed, "attention", {{"causal", false}})}}, {0});
    const I side = (window - 1) / 2;
    I pairs = 0;
    for (I query = 0; query < kTokens; ++query)
      for (I key = 0; key < kTokens; ++key) pairs += std::abs(query - key) <= side ? 1 : 0;
    I flops = 0;
    for (const Operator& each : layer_operators(listed, fused, listed.layer_kind(0)))
      if (each.name == "attention") flops = each.forward.front().kernel()->shape.flops;
    CAPTURE(window);
    CHECK(flops == 2 * pairs * 8 * (32 + 32));
  }
}
