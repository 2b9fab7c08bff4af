// What a sequence other than the described one makes of models of several networks.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <map>
#include <string>

#include "core/workload/model/architecture.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using Catch::Contains;

namespace {

std::string spec_of(const std::string& model) {
  return fmt::format(
      "base:\n  model: {}\n  cluster: {{gpu: h100_sxm, nodes: 1, gpus_per_node: 8}}\n"
      "  strategy: {{micro_batch: 1, global_batch: 8, zero: 1}}\n",
      model);
}

/// Tokens of the networks of the first experiment.
std::map<std::string, std::int64_t> tokens_of(const Sweep& sweep, std::size_t index = 0) {
  std::map<std::string, std::int64_t> tokens;
  const auto architecture = sweep.experiments.at(index).config().configuration.model.architecture;
  for (const core::workload::Block& block : architecture->blocks)
    tokens[block.name.substr(0, block.name.find('.'))] = block.branches.front().model->sequence;
  return tokens;
}

std::map<std::string, std::int64_t> tokens_at(const std::string& model, std::int64_t sequence) {
  return tokens_of(read(spec_of(fmt::format("{{like: {}, sequence: {}}}", model, sequence))));
}

std::string refusal_at(const std::string& model, std::int64_t sequence) {
  return error_of(spec_of(fmt::format("{{like: {}, sequence: {}}}", model, sequence)));
}

using Tokens = std::map<std::string, std::int64_t>;

}  // namespace

TEST_CASE("networks of joined tokens have those of the text and of the model's sequence") {
  CHECK(tokens_at("flux.1-dev", 4096) == Tokens{{"text", 512}, {"image", 4096}, {"joint", 4608}, {"output", 4096}});
  CHECK(tokens_at("flux.1-dev", 1024) == Tokens{{"text", 512}, {"image", 1024}, {"joint", 1536}, {"output", 1024}});
  const Sweep sweep = read(spec_of("flux.1-schnell") + "axes: {model.sequence: [1024, 4096, 256]}\n");
  const auto text = tokens_of(sweep).at("text");
  for (const auto& [index, image] : {std::pair(0, 1024), {1, 4096}, {2, 256}})
    CHECK(tokens_of(sweep, static_cast<std::size_t>(index)) ==
          Tokens{{"text", text}, {"image", image}, {"joint", text + image}, {"output", image}});
  CHECK_THAT(sweep.assumed,
             Contains(fmt::format("networks that keep their tokens, whatever model.sequence is: text {}", text)));
}

TEST_CASE("a described sequence leaves the description as it is") {
  const Sweep given = read(spec_of("{like: flux.1-dev, sequence: 4096}")), own = read(spec_of("flux.1-dev"));
  CHECK(given.experiments[0].settings == own.experiments[0].settings);
  CHECK(given.assumed == own.assumed);
  CHECK(own.assumed.find("networks") == std::string::npos);
}

TEST_CASE("networks before strides have the samples that these read") {
  // Baevski et al. 2020, section 4.2: 250,000 samples of audio give 781 frames; windows without padding need
  // (n - 1) x stride + kernel tokens for n. Kernels 10, 3, 3, 3, 3, 2, 2 and strides 5, 2, 2, 2, 2, 2, 2.
  std::int64_t frames = 1500;
  Tokens expected{{"encoder", frames}, {"features7", frames}};
  const std::pair<std::int64_t, std::int64_t> windows[] = {{2, 2}, {2, 2}, {3, 2}, {3, 2}, {3, 2}, {3, 2}};
  for (int i = 6; i > 0; --i) {
    const auto [kernel, stride] = windows[6 - i];
    frames = (frames - 1) * stride + kernel;
    expected[fmt::format("features{}", i)] = frames;
  }
  CHECK(tokens_at("wav2vec2-base", 1500) == expected);
  // 320,000 samples give 999 frames; a window's last places leave samples unread: n tokens give (n - kernel) / stride
  // + 1.
  const Tokens large = tokens_at("wav2vec2-large", 500);
  for (int i = 1; i < 7; ++i) {
    const auto [kernel, stride] = windows[6 - i];
    const std::int64_t read = large.at(fmt::format("features{}", i));
    CHECK((read - kernel) / stride + 1 == large.at(fmt::format("features{}", i + 1)));
  }
  CHECK(large.at("features7") == 500);
  // Two strides of 2 in time and in 80 channels: 400 frames are 32,000 and 8,000 positions.
  CHECK(tokens_at("conformer-ctc-large", 800) == Tokens{{"frames2", 64'000}, {"frames4", 16'000}, {"encoder", 800}});
}

TEST_CASE("a language model behind a tower has any number of tokens that its images leave room in") {
  const Sweep longer = read(spec_of("{like: llava-1.5-7b, sequence: 4096}"));
  CHECK(tokens_of(longer) == Tokens{{"vision", 577}, {"projector", 576}, {"text", 4096}});
  CHECK_THAT(longer.assumed, Contains("vision 577, projector 576"));
  CHECK_THAT(refusal_at("llava-1.5-7b", 512),
             Contains("s.yaml:2: 'model.sequence' 512") && Contains("the 576 of an image") && Contains("'projector'"));
}

TEST_CASE("a video of any number of tokens has the text that it is described with") {
  CHECK(tokens_at("wan2.1-1.3b", 1024) == Tokens{{"text", 512}, {"video", 1024}});
}

TEST_CASE("a sequence that does not tell the tokens of other networks is refused with their names") {
  for (const auto& [model, networks] :
       {std::pair("whisper-small", "frames 3000, encoder 1500, decoder 448"),
        std::pair("t5-base", "encoder 512, decoder 114"), std::pair("clip-vit-l-14", "vision 257, text 77"),
        std::pair("bert-large-mlperf", "encoder 512, masked 152")}) {
    INFO(model);
    CHECK_THAT(refusal_at(model, 64), Contains("s.yaml:2: 'model.sequence' is 64") && Contains(model) &&
                                          Contains(networks) && Contains("'architecture.networks.NAME.sequence' of "));
    // Before anything is simulated, at the place of the axis.
    CHECK_THAT(error_of(spec_of(model) + "axes:\n  model.sequence: [64, 128]\n"),
               Contains("s.yaml:6: 'model.sequence' is 64"));
    CHECK_THAT(error_of(spec_of(model), {"model.sequence=64"}), Contains("--set model.sequence=64: "));
  }
  CHECK_THAT(refusal_at("resnet-50", 2), Contains("conv5 49"));
}

TEST_CASE("a sequence beside an architecture is what that describes") {
  const std::string networks =
      "{networks: {encoder: {sequence: 64, blocks: {a: [attention, mlp]}, layers: [a]}, decoder: {blocks: {b: "
      "[attention, {cross_attention: {keys: 64}}, mlp]}, layers: [b]}}}";
  const std::string model = fmt::format("{{like: t5-base, layers: 2, sequence: 32, architecture: {}}}", networks);
  CHECK(tokens_of(read(spec_of(model))) == Tokens{{"encoder", 64}, {"decoder", 32}});
  CHECK_THAT(error_of(spec_of(model), {"model.sequence=48"}), Contains("encoder 64, decoder 32"));
  CHECK(tokens_of(read(spec_of("t5-base"), {"model={like: t5-base, layers: 2, sequence: 48, architecture: " + networks +
                                            "}"})) == Tokens{{"encoder", 64}, {"decoder", 48}});
}
