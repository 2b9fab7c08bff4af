// Models of speech: parameters and FLOPs of the catalog against published counts and plain sums over their layers,
// configurations of Hugging Face, and layouts.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>

#include "core/step/run/simulation_context.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "experiments/models/read_model_config.hpp"
#include "experiments/text/text.hpp"
#include "tests/experiments/catalog_models.hpp"
#include "tests/experiments/config_refusals.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::workload::Model;
using core::workload::model_flops_per_sequence;
using core::workload::model_parameters;

namespace {

using I = std::int64_t;

models::ModelConfig parsed(const std::string& text) {
  return models::parse_model_config(text, "config.json");
}

Model model_of(const std::string& text) {
  return parsed(text).model();
}

void check_as_catalog(const std::string& name, const std::string& text) {
  CAPTURE(name);
  static const Catalog catalog;
  const Model known = catalog_model(catalog, name), read = model_of(text);
  CHECK(read.layers == known.layers);
  CHECK(read.sequence == known.sequence);
  CHECK(model_parameters(read) == model_parameters(known));
  CHECK(model_flops_per_sequence(read) == model_flops_per_sequence(known));
}

struct Whisper {
  const char* name;
  I hidden, encoder, decoder, heads, vocabulary, mel, published;
};

/// The released models whose counts are published (docs/facts/architectures.md, section 15).
constexpr Whisper kWhisper[] = {
    {"whisper-small", 768, 12, 12, 12, 51'865, 80, 241'734'912},
    {"whisper-medium", 1'024, 24, 24, 16, 51'865, 80, 763'857'920},
    {"whisper-large-v3", 1'280, 32, 32, 20, 51'866, 128, 1'543'490'560},
    {"whisper-large-v3-turbo", 1'280, 32, 4, 20, 51'866, 128, 808'878'080},
};

std::string config_of(const Whisper& w, const std::string& more = {}) {
  return fmt::format(R"({{"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"],
    "is_encoder_decoder": true, "d_model": {}, "encoder_layers": {}, "decoder_layers": {},
    "encoder_attention_heads": {}, "decoder_attention_heads": {}, "encoder_ffn_dim": {}, "decoder_ffn_dim": {},
    "vocab_size": {}, "num_mel_bins": {}, "num_hidden_layers": {}, "dropout": 0.0, "scale_embedding": false,
    "mask_time_prob": 0.05, "decoder_start_token_id": 50258, "max_length": 448, "median_filter_width": 7{}}})",
                     w.hidden, w.encoder, w.decoder, w.heads, w.heads, 4 * w.hidden, 4 * w.hidden, w.vocabulary, w.mel,
                     w.encoder, more);
}

/// Multiplications and additions of one sample forward, layer by layer, of 3,000 frames and 448 tokens of text; the
/// first convolution apart.
struct WhisperFlops {
  I first = 0, rest = 0;
};

WhisperFlops whisper_flops(const Whisper& w) {
  const I d = w.hidden, audio = 1'500, text = 448;
  const auto product = [](I rows, I columns, I depth) { return 2 * rows * columns * depth; };
  WhisperFlops sum{product(2 * audio, d, 3 * w.mel), product(audio, d, 3 * d)};
  for (I layer = 0; layer < w.encoder; ++layer)
    sum.rest += 4 * product(audio, d, d) + 2 * product(audio, audio, d) + 2 * product(audio, 4 * d, d);
  for (I layer = 0; layer < w.decoder; ++layer)
    sum.rest += 4 * product(text, d, d) + 2 * product(text, text, d) + 2 * product(text, d, d) +
                2 * product(audio, d, d) + 2 * product(text, audio, d) + 2 * product(text, 4 * d, d);
  sum.rest += product(text, w.vocabulary, d);
  return sum;
}

const std::string kWav2vec2 = R"({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"], "vocab_size": 32)";
const std::string kLarge = kWav2vec2 + R"(, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
    "intermediate_size": 4096, "conv_bias": true, "feat_extract_norm": "layer", "do_stable_layer_norm": true)";

std::string document(const std::string& model, const std::string& strategy) {
  return "base:\n  model: " + model +
         "\n  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
         "  topology: {rail_optimized: {oversubscription: 1}}\n  transport: dcqcn\n  strategy: {global_batch: 64, " +
         strategy + "}\n";
}

std::string refusal(const std::string& text) {
  return config_refusal(text);
}

bool leaves_out(const models::ModelConfig& config, const std::string& key, const std::string& part) {
  for (const models::ConfigNote& note : config.left_out)
    if (note.key == key && note.text.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("Whisper has its published parameters, less fixed positions and with biases of keys") {
  const Catalog catalog;
  for (const Whisper& w : kWhisper) {
    CAPTURE(w.name);
    const I parameters = model_parameters(catalog_model(catalog, w.name));
    CHECK(parameters == w.published - 1'500 * w.hidden + (w.encoder + 2 * w.decoder) * w.hidden);
    CHECK(static_cast<double>(parameters) == Approx(static_cast<double>(w.published)).epsilon(0.005));
  }
}

TEST_CASE("Whisper takes the FLOPs of its layers one by one") {
  const Catalog catalog;
  for (const Whisper& w : kWhisper) {
    CAPTURE(w.name);
    const WhisperFlops flops = whisper_flops(w);
    // Both gradients take as many, but for that of the audio, which nobody needs.
    CHECK(model_flops_per_sequence(catalog_model(catalog, w.name)) == 3 * flops.rest + 2 * flops.first);
  }
}

TEST_CASE("configurations of Whisper are the models of the catalog") {
  for (const Whisper& w : kWhisper) check_as_catalog(w.name, config_of(w));
  const models::ModelConfig tiny = parsed(R"({"model_type": "whisper"})");
  CHECK(model_parameters(tiny.model()) == 37'760'640 - 1'500 * 384 + 12 * 384);  // openai/whisper-tiny
  CHECK(tiny.sequence == 448);
  CHECK(leaves_out(tiny, "max_source_positions", "3000 frames of audio"));
  const Whisper& small = kWhisper[0];
  CHECK(refusal(config_of(small, R"(, "activation_function": "tanh")")).find("'activation_function' is 'tanh'") !=
        std::string::npos);
  CHECK(refusal(config_of(small, R"(, "encoder_atention_heads": 2)")).find("did you mean 'encoder_attention_heads'") !=
        std::string::npos);
  CHECK(refusal(R"({"model_type": "whisper", "encoder_attention_heads": 5})")
            .find("'d_model' is 384, no multiple of 'encoder_attention_heads', 5") != std::string::npos);
  CHECK(refusal(R"({"model_type": "whisper", "num_mel_bins": 0})").find("'num_mel_bins' must be from 1 to 10000") !=
        std::string::npos);
  CHECK(refusal(R"({"model_type": "whisper", "architectures": ["WhisperForAudioClassification"]})")
            .find("'architectures' has 'WhisperForAudioClassification'") != std::string::npos);
}

TEST_CASE("seeds of the fuzzer of speech are read") {
  const std::string folder = source_folder() + "/tests/fuzz/seeds/models/";
  for (const char* name : {"parakeet", "wav2vec2", "whisper"}) {
    CAPTURE(name);
    CHECK(model_of(import::read_text(folder + name + ".json")).architecture != nullptr);
  }
}

TEST_CASE("wav2vec 2.0 has its published parameters, less what its entries leave out") {
  const Catalog catalog;
  const I base = model_parameters(catalog_model(catalog, "wav2vec2-base")),
          large = model_parameters(catalog_model(catalog, "wav2vec2-large"));
  // A vector of masked frames, norms of 128 weights, 32 biases; and a norm before the head of the base model.
  CHECK(base == 94'396'320 - 768 - 128 - 32 + 2 * 768);
  CHECK(large == 315'471'520 - 1'024 - 128 - 32);
  CHECK(static_cast<double>(base) == Approx(94'396'320.0).epsilon(0.005));
}

TEST_CASE("the convolutions of wav2vec 2.0 take the FLOPs of their frames") {
  const Catalog catalog;
  const Model model = catalog_model(catalog, "wav2vec2-base");
  I samples = 250'000, in = 1, first = 0, rest = 0;
  for (const auto& [kernel, stride] : {std::pair(10, 5), {3, 2}, {3, 2}, {3, 2}, {3, 2}, {2, 2}, {2, 2}}) {
    samples = (samples - kernel) / stride + 1;
    (in == 1 ? first : rest) += 2 * samples * 512 * in * kernel;
    in = 512;
  }
  CHECK(model.sequence == samples);
  rest += 2 * samples * 768 * 512 + 2 * samples * 768 * (768 / 16) * 128;  // projection, and convolution of positions
  rest += 12 * (2 * samples * (4 * 768 * 768 + 2 * 768 * 3'072) + 4 * samples * samples * 768);
  rest += 2 * samples * 768 * 32;
  CHECK(model_flops_per_sequence(model) == 3 * rest + 2 * first);
}

TEST_CASE("configurations of wav2vec 2.0 and HuBERT are the models of the catalog") {
  check_as_catalog("wav2vec2-base", kWav2vec2 + "}");
  check_as_catalog("wav2vec2-base", R"({"model_type": "hubert", "architectures": ["HubertModel"]})");
  models::ModelConfig large = parsed(kLarge + "}");
  CHECK(large.sequence == 781);
  CHECK(model_parameters(large.model()) == 315'471'520 - 1'024 - 128 - 32);
  CHECK(leaves_out(large, "mask_time_prob", "250000 numbers of audio, 781 frames"));
  const models::ModelConfig trained =
      parsed(R"({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForPreTraining"]})");
  CHECK(model_parameters(trained.model()) == 94'396'320 - 768 - 128 - 32 + 2 * 768);
  CHECK(leaves_out(trained, "architectures", "the codes that pre-training predicts"));
  CHECK(refusal(kWav2vec2 + R"(, "add_adapter": true})").find("'add_adapter' is true") != std::string::npos);
  CHECK(refusal(kWav2vec2 + R"(, "conv_stride": [5, 2]})").find("must be lists of one length") != std::string::npos);
  CHECK(refusal(kWav2vec2 + R"(, "conv_dim": [512, 0, 512, 512, 512, 512, 512]})").find("conv_dim") !=
        std::string::npos);
  CHECK(refusal(kWav2vec2 + R"(, "feat_extract_norm": "batch"})").find("only group or layer is modelled") !=
        std::string::npos);
  CHECK(refusal(kWav2vec2 + R"(, "conv_stride": [1024, 1024, 2, 2, 2, 2, 2]})").find("leaves no frame") !=
        std::string::npos);
  CHECK(
      refusal(R"({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForXVector"]})").find("'Wav2Vec2ForXVector'") !=
      std::string::npos);
}

TEST_CASE("a large Conformer has the parameters of NeMo's, and its FLOPs") {
  const Catalog catalog;
  const Model model = catalog_model(catalog, "conformer-ctc-large");
  const I d = 512, t = 400;
  const I mlp = 2 * d * 2'048 + 2'048 + d, attention = 5 * d * d + 4 * d + 2 * d,
          convolution = 3 * d * d + 31 * d + 4 * d + 2 * d, norms = 5 * 2 * d;
  const I front = d * 9 + d + d * d * 9 + d + 20 * d * d + d;
  CHECK(model_parameters(model) == 18 * (2 * mlp + attention + convolution + norms) + front + 129 * d);
  CHECK(static_cast<double>(model_parameters(model)) == Approx(121e6).epsilon(0.005));  // as published, in millions
  const I first = 2 * (2 * t * 40) * 9 * d;                                             // 800 x 40 positions
  const I layer = 2 * t * (2 * 2 * d * 2'048 + 4 * d * d + 3 * d * d + 31 * d) + 2 * (2 * t - 1) * d * d;
  const I scores = 4 * t * t * d + 2 * t * (2 * t - 1) * d;
  const I rest = 2 * t * 20 * 9 * d * d + 2 * t * 20 * d * d + 18 * (layer + scores) + 2 * t * d * 129;
  // Neither the audio nor the distances need gradients.
  CHECK(model_flops_per_sequence(model) == 3 * rest + 2 * first - 18 * 2 * (2 * t - 1) * d * d);
}

TEST_CASE("a configuration of Parakeet is the model of the catalog, with the weights of its list of layers") {
  const std::string text = R"({"model_type": "parakeet_ctc", "architectures": ["ParakeetForCTC"], "vocab_size": 1025,
    "ctc_loss_reduction": "mean", "pad_token_id": 1024, "encoder_config": {"num_hidden_layers": 42, "layerdrop": 0.1,
      "max_position_embeddings": 5000, "model_type": "parakeet_encoder", "scale_input": true)";
  check_as_catalog("parakeet-ctc-1.1b", text + "}}");
  const I d = 1'024, mlp = 2 * d * 4 * d + 4 * d + d, attention = 5 * d * d + 4 * d + 2 * d,
          convolution = 3 * d * d + 9 * d + 4 * d + 2 * d, norms = 5 * 2 * d;
  const I halving = 256 * 9 + 256, point = 256 * 256 + 256;
  const I all = 42 * (2 * mlp + attention + convolution + norms) + 3 * halving + 2 * point + 2'560 * d + d + 1'025 * d;
  CHECK(model_parameters(model_of(text + "}}")) == all);
  CHECK(static_cast<double>(all) == Approx(4.25e9 / 4).epsilon(0.002));  // a file of 4.25 GB in fp32
  CHECK(leaves_out(parsed(text + "}}"), "vocab_size", "1600 frames of audio"));
  CHECK(refusal(text + R"(, "subsampling_factor": 6}})").find("'subsampling_factor' must be a power of 2") !=
        std::string::npos);
  CHECK(refusal(text + R"(, "conv_kernal_size": 31}})").find("did you mean 'conv_kernel_size'") != std::string::npos);
  CHECK(refusal(R"({"model_type": "parakeet_ctc", "vocab_size": 8})").find("'encoder_config' must be an object") !=
        std::string::npos);
}

TEST_CASE("models of speech have the layouts that their parts can have") {
  const auto of = [](const std::string& model, const std::string& strategy) { return document(model, strategy); };
  CHECK_NOTHROW(read(of("whisper-small", "micro_batch: 8")));
  CHECK_NOTHROW(read(of("whisper-small", "micro_batch: 8, tp: 4")));
  CHECK_NOTHROW(read(of("whisper-small", "micro_batch: 8, tp: 2, sequence_parallel: true")));
  CHECK_THROWS_WITH(read(of("whisper-small", "micro_batch: 8, pp: 2")), Catch::Contains("cross_attention"));
  CHECK_THROWS_WITH(read(of("whisper-small", "micro_batch: 8, cp: 2")),
                    Catch::Contains("context_of_states") && Catch::Contains("convolution_1d"));
  CHECK_NOTHROW(read(of("wav2vec2-base", "micro_batch: 8, tp: 2")));
  CHECK_NOTHROW(read(of("wav2vec2-base", "micro_batch: 8, pp: 2, split: by_time")));
  CHECK_NOTHROW(read(of("conformer-ctc-large", "micro_batch: 8, zero: 1")));
  CHECK_THROWS_WITH(read(of("conformer-ctc-large", "micro_batch: 8, tp: 2")), Catch::Contains("tp 2"));
  CHECK_THROWS_WITH(
      read(of("{layers: 1, hidden: 12, vocabulary: 1, sequence: 4, architecture: {embedding: false, head: false, "
              "blocks: {a: {convolution_1d: {groups: 5}}}, layers: [a]}}",
              "micro_batch: 1")),
      Catch::Contains("'convolution_1d' needs 'groups that divide its channels'"));
}

TEST_CASE("models of speech take as long composed as with all packets in one event loop") {
  core::step::SimulationContext context;
  core::step::IsolatedResults results;
  const std::string small =
      "{layers: 3, hidden: 64, heads: 4, vocabulary: 128, sequence: 32, architecture: {embedding: false, networks: {"
      "frames: {sequence: 128, blocks: {a: {convolution_1d: {inputs: 16, activate: true, input_gradient: false}}}, "
      "layers: a}, encoder: {blocks: {a: [{convolution_1d: {stride: 4, kernel: 8, norm: layer, positions: learned}}, "
      "{attention: {causal: false}}, mlp]}, layers: aa}}}}";
  for (const auto& [model, layout] : {std::pair<std::string, const char*>{small, "tp: 2, sequence_parallel: true"},
                                      {small, "tp: 2"},
                                      {small, "zero: 3"},
                                      {small, "pp: 2, stage_layers: [1, 2]"},
                                      {"wav2vec2-base", "zero: 1"},
                                      {"conformer-ctc-large", "recompute: full"}}) {
    CAPTURE(model, layout);
    std::map<std::string, core::Time> steps;
    for (const std::string composition : {"composed", "coupled"}) {
      GraphCache graphs;
      const Sweep sweep =
          read(document(model, std::string("micro_batch: 2, ") + layout), {"composition=" + composition});
      steps[composition] = context.run(context.compile(configure(sweep.experiments.at(0), graphs)), results).step_ps;
    }
    CHECK(steps["composed"] > 0);
    CHECK(steps["composed"] == steps["coupled"]);
  }
}
