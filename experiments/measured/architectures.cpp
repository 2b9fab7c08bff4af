#include "experiments/measured/architectures.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace manyworlds::experiments::measured {
namespace {

constexpr const char *kEncoderDecoder = "T5: an encoder and a decoder", *kEncoder = "BERT: an encoder",
                     *kHybrid = "hybrid: Mamba and attention",
                     *kMultimodal = "multimodal: encoders besides a language model", *kVision = "a vision model",
                     *kRetrieval = "RETRO: attention to retrieved text";

struct Sign {
  std::string_view text;
  const char* architecture;
};

/// Words of a test's name, in lower case. Nemotron 3 mixes Mamba with attention, as no Nemotron before it does.
constexpr Sign kWords[] = {
    {"t5", kEncoderDecoder}, {"ul2", kEncoderDecoder},    {"bert", kEncoder},     {"hybrid", kHybrid},
    {"mamba", kHybrid},      {"nemotron3", kHybrid},      {"nemotronh", kHybrid}, {"jamba", kHybrid},
    {"mimo", kMultimodal},   {"multimodal", kMultimodal}, {"vlm", kMultimodal},   {"llava", kMultimodal},
    {"vit", kVision},        {"vision", kVision},         {"retro", kRetrieval},
};

/// Arguments that a decoder does not have.
constexpr Sign kColumns[] = {
    {"encoder-num-layers", kEncoderDecoder},
    {"decoder-num-layers", kEncoderDecoder},
    {"decoder-seq-length", kEncoderDecoder},
    {"encoder-seq-length", kEncoderDecoder},
    {"bert-binary-head", kEncoder},
    {"hybrid-override-pattern", kHybrid},
    {"hybrid-layer-pattern", kHybrid},
    {"hybrid-attention-ratio", kHybrid},
    {"mamba-state-dim", kHybrid},
    {"is-hybrid-model", kHybrid},
    {"img-h", kMultimodal},
    {"patch-dim", kMultimodal},
    {"vision-model-type", kMultimodal},
    {"retro-num-neighbors", kRetrieval},
};

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// Returns whether `word` stands in `text` between characters that are neither letters nor digits.
bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word_character(text[at - 1])) && (end == text.size() || !is_word_character(text[end])))
      return true;
  }
  return false;
}

bool is_set(std::string_view value) {
  return !value.empty() && value != "False" && value != "false" && value != "0" && value != "0.0";
}

}  // namespace

std::optional<Architecture> other_architecture(const import::CsvRow& row) {
  std::string name(row.text("test_case"));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const Sign& sign : kWords)
    if (has_word(name, sign.text)) return Architecture{sign.architecture, fmt::format("test_case: {}", sign.text)};
  for (const Sign& sign : kColumns)
    if (is_set(row.text(sign.text)))
      return Architecture{sign.architecture, fmt::format("{}: {}", sign.text, row.text(sign.text))};
  return std::nullopt;
}

}  // namespace manyworlds::experiments::measured
