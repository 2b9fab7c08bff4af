// Parts of convolutional networks against plain loops over their shapes, and what fusion and replicas change.
#include <catch2/catch.hpp>

#include <numeric>

#include "core/memory/activations.hpp"
#include "core/memory/footprint.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/vision/vision_parts.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

using I = std::int64_t;

/// A network of one part whose output has so many channels, rows and columns.
Model of_images(const std::string& type, const OptionSet& own, I channels, I rows) {
  Model model = llama(1, channels, 1, 1, channels, 8);
  model.sequence = rows * rows;
  model.biases = false;
  model.dropout = false;
  return described(model, {{branch_of(model, type, own, {BranchNorms::none, false})}}, {0});
}

std::vector<Operator> operators_of(const Model& model, const Strategy& strategy) {
  return layer_operators(model, strategy, model.layer_kind(0));
}

struct Counted {
  I forward = 0, input = 0, weights = 0;  // FLOPs forward, and of the gradients of input and of weights
};

/// What kernels of these operators count as FLOPs.
Counted counted(const std::vector<Operator>& operators) {
  Counted sum;
  for (const Operator& each : operators) {
    for (const WorkItem& work : each.forward)
      if (const KernelWork* kernel = work.kernel()) sum.forward += kernel->shape.flops;
    for (const WorkItem& work : each.backward)
      if (const KernelWork* kernel = work.kernel())
        (kernel->weight_gradient ? sum.weights : sum.input) += kernel->shape.flops;
  }
  return sum;
}

/// A convolution by its loops, zeros at the borders included: one product and one sum for each output, input channel of
/// the group and element of the window. Both gradients have the same loops.
I direct_convolution(I samples, I rows, I in, I out, I kernel, I groups) {
  I count = 0;
  for (I sample = 0; sample < samples; ++sample)
    for (I y = 0; y < rows; ++y)
      for (I x = 0; x < rows; ++x)
        for (I to = 0; to < out; ++to)
          for (I from = 0; from < in; ++from)
            if (from / (in / groups) == to / (out / groups))
              for (I dy = 0; dy < kernel; ++dy)
                for (I dx = 0; dx < kernel; ++dx) count += 2;
  return count;
}

I bytes_of(const OpList& ops) {
  I sum = 0;
  for (const WorkItem& work : ops)
    if (const KernelWork* kernel = work.kernel()) sum += kernel->shape.bytes;
  return sum;
}

std::vector<CollectiveStart> collectives_of(const OpList& ops) {
  std::vector<CollectiveStart> all;
  for (const WorkItem& work : ops)
    if (work.start()) all.push_back(*work.start());
  return all;
}

}  // namespace

TEST_CASE("a convolution and its gradients take the FLOPs of direct loops") {
  struct Case {
    I rows, in, out, kernel, stride, groups;
  };
  for (const Case& c : {Case{7, 8, 16, 1, 1, 1}, Case{6, 8, 16, 3, 1, 1}, Case{4, 3, 8, 7, 2, 1},
                        Case{5, 8, 24, 3, 2, 4}, Case{6, 16, 16, 3, 1, 16}, Case{4, 16, 32, 1, 2, 2}}) {
    CAPTURE(c.rows, c.in, c.out, c.kernel, c.stride, c.groups);
    OptionSet own{{"inputs", c.in}, {"kernel", c.kernel}, {"stride", c.stride}, {"groups", c.groups}, {"bias", false}};
    const Strategy strategy = layout(1, 1, 3, 3);
    const I direct = direct_convolution(3, c.rows, c.in, c.out, c.kernel, c.groups);
    const Counted all = counted(operators_of(of_images("convolution", own, c.out, c.rows), strategy));
    CHECK(all.forward == direct);
    CHECK(all.input == direct);
    CHECK(all.weights == direct);
    own["input_gradient"] = false;
    CHECK(counted(operators_of(of_images("convolution", own, c.out, c.rows), strategy)).input == 0);
  }
}

TEST_CASE("a convolution reads and writes each tensor once, whatever its windows") {
  const auto bytes = [](I kernel, I stride, I groups) {
    const OptionSet own{{"inputs", I{32}}, {"kernel", kernel}, {"stride", stride}, {"groups", groups}, {"bias", false}};
    const std::vector<Operator> all = operators_of(of_images("convolution", own, 64, 14), layout(1, 1, 1, 1));
    return std::pair(bytes_of(all.at(0).forward), bytes_of(all[0].backward));
  };
  const I in = 32 * 14 * 14, out = 64 * 14 * 14;
  for (const I kernel : {1, 3, 7}) {
    const I weights = 32 * 64 * kernel * kernel;
    CHECK(bytes(kernel, 1, 1).first == 2 * (in + out + weights));
    // The input's gradient as often; that of the weights reads input and gradient, and adds to fp32.
    CHECK(bytes(kernel, 1, 1).second == 2 * (in + out + weights) + 2 * (in + out) + 8 * weights);
    CHECK(bytes(kernel, 1, 32).first == 2 * (in + out + weights / 32));
  }
  // Of two rows and columns a window of one sees one, but the gradient has all.
  CHECK(bytes(1, 2, 1).first == 2 * (in + out + 32 * 64));
  CHECK(bytes(3, 2, 1).first == 2 * (4 * in + out + 9 * 32 * 64));
  CHECK(bytes(1, 2, 1).second == 2 * (4 * in + out + 32 * 64) + 2 * (in + out) + 8 * 32 * 64);
}

TEST_CASE("convolutions that see one channel each are bound by memory") {
  const OptionSet own{{"groups", I{64}}, {"bias", false}};
  for (const Operator& each : operators_of(of_images("convolution", own, 64, 14), layout(1, 1, 1, 1)))
    for (const OpList* ops : {&each.forward, &each.backward})
      for (const WorkItem& work : *ops) CHECK(work.kernel()->shape.kernel_class == compute::KernelClass::memory_bound);
}

TEST_CASE("fusion takes biases, sums and ReLU out of memory") {
  Strategy fused = layout(1, 1, 1, 1), separate = fused;
  separate.stack.bias_activation_fusion = false;
  separate.stack.norm_fusion = false;
  const I elements = 64 * 14 * 14;
  const auto bytes = [&](const Model& model, const Strategy& strategy, OpList Operator::*direction) {
    I sum = 0;
    for (const Operator& each : operators_of(model, strategy)) sum += bytes_of(each.*direction);
    return sum;
  };
  const Model norm = of_images("batch_norm", {{"activate", true}}, 64, 14);
  CHECK(bytes(norm, fused, &Operator::forward) == 6 * elements);
  CHECK(bytes(norm, fused, &Operator::backward) == 10 * elements);
  CHECK(bytes(norm, separate, &Operator::forward) == (6 + 4) * elements);
  CHECK(bytes(norm, separate, &Operator::backward) == (10 + 6) * elements);
  const Model summed = of_images("batch_norm", {{"activate", true}, {"summed_before", true}}, 64, 14);
  CHECK(bytes(summed, fused, &Operator::forward) == 4 * elements);
  CHECK(bytes(summed, fused, &Operator::backward) == 10 * elements);
  const Model convolution = of_images("convolution", {{"activate", true}}, 64, 14);
  CHECK(bytes(convolution, separate, &Operator::forward) - bytes(convolution, fused, &Operator::forward) ==
        (4 + 4) * elements);
}

TEST_CASE("a bottleneck is its convolutions and batch norms") {
  // conv3's first block of ResNet-50: 256 channels of 56 x 56 become 512 of 28 x 28.
  const Strategy strategy = layout(1, 1, 2, 2);
  const Model block = of_images("bottleneck", {{"inputs", I{256}}, {"stride", I{2}}}, 512, 28);
  const auto part = [&](const std::string& type, const OptionSet& own, I channels, I rows) {
    return of_images(type, own, channels, rows);
  };
  const auto convolution = [&](I in, I out, I kernel, I stride, I rows) {
    return part("convolution", {{"inputs", in}, {"kernel", kernel}, {"stride", stride}, {"bias", false}}, out, rows);
  };
  const std::vector<Model> parts{convolution(256, 128, 1, 1, 56), convolution(128, 128, 3, 2, 28),
                                 convolution(128, 512, 1, 1, 28), convolution(256, 512, 1, 2, 28),
                                 part("batch_norm", {}, 128, 56), part("batch_norm", {}, 128, 28),
                                 part("batch_norm", {}, 512, 28), part("batch_norm", {}, 512, 28)};
  Counted sum;
  I parameters = 0, forward = 0, backward = 0, saved = 0;
  for (const Model& each : parts) {
    const std::vector<Operator> operators = operators_of(each, strategy);
    const Counted one = counted(operators);
    sum.forward += one.forward, sum.input += one.input, sum.weights += one.weights;
    for (const Operator& op : operators) forward += bytes_of(op.forward), backward += bytes_of(op.backward);
    for (const Operator& op : operators) saved += op.saved_bytes;
    parameters += layer_parameters(each, strategy, each.layer_kind(0)).total();
  }
  const std::vector<Operator> operators = operators_of(block, strategy);
  const Counted all = counted(operators);
  CHECK(all.forward == sum.forward);
  CHECK(all.input == sum.input);
  CHECK(all.weights == sum.weights);
  CHECK(layer_parameters(block, strategy, block.layer_kind(0)).total() == parameters);
  I block_forward = 0, block_backward = 0, block_saved = 0;
  for (const Operator& op : operators) {
    block_forward += bytes_of(op.forward), block_backward += bytes_of(op.backward);
    block_saved += op.saved_bytes;
  }
  const I output = 2 * 512 * 28 * 28, input = 2 * 256 * 56 * 56;  // elements of two samples
  CHECK(block_forward == forward + 2 * output);                   // the sum's second input
  CHECK(block_backward == backward + 2 * output + 6 * input);     // its gradient, and the sum of both of the input
  CHECK(block_saved == saved - 2 * input);                        // which the projection shares
}

TEST_CASE("the stride of a bottleneck is that of its first convolution in the paper") {
  const auto forward = [](bool first) {
    const OptionSet own{{"inputs", I{256}}, {"stride", I{2}}, {"stride_first", first}};
    return counted(operators_of(of_images("bottleneck", own, 512, 28), layout(1, 1, 1, 1))).forward;
  };
  CHECK(forward(false) - forward(true) == 2 * 3 * 28 * 28 * 256 * 128);
}

TEST_CASE("synchronised batch norms exchange two numbers a channel in both directions") {
  const Model model = of_images("batch_norm", {{"synchronised", true}}, 64, 14);
  Strategy strategy = layout(1, 1, 2, 16);
  CHECK(collectives_of(operators_of(model, strategy).at(0).forward).empty());
  strategy.dp = 8;
  const Operator norm = operators_of(model, strategy).at(0);
  const std::vector<CollectiveStart> forward = collectives_of(norm.forward), backward = collectives_of(norm.backward);
  REQUIRE(forward.size() == 1);
  CHECK(forward[0].kind == collective::Kind::all_gather);
  CHECK(forward[0].role == Role::data);
  CHECK(forward[0].bytes == 8 * 2 * 4 * 64);
  REQUIRE(backward.size() == 1);
  CHECK(backward[0].kind == collective::Kind::all_reduce);
  CHECK(backward[0].bytes == 2 * 4 * 64);
  CHECK(bytes_of(norm.forward) == 6 * 2 * 64 * 14 * 14);
}

TEST_CASE("pooling reads windows, and finds maxima again") {
  const auto pooled = [](const std::string& of, I kernel, I stride) {
    const OptionSet own{{"of", of}, {"kernel", kernel}, {"stride", stride}};
    return operators_of(of_images("pooling", own, 64, 14), layout(1, 1, 1, 1)).at(0);
  };
  const I out = 64 * 14 * 14, in = 4 * out;
  const Operator maximum = pooled("max", 3, 2), mean = pooled("average", 2, 2), sparse = pooled("average", 1, 2);
  CHECK(bytes_of(maximum.forward) == 2 * (in + out));
  CHECK(bytes_of(maximum.backward) == 4 * (in + out));
  CHECK(maximum.saved_bytes == 2 * in);
  CHECK(bytes_of(mean.backward) == 2 * (in + out));
  CHECK(mean.saved_bytes == 0);
  CHECK(bytes_of(sparse.forward) == 4 * out);
}

TEST_CASE("parts of images save as much more as there are more samples, and less if they recompute") {
  for (const char* type : {"convolution", "batch_norm", "pooling", "bottleneck"}) {
    CAPTURE(type);
    const Model model = of_images(type, {}, 64, 16);
    const LayerKind kind = model.layer_kind(0);
    const I one = memory::activation_bytes_per_layer(model, layout(1, 1, 1, 8), kind);
    CHECK(one > 0);
    CHECK(memory::activation_bytes_per_layer(model, layout(1, 1, 8, 8), kind) == 8 * one);
    Strategy recomputed = layout(1, 1, 1, 8);
    recomputed.recompute = Recompute::full;
    CHECK(memory::activation_bytes_per_layer(model, recomputed, kind) <= one);
  }
}

TEST_CASE("a recomputed layer keeps the tensor that its first part reads, and recomputes what it would save besides") {
  // conv3 of ResNet-50: 28 x 28 positions of 512 channels, from the 56 x 56 of 256 channels of conv2.
  struct Layer {
    const char* type;
    OptionSet own;
    I input;      // elements of a sample
    bool unread;  // its backward pass needs nothing of its input
  };
  const I samples = 4, wide = 56 * 56, narrow = 28 * 28;
  const std::vector<Layer> layers = {
      {"bottleneck", {{"inputs", I{256}}, {"stride", I{2}}}, 256 * wide, false},
      {"bottleneck", {}, 512 * narrow, false},
      {"bottleneck", {{"inputs", I{256}}}, 256 * narrow, false},
      {"convolution", {{"inputs", I{3}}, {"stride", I{2}}}, 3 * wide, false},
      {"pooling", {{"of", std::string("max")}}, 512 * wide, false},
      {"pooling", {{"of", std::string("average")}}, 512 * wide, true},
  };
  for (const Layer& layer : layers) {
    CAPTURE(layer.type, layer.input);
    const Model model = of_images(layer.type, layer.own, 512, 28);
    Strategy strategy = layout(1, 1, samples, 8);
    const auto bytes_of_layer = [&] {
      return memory::layer_bytes(model, strategy, {model.layer_kind(0), activation_policy(strategy, 0, 0, 0)});
    };
    const memory::LayerBytes whole = bytes_of_layer();
    strategy.recompute = Recompute::full;
    const memory::LayerBytes recomputed = bytes_of_layer();
    CHECK(recomputed.saved.bytes == 2 * samples * layer.input);
    CHECK(recomputed.recomputed == whole.saved.bytes - (layer.unread ? 0 : 2 * samples * layer.input));
  }
}

TEST_CASE("convolutions that take over norms leave the sum at the end of a bottleneck") {
  const auto block = [](const std::string& fused) {
    return operators_of(of_images("bottleneck", {{"fused_norms", fused}}, 256, 14), layout(1, 1, 1, 1));
  };
  const auto forward = [](const std::vector<Operator>& operators) {
    I sum = 0;
    for (const Operator& each : operators) sum += bytes_of(each.forward);
    return sum;
  };
  const auto saved = [](const std::vector<Operator>& operators) {
    return std::accumulate(operators.begin(), operators.end(), I{0},
                           [](I sum, const Operator& each) { return sum + each.saved_bytes; });
  };
  const I inner = 64 * 14 * 14, output = 256 * 14 * 14;
  const I separate = forward(block("none"));
  CHECK(separate - forward(block("statistics")) == 2 * (2 * inner + output));
  CHECK(separate - forward(block("forward")) == 6 * 2 * inner + 2 * output);
  CHECK(saved(block("none")) == saved(block("statistics")));
  CHECK(saved(block("none")) - saved(block("forward")) == 2 * 2 * inner);
}
