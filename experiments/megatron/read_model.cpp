// The model's part of Megatron-LM's arguments, with the defaults of its arguments.py.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "experiments/megatron/reader.hpp"
#include "experiments/shell/arithmetic.hpp"

namespace manyworlds::experiments::jobs {
namespace {

/// Vocabularies of tokenizers that are used without giving the size.
struct Tokenizer {
  std::string_view name;
  std::int64_t vocabulary;
};
constexpr Tokenizer kTokenizers[] = {
    {"", 50'257}, {"GPT2BPETokenizer", 50'257}, {"GPTSentencePieceTokenizer", 256'000}, {"Llama2Tokenizer", 32'000}};

constexpr std::int64_t kMaxWidth = 1'000'000;

/// Reads Python's list of layers with and without experts, "([0]*3+[1]*58)", into one digit for each.
std::optional<std::string> layer_pattern(const std::string& text) {
  std::string pattern;
  std::size_t at = 0;
  const auto accept = [&](char c) { return at < text.size() && text[at] == c ? ++at, true : false; };
  const bool enclosed = accept('(');
  do {
    if (!accept('[')) return std::nullopt;
    std::string digits;
    while (at < text.size() && text[at] != ']') {
      if (text[at] == '0' || text[at] == '1')
        digits.push_back(text[at]);
      else if (text[at] != ',' && text[at] != ' ')
        return std::nullopt;
      ++at;
    }
    if (!accept(']')) return std::nullopt;
    std::size_t times = 1;
    if (accept('*')) {
      const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), times);
      if (error != std::errc() || times > 10'000) return std::nullopt;
      at = static_cast<std::size_t>(end - text.data());
    }
    if (pattern.size() + digits.size() * times > 10'000) return std::nullopt;
    for (std::size_t i = 0; i < times; ++i) pattern += digits;
  } while (accept('+'));
  if (enclosed && !accept(')')) return std::nullopt;
  return at == text.size() ? std::optional(pattern) : std::nullopt;
}

}  // namespace

void MegatronReader::read_model() {
  for (const char* name : {"num-layers", "hidden-size", "num-attention-heads", "seq-length"})
    if (count(name, 0) == 0)
      fail_at(arguments_.arguments.empty() ? nowhere_ : arguments_.arguments.front().place,
              fmt::format("the arguments lack --{}", name));
  read_feed_forward();
  read_vocabulary();
  read_heads();
  read_position();
  read_dropout();
  read_window();
  read_latent_attention();
  if (experts_) read_experts();
}

void MegatronReader::read_feed_forward() {
  const bool gated = given("swiglu") || given("quick-geglu");
  const char* because = gated ? (given("swiglu") ? "swiglu" : "quick-geglu") : "squared-relu";
  set("model.activation", gated ? "swiglu" : "gelu", because);
  const std::int64_t hidden = count("hidden-size", 0);
  if (hidden > kMaxWidth) fail("hidden-size", fmt::format(" must be at most {}", kMaxWidth));
  const std::int64_t otherwise = gated ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden;
  set("model.ffn_hidden", count("ffn-hidden-size", otherwise), "ffn-hidden-size");
}

/// Sets the vocabulary as it is padded; the model pads it for tensor parallelism.
void MegatronReader::read_vocabulary() {
  if (given("padded-vocab-size")) return set("model.vocabulary", count("padded-vocab-size", 0), "padded-vocab-size");
  std::int64_t tokens = count("vocab-size", 0);
  const std::string type = text("tokenizer-type");
  if (tokens == 0) {
    const Argument* model = find("tokenizer-model");
    for (const auto& [name, entry] : catalog_.entries("models")) {
      const bool named = model != nullptr && !model->values.empty() &&
                         std::find(entry.also_called.begin(), entry.also_called.end(), model->values.front().text) !=
                             entry.also_called.end();
      const auto value = entry.values.find("vocabulary");
      if (named && value != entry.values.end()) tokens = std::get<std::int64_t>(value->second.value);
    }
    for (const Tokenizer& known : kTokenizers)
      if (tokens == 0 && known.name == type) tokens = known.vocabulary;
    if (tokens > 0)
      note(fmt::format("assumed: a vocabulary of {}, {}", tokens, type.empty() ? "GPT-2's" : "that of " + type));
  }
  if (tokens == 0) {
    note(fmt::format("the size of the vocabulary is not told ({}); give it with --set model.vocabulary=N", type));
    return;
  }
  tokens += count("vocab-extra-ids", 0);
  const std::int64_t multiple = count("make-vocab-size-divisible-by", 128) * tp_;
  if (multiple == 0 || multiple > kMaxWidth * 128) fail("make-vocab-size-divisible-by", " is no size");
  set("model.vocabulary", (tokens + multiple - 1) / multiple * multiple,
      given("vocab-size") ? "vocab-size" : "tokenizer-type");
}

void MegatronReader::read_heads() {
  if (latent_) return;
  const bool grouped = given("group-query-attention");
  const std::string because = given("num-query-groups") ? "num-query-groups" : "group-query-attention";
  set("model.kv_heads", grouped ? count("num-query-groups", 1) : heads_, because);
  set("model.query_key_norm", given("qk-layernorm") ? "true" : "false", "qk-layernorm");
}

void MegatronReader::read_position() {
  const std::string type = text("position-embedding-type", "learned_absolute");
  const bool rotary = type == "rope" || type == "yarn" || given("use-rotary-position-embeddings");
  if (!rotary && type != "learned_absolute")
    fail("position-embedding-type", fmt::format(" {} is not modelled; known are learned_absolute, rope, yarn", type));
  set("model.position", rotary ? "rotary" : "learned", "position-embedding-type");
}

void MegatronReader::read_dropout() {
  const auto is_zero = [](const std::string& rate) { return rate.find_first_not_of("0.") == std::string::npos; };
  const bool attention = !is_zero(text("attention-dropout", "0.1")), hidden = !is_zero(text("hidden-dropout", "0.1"));
  if (attention != hidden)
    fail(given("hidden-dropout") ? "hidden-dropout" : "attention-dropout",
         ": dropout in attention or in hidden states alone is not modelled");
  set("model.dropout", hidden ? "true" : "false", "hidden-dropout");
}

void MegatronReader::read_window() {
  if (!given("window-size")) return;
  std::vector<std::string> sides = words("window-size");
  for (std::string& side : sides) std::erase_if(side, [](char c) { return c == '(' || c == ')'; });
  const auto left = sides.size() == 2 && sides[1] == "0" ? shell::integer_of(sides[0]) : std::nullopt;
  if (!left || *left < 0 || *left > kMaxWidth * 16) fail("window-size", " must be LEFT,0");
  set("model.window", *left + 1, "window-size");
  const std::int64_t every = count("window-attn-skip-freq", 1);
  if (given("window-attn-skip-freq") && every != 2)
    fail("window-attn-skip-freq", " must be 2: every other layer has the window");
  set("model.window_every", every, "window-attn-skip-freq");
}

void MegatronReader::read_latent_attention() {
  if (!latent_) return;
  set("model.attention", "latent", "multi-latent-attention");
  set("model.query_rank", text("q-lora-rank") == "None" ? 0 : count("q-lora-rank", 0), "q-lora-rank");
  set("model.kv_rank", count("kv-lora-rank", 32), "kv-lora-rank");
  std::erase_if(job_.settings, [](const JobSetting& one) { return one.key == "model.head_dim"; });
  set("model.head_dim", count("qk-head-dim", 128), "qk-head-dim");
  set("model.rotary_dim", count("qk-pos-emb-head-dim", 64), "qk-pos-emb-head-dim");
  set("model.value_dim", count("v-head-dim", 128), "v-head-dim");
}

void MegatronReader::read_experts() {
  set("model.experts", count("num-experts", 0), "num-experts");
  set("strategy.ep", count("expert-model-parallel-size", 1), "expert-model-parallel-size");
  set("strategy.etp", count("expert-tensor-parallel-size", tp_), "expert-tensor-parallel-size");
  if (!given("moe-grouped-gemm"))
    fail("num-experts", ": experts one after the other, without --moe-grouped-gemm, are not modelled");
  set("strategy.expert_gemm", "grouped", "moe-grouped-gemm");
  read_expert_layers();
  read_expert_groups();
  read_dispatcher();
  if (!given("moe-router-force-load-balancing")) note("assumed: tokens are spread evenly over the experts");
}

void MegatronReader::read_expert_layers() {
  const std::string frequency = text("moe-layer-freq", "1");
  if (frequency == "1") return;
  const auto pattern = layer_pattern(frequency);
  const std::size_t dense = pattern ? std::min(pattern->find('1'), pattern->size()) : 0;
  if (!pattern || pattern->find('0', dense) != std::string::npos)
    fail("moe-layer-freq", fmt::format(" {}: dense layers are modelled only before all layers of experts, as in "
                                       "([0]*3+[1]*58)",
                                       frequency));
  if (static_cast<std::int64_t>(pattern->size()) != layers_)
    fail("moe-layer-freq", fmt::format(" is of {} layers, and --num-layers {}", pattern->size(), layers_));
  set("model.dense_layers", static_cast<std::int64_t>(dense), "moe-layer-freq");
}

/// Routers that limit groups of experts, as TransformerConfig.__post_init__() takes these arguments: the old one limits
/// the ranks of experts.
void MegatronReader::read_expert_groups() {
  const std::string groups = "moe-router-num-groups", limit = "moe-router-group-topk",
                    old_limit = "moe-router-topk-limited-devices";
  if (count(limit, 0) > 0) {
    if (count(groups, 0) == 0) fail(limit, fmt::format(" needs --{}", groups));
    set("model.expert_groups", count(groups, 0), groups);
    set("model.groups_per_token", count(limit, 0), limit);
  } else if (count(old_limit, 0) > 0) {
    set("model.expert_groups", count("expert-model-parallel-size", 1), "expert-model-parallel-size");
    set("model.groups_per_token", count(old_limit, 0), old_limit);
  }
}

void MegatronReader::read_dispatcher() {
  const std::string type = text("moe-token-dispatcher-type", "allgather");
  std::string backend = text("moe-flex-dispatcher-backend", "deepep");
  if (type == "allgather") {
    const bool alone = count("expert-model-parallel-size", 1) == 1 && count("expert-tensor-parallel-size", tp_) == 1;
    if (!alone)
      fail(given("moe-token-dispatcher-type") ? "moe-token-dispatcher-type" : "num-experts",
           ": experts whose tokens are all-gathered are not modelled; known are alltoall and flex");
    return set("strategy.stack.dispatcher", "all_to_all", "moe-token-dispatcher-type");
  }
  if (type == "alltoall") return set("strategy.stack.dispatcher", "all_to_all", "moe-token-dispatcher-type");
  if (type != "flex")
    fail("moe-token-dispatcher-type", fmt::format(" {} is not modelled; known are alltoall and flex", type));
  if (backend != "deepep" && backend != "hybridep")
    fail("moe-flex-dispatcher-backend", fmt::format(" {} is not modelled; known are deepep and hybridep", backend));
  set("strategy.stack.dispatcher", backend == "deepep" ? "deepep" : "hybrid_ep", "moe-token-dispatcher-type");
  if (backend == "deepep" && given("moe-deepep-num-sms"))
    set("strategy.stack.dispatcher_sms", count("moe-deepep-num-sms", 20), "moe-deepep-num-sms");
}

}  // namespace manyworlds::experiments::jobs
