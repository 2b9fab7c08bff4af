// Parts of networks of speech against plain loops over their shapes, and what ranks that share out tokens exchange.
#include <catch2/catch.hpp>

#include <numeric>

#include "core/memory/footprint.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

using I = std::int64_t;

/// A network of one part that delivers so many channels and tokens, without what may stand around it.
Model of_speech(const std::string& type, const OptionSet& own, I channels, I tokens, I heads = 1) {
  Model model = llama(1, channels, heads, heads, channels, 8);
  model.sequence = tokens;
  model.activation = Activation::gelu;
  model.biases = true;
  model.dropout = false;
  return described(model, {{branch_of(model, type, own, {BranchNorms::none, false})}}, {0});
}

std::vector<Operator> operators_of(const Model& model, const Strategy& strategy) {
  return layer_operators(model, strategy, model.layer_kind(0));
}

I parameters_of(const Model& model) {
  return layer_parameters(model, layout(1, 1, 1, 1), model.layer_kind(0)).total();
}

struct Counted {
  I forward = 0, input = 0, weights = 0;  // FLOPs forward, and of the gradients of input and of weights
};

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
/// the group and element of the window; and the weights that it reads, each once. Both gradients have the same loops.
struct Loops {
  I flops = 0, weights = 0;
};

Loops direct_convolution(I samples, I tokens, I in, I out, I kernel, I groups) {
  Loops count;
  for (I to = 0; to < out; ++to)
    for (I from = 0; from < in; ++from)
      if (from / (in / groups) == to / (out / groups))
        for (I at = 0; at < kernel; ++at) {
          ++count.weights;
          for (I sample = 0; sample < samples; ++sample)
            for (I token = 0; token < tokens; ++token) count.flops += 2;
        }
  return count;
}

I bytes_of(const OpList& ops) {
  I sum = 0;
  for (const WorkItem& work : ops)
    if (const KernelWork* kernel = work.kernel()) sum += kernel->shape.bytes;
  return sum;
}

I gathered_bytes(const OpList& ops) {
  I sum = 0;
  for (const WorkItem& work : ops)
    if (work.start() && work.start()->kind == collective::Kind::all_gather) sum += work.start()->bytes;
  return sum;
}

I saved_bytes(const std::vector<Operator>& operators) {
  return std::accumulate(operators.begin(), operators.end(), I{0},
                         [](I sum, const Operator& each) { return sum + each.saved_bytes; });
}

}  // namespace

TEST_CASE("a convolution over tokens and its gradients take the FLOPs of direct loops") {
  struct Case {
    I tokens, in, out, kernel, stride, groups;
  };
  for (const Case& c : {Case{7, 8, 16, 1, 1, 1}, Case{30, 80, 32, 3, 1, 1}, Case{15, 32, 32, 3, 2, 1},
                        Case{49, 1, 16, 10, 5, 1}, Case{20, 32, 32, 128, 1, 16}, Case{20, 16, 16, 31, 1, 16}}) {
    CAPTURE(c.tokens, c.in, c.out, c.kernel, c.stride, c.groups);
    OptionSet own{{"inputs", c.in}, {"kernel", c.kernel}, {"stride", c.stride}, {"groups", c.groups}, {"bias", false}};
    const Loops direct = direct_convolution(3, c.tokens, c.in, c.out, c.kernel, c.groups);
    const Model model = of_speech("convolution_1d", own, c.out, c.tokens);
    const Counted all = counted(operators_of(model, layout(1, 1, 3, 3)));
    CHECK(all.forward == direct.flops);
    CHECK(all.input == direct.flops);
    CHECK(all.weights == direct.flops);
    CHECK(parameters_of(model) == direct.weights);
    own["input_gradient"] = false;
    CHECK(counted(operators_of(of_speech("convolution_1d", own, c.out, c.tokens), layout(1, 1, 3, 3))).input == 0);
  }
}

TEST_CASE("biases, norms and positions of a convolution over tokens are counted") {
  const auto parameters = [](const std::string& key, const OptionValue& value) {
    OptionSet own{{"inputs", I{24}}, {"bias", false}};
    own[key] = value;
    return parameters_of(of_speech("convolution_1d", own, 64, 100));
  };
  const I weights = 24 * 64 * 3;
  CHECK(parameters("bias", false) == weights);
  CHECK(parameters("bias", true) == weights + 64);
  CHECK(parameters("norm", std::string("layer")) == weights + 2 * 64);
  CHECK(parameters("norm", std::string("group")) == weights + 2 * 64);
  CHECK(parameters("positions", std::string("fixed")) == weights);
  CHECK(parameters("positions", std::string("learned")) == weights + 100 * 64);
}

TEST_CASE("a convolution over tokens reads and writes each tensor once, and saves its input") {
  const I samples = 2, in = samples * 24 * 200, out = samples * 64 * 100, weights = 24 * 64 * 3;
  const OptionSet own{{"inputs", I{24}}, {"stride", I{2}}, {"bias", false}};
  const std::vector<Operator> all = operators_of(of_speech("convolution_1d", own, 64, 100), layout(1, 1, samples, 2));
  REQUIRE(all.size() == 1);
  CHECK(bytes_of(all[0].forward) == 2 * (in + out + weights));
  CHECK(bytes_of(all[0].backward) == 2 * (in + out + weights) + 2 * (in + out) + 8 * weights);
  CHECK(all[0].saved_bytes == 2 * in);
  OptionSet more = own;
  more["activate"] = true, more["norm"] = std::string("layer"), more["positions"] = std::string("learned");
  const std::vector<Operator> behind =
      operators_of(of_speech("convolution_1d", more, 64, 100), layout(1, 1, samples, 2));
  REQUIRE(behind.size() == 4);
  // The norm and the activation read and write, and save what they read; positions are read beside it.
  CHECK(bytes_of(behind[1].forward) == 4 * out);
  CHECK(bytes_of(behind[2].forward) == 4 * out);
  CHECK(bytes_of(behind[3].forward) == 6 * out);
  CHECK(saved_bytes(behind) == 2 * in + 2 * 2 * out);
}

TEST_CASE("convolutions of each channel by itself are bound by memory") {
  const OptionSet own{{"groups", I{64}}, {"kernel", I{9}}, {"bias", false}};
  for (const Operator& each : operators_of(of_speech("convolution_1d", own, 64, 32), layout(1, 1, 1, 1)))
    for (const OpList* ops : {&each.forward, &each.backward})
      for (const WorkItem& work : *ops) CHECK(work.kernel()->shape.kernel_class == compute::KernelClass::memory_bound);
}

TEST_CASE("ranks that share out tokens gather what windows over their border need") {
  const I tokens = 64, channels = 32, input = 2 * 2 * tokens * 16, output = 2 * tokens * channels;
  Strategy strategy = layout(4, 1, 1, 1);
  const auto layer = [&](I kernel, bool input_gradient) {
    const OptionSet own{
        {"inputs", I{16}}, {"kernel", kernel}, {"stride", I{2}}, {"bias", false}, {"input_gradient", input_gradient}};
    return operators_of(of_speech("convolution_1d", own, channels, tokens), strategy);
  };
  const I whole = counted(layer(3, true)).forward;
  CHECK(whole == direct_convolution(1, tokens, 16, channels, 3, 1).flops);  // all ranks compute all of it
  CHECK(gathered_bytes(layer(3, true)[0].forward) == 0);
  strategy.sequence_parallel = true;
  CHECK(counted(layer(3, true)).forward == whole);
  CHECK(gathered_bytes(layer(3, true)[0].forward) == input);
  CHECK(gathered_bytes(layer(3, true)[0].backward) == output);
  CHECK(gathered_bytes(layer(3, false)[0].forward) == 0);  // audio, which all ranks have
  // Windows that no border cuts: each rank computes those of its tokens.
  CHECK(gathered_bytes(layer(2, true)[0].forward) == 0);
  CHECK(counted(layer(2, true)).forward * 4 == direct_convolution(1, tokens, 16, channels, 2, 1).flops);
  const auto shares = [](I kernel) {
    return find_part_type("convolution_1d")->make({{"kernel", kernel}, {"stride", I{2}}})->shares_context();
  };
  CHECK_FALSE(shares(3));
  CHECK(shares(2));
}

TEST_CASE("parts of speech save as much more as there are more samples, and less if they recompute") {
  for (const char* type : {"convolution_1d", "conformer_convolution", "relative_attention"}) {
    CAPTURE(type);
    const Model model = of_speech(type, {}, 64, 48, 4);
    const LayerKind kind = model.layer_kind(0);
    Strategy strategy = layout(1, 1, 1, 8);
    const I one = memory::activation_bytes_per_layer(model, strategy, kind);
    strategy.recompute = Recompute::full;
    const I recomputed = memory::activation_bytes_per_layer(model, strategy, kind);
    CHECK(recomputed == 2 * 64 * 48);
    CHECK(recomputed <= one);
    const I eight = memory::activation_bytes_per_layer(model, layout(1, 1, 8, 8), kind);
    // The projection of distances is one tensor for all samples.
    const I shared = std::string(type) == "relative_attention" ? 2 * (2 * 48 - 1) * 64 : 0;
    CHECK(eight - shared == 8 * (one - shared));
  }
}

TEST_CASE("the convolution module of a Conformer takes the FLOPs of its loops and has their weights") {
  const I samples = 2, tokens = 24, h = 16;
  for (const I kernel : {9, 31}) {
    const Model model = of_speech("conformer_convolution", {{"kernel", kernel}}, h, tokens);
    const Loops in = direct_convolution(samples, tokens, h, 2 * h, 1, 1),
                depthwise = direct_convolution(samples, tokens, h, h, kernel, h),
                out = direct_convolution(samples, tokens, h, h, 1, 1);
    const I flops = in.flops + depthwise.flops + out.flops;
    const Counted all = counted(operators_of(model, layout(1, 1, samples, samples)));
    CHECK(all.forward == flops);
    CHECK(all.input == flops);
    CHECK(all.weights == flops);
    // Biases of 2 h, h and h outputs, scale and shift of the norm.
    CHECK(parameters_of(model) == in.weights + depthwise.weights + out.weights + 4 * h + 2 * h);
  }
}

TEST_CASE("attention with relative positions multiplies queries with keys and with all distances") {
  const I samples = 3, s = 20, heads = 4, d = 8, h = heads * d;
  Strategy strategy = layout(1, 1, samples, samples);
  strategy.stack.attention = AttentionKernel::unfused;
  I scores = 0, distances = 0, values = 0;
  for (I query = 0; query < s; ++query) {
    for (I key = 0; key < s; ++key) scores += 2 * d, values += 2 * d;
    for (I distance = 1 - s; distance < s; ++distance) distances += 2 * d;
  }
  const I core = samples * heads * (scores + values), positions = samples * heads * distances;
  const I matrices = 4 * 2 * samples * s * h * h, projection = 2 * (2 * s - 1) * h * h;
  const Model model = of_speech("relative_attention", {}, h, s, heads);
  const Counted all = counted(operators_of(model, strategy));
  CHECK(all.forward == matrices + projection + core + positions);
  CHECK(all.input == matrices + 2 * core + 2 * positions);  // sines of distances need no gradient
  CHECK(all.weights == matrices + projection);
  CHECK(parameters_of(model) == 5 * h * h + 4 * h + 2 * h);  // the projection of distances has no bias
}
