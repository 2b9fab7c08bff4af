// Converts arguments of Megatron-LM to models and layouts. Defaults are those of its arguments.py.
#include "experiments/measured/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <regex>
#include <sstream>

#include "core/memory/footprint.hpp"
#include "experiments/import/pipeline_layout.hpp"
#include "experiments/measured/architectures.hpp"
#include "experiments/measured/test_models.hpp"
#include "experiments/text/unsupported_row.hpp"
#include "experiments/validity/validity.hpp"

namespace manyworlds::experiments::measured {
namespace {

using core::workload::Model;
using core::workload::Modules;
using core::workload::Recompute;
using core::workload::Stack;
using core::workload::Strategy;
using import::CsvRow;
using import::read_supported;

constexpr std::int64_t kMaxCount = 1 << 20;
/// Maximum of micro-batch x sequence^2, the attention scores of one head; sums of bytes beyond it might exceed 64 bits.
constexpr std::int64_t kMaxScores = std::int64_t(1) << 40;

/// Vocabularies of tokenizers that tests use without giving the size.
struct Tokenizer {
  std::string_view name;
  std::int64_t vocabulary;
};
constexpr Tokenizer kTokenizers[] = {
    {"", 50'257}, {"GPT2BPETokenizer", 50'257}, {"GPTSentencePieceTokenizer", 256'000}, {"Llama2Tokenizer", 32'000}};

/// The names of GPUs in tests, and the number of GPUs in their nodes.
struct TestDevice {
  std::string_view name, gpu;
  std::int64_t gpus_per_node;
};
constexpr TestDevice kDevices[] = {{"a100", "a100_80", 8}, {"h100", "h100_sxm", 8}, {"gb200", "gb200_nvl72", 4}};

std::int64_t count(const CsvRow& row, std::string_view column, std::int64_t default_value) {
  const std::int64_t value = row.integer(column).value_or(default_value);
  if (value < 0 || value > kMaxCount) row.fail(fmt::format("{} must be 0 to {}, not {}", column, kMaxCount, value));
  return value;
}

/// Returns a column's number, or its default; a default of 0 says that the column must be given.
std::int64_t positive(const CsvRow& row, std::string_view column, std::int64_t default_value) {
  if (default_value == 0 && !row.given(column))
    throw import::UnsupportedRow{fmt::format("{} is not given", column), ""};
  const std::int64_t value = count(row, column, default_value);
  if (value == 0) row.fail(fmt::format("{} must be 1 to {}", column, kMaxCount));
  return value;
}

bool flag(const CsvRow& row, std::string_view column) {
  const std::string_view text = row.text(column);
  if (text.empty() || text == "False" || text == "false") return false;
  if (text == "True" || text == "true") return true;
  row.fail(fmt::format("{} must be true, false or empty, not '{}'", column, text));
}

void unsupported(MemoryRow& result, const std::string& why) {
  if (result.unsupported.empty()) result.unsupported = why;
}

void read_experts(MemoryRow& result, const CsvRow& row) {
  Model& model = result.model;
  model.experts = count(row, "num-experts", 0);
  if (model.experts == 0) return;
  model.experts_per_token = positive(row, "moe-router-topk", 2);
  model.expert_ffn_hidden = count(row, "moe-ffn-hidden-size", 0);
  model.shared_ffn_hidden = count(row, "moe-shared-expert-intermediate-size", 0);
  static const std::regex layers(R"(\(\[0\]\*(\d{1,4})\+\[1\]\*(\d{1,4})\))");
  const std::string frequency(row.text("moe-layer-freq"));
  std::smatch found;
  if (frequency.empty() || frequency == "1") return;
  if (!std::regex_match(frequency, found, layers))
    unsupported(result, "experts in some layers only: " + frequency);
  else if (std::stol(found[1]) + std::stol(found[2]) != model.layers)
    row.fail(fmt::format("moe-layer-freq {} is not of {} layers", frequency, model.layers));
  else
    model.dense_layers = std::stol(found[1]);
}

void read_latent_attention(Model& model, const CsvRow& row) {
  if (!flag(row, "multi-latent-attention")) return;
  model.attention = core::workload::Attention::latent;
  model.kv_heads = 0;
  model.query_rank = count(row, "q-lora-rank", 0);
  model.kv_rank = positive(row, "kv-lora-rank", 32);
  model.head_dim = positive(row, "qk-head-dim", 128);
  model.rotary_dim = positive(row, "qk-pos-emb-head-dim", 64);
  model.value_dim = positive(row, "v-head-dim", 128);
}

/// Returns the tokenizer's vocabulary, padded as the test requires; the model adds the padding for tensor parallelism.
std::int64_t vocabulary(MemoryRow& result, const CsvRow& row) {
  std::int64_t tokens = count(row, "vocab-size", 0);
  if (tokens == 0) {
    const auto known = std::find_if(std::begin(kTokenizers), std::end(kTokenizers),
                                    [&](const Tokenizer& one) { return one.name == row.text("tokenizer-type"); });
    if (known == std::end(kTokenizers)) {
      unsupported(result, "no vocabulary is given, and its tokenizer is not known");
      return 1;
    }
    tokens = known->vocabulary;
    result.assumed.emplace_back("vocab-size");
  }
  const std::int64_t multiple = positive(row, "make-vocab-size-divisible-by", 128) * result.strategy.tp;
  return (tokens + multiple - 1) / multiple * multiple;
}

void read_model(MemoryRow& result, const CsvRow& row) {
  Model& model = result.model;
  model.layers = positive(row, "num-layers", 0);
  model.mtp_layers = count(row, "mtp-num-layers", 0);
  model.hidden = positive(row, "hidden-size", 0);
  model.heads = positive(row, "num-attention-heads", 0);
  model.kv_heads = count(row, "num-query-groups", 0);
  model.head_dim = count(row, "kv-channels", 0);
  model.ffn_hidden = count(row, "ffn-hidden-size", 0);
  model.sequence = positive(row, "seq-length", 0);
  model.vocabulary = vocabulary(result, row);
  if (row.text("normalization") == "RMSNorm") model.norm = core::workload::Norm::rms_norm;
  if (flag(row, "swiglu")) model.activation = core::workload::Activation::swiglu;
  if (row.text("position-embedding-type") == "rope") model.position = core::workload::Position::rotary;
  model.tied_embeddings = !flag(row, "untie-embeddings-and-output-weights");
  model.biases = !flag(row, "disable-bias-linear");
  const bool attention = row.text("attention-dropout") != "0.0", hidden = row.text("hidden-dropout") != "0.0";
  if (attention != hidden) unsupported(result, "dropout in attention or in hidden states alone");
  model.dropout = hidden;
  read_latent_attention(model, row);
  read_experts(result, row);
}

void read_stack(Stack& stack, const CsvRow& row) {
  using core::workload::AttentionKernel;
  using core::workload::LayerLibrary;
  using core::workload::Precision;
  const bool engine = row.text("transformer-impl") != "local" && row.text("attention-backend") != "local";
  stack.layers = engine ? LayerLibrary::transformer_engine : LayerLibrary::framework;
  const bool unfused = !engine || row.text("attention-backend") == "unfused";
  stack.attention = unfused ? AttentionKernel::unfused : AttentionKernel::cudnn;
  stack.precision = flag(row, "fp16") ? Precision::fp16 : row.given("fp8-format") ? Precision::fp8 : Precision::bf16;
  stack.deterministic = flag(row, "deterministic-mode");
  stack.fused_loss = flag(row, "cross-entropy-loss-fusion");
  stack.gradient_accumulation_fusion = !flag(row, "no-gradient-accumulation-fusion");
  stack.reduce_in_16bit = flag(row, "grad-reduce-in-bf16");
}

/// Reads the number of layers per stage from a layout given part by part.
void read_layout(MemoryRow& result, const CsvRow& row) {
  if (!row.given("pipeline-model-parallel-layout")) return;
  const std::string_view text = row.text("pipeline-model-parallel-layout");
  const auto layout = import::expanded_layout(text);
  if (!layout || text.find(',') != std::string_view::npos) return unsupported(result, "stages laid out by hand");
  if (!import::has_mtp_before_loss(*layout, result.model.mtp_layers))
    return unsupported(result, "multi-token prediction before the stage of the loss");
  std::vector<std::int64_t> layers = import::layers_of_stages(*layout);
  const auto sections = static_cast<std::int64_t>(layers.size());
  if (sections % result.strategy.pp != 0) return unsupported(result, "stages laid out by hand");
  result.strategy.stage_layers = std::move(layers);
  result.strategy.virtual_stages = sections / result.strategy.pp;
}

/// Reads modules from a list of names such as "[layernorm moe_act]".
Modules read_modules(MemoryRow& result, const CsvRow& row, std::string_view column,
                     const std::vector<std::string>& names) {
  std::string text(row.text(column));
  std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
  std::istringstream words(text);
  Modules modules = 0;
  for (std::string word; words >> word;) {
    const auto known = std::find(names.begin(), names.end(), word);
    if (known == names.end())
      unsupported(result, fmt::format("{} {}", column, word));
    else
      modules |= Modules{1} << (known - names.begin());
  }
  return modules;
}

void read_activations(MemoryRow& result, const CsvRow& row) {
  Strategy& strategy = result.strategy;
  if (row.text("recompute-granularity") == "full") strategy.recompute = Recompute::full;
  if (row.text("recompute-granularity") == "selective") {
    strategy.recompute_modules =
        read_modules(result, row, "recompute-modules", core::workload::recompute_module_names());
    if (!row.given("recompute-modules")) strategy.recompute = Recompute::selective;
  }
  if (flag(row, "fine-grained-activation-offloading"))
    strategy.offload_modules = read_modules(result, row, "offload-modules", core::workload::offload_module_names());
}

/// Returns the virtual stages per rank, given by their number or by their number of layers.
std::int64_t virtual_stages(const MemoryRow& result, const CsvRow& row) {
  // Tables without the columns have the number in the name of some tests, as in hybrid_mr_mcore_te_tp1_pp2_vpp2.
  static const std::regex named(R"(_pp\d+_vpp(\d)_)");
  std::smatch found;
  if (result.model.architecture && std::regex_search(result.test_case, found, named)) return std::stol(found[1]);
  const std::int64_t layers = count(row, "num-layers-per-virtual-pipeline-stage", 0);
  if (layers == 0) return positive(row, "num-virtual-stages-per-pipeline-rank", 1);
  return std::max<std::int64_t>(result.model.layers / (result.strategy.pp * layers), 1);
}

void read_parallelism(Strategy& strategy, const CsvRow& row) {
  strategy.tp = positive(row, "tensor-model-parallel-size", 1);
  strategy.pp = positive(row, "pipeline-model-parallel-size", 1);
  strategy.cp = positive(row, "context-parallel-size", 1);
  strategy.micro_batch = positive(row, "micro-batch-size", 1);
  // Megatron-LM turns sequence parallelism off if there is no tensor parallelism.
  strategy.sequence_parallel = flag(row, "sequence-parallel") && strategy.tp > 1;
  if (!row.given("num-experts")) return;
  strategy.ep = positive(row, "expert-model-parallel-size", 1);
  strategy.etp = positive(row, "expert-tensor-parallel-size", strategy.tp);
}

/// Returns how many times the optimizer's states are kept. Tables without the column have it in the name of a test:
/// Megatron-LM, tests/functional_tests/test_cases/moe/..._multi_dist_optimizer_instances/model_config.yaml.
std::int64_t optimizer_instances(const MemoryRow& result, const CsvRow& row) {
  const bool named = result.test_case.find("multi_dist_optimizer_instances") != std::string::npos;
  return positive(row, "num-distributed-optimizer-instances", named ? 2 : 1);
}

/// Takes the fewest GPUs on which the layout can run for a number that is smaller: recipes of releases, which name
/// their nodes, are not published.
void raise_gpus(MemoryRow& result) {
  const Strategy& strategy = result.strategy;
  const std::int64_t dense = strategy.tp * strategy.cp, experts = strategy.ep * strategy.etp;
  if (dense > kMaxCount || experts > kMaxCount) return;
  const std::int64_t fewest = strategy.pp * std::lcm(dense, experts);
  if (result.gpus >= fewest) return;
  result.gpus = fewest;
  if (std::find(result.assumed.begin(), result.assumed.end(), "gpus") == result.assumed.end())
    result.assumed.emplace_back("gpus");
}

void read_strategy(MemoryRow& result, const CsvRow& row) {
  Strategy& strategy = result.strategy;
  strategy.virtual_stages = virtual_stages(result, row);
  read_layout(result, row);
  raise_gpus(result);
  if (strategy.virtual_stages > 1) strategy.schedule = core::workload::schedule_by_name("interleaved");
  const std::int64_t replica = strategy.tp * strategy.pp * strategy.cp;
  if (result.gpus % replica != 0)
    unsupported(result, fmt::format("{} GPUs are no multiple of tp x pp x cp", result.gpus));
  strategy.dp = std::max<std::int64_t>(result.gpus / replica, 1);
  strategy.global_batch = count(row, "global-batch-size", 0);
  if (strategy.global_batch == 0) {
    strategy.global_batch = strategy.dp * strategy.micro_batch * strategy.pp;
    result.assumed.emplace_back("global-batch-size");
  }
  const std::int64_t instances = optimizer_instances(result, row);
  if (strategy.replicas() % instances != 0)
    unsupported(result, fmt::format("{} replicas are no multiple of {} instances of the optimizer", strategy.replicas(),
                                    instances));
  else if (flag(row, "use-distributed-optimizer") && strategy.replicas() > instances)
    strategy.zero = 1, strategy.zero_group = instances > 1 ? strategy.replicas() / instances : 0;
  if (flag(row, "use-megatron-fsdp")) {
    if (row.text("data-parallel-sharding-strategy") == "optim_grads_params")
      strategy.zero = 3;
    else
      unsupported(result, fmt::format("FSDP shards {}", row.text("data-parallel-sharding-strategy")));
  }
  if (flag(row, "account-for-embedding-in-pipeline-split") && flag(row, "account-for-loss-in-pipeline-split"))
    strategy.split = core::workload::LayerSplit::light_ends;
  read_activations(result, row);
  read_stack(strategy.stack, row);
}

/// Refuses what the memory model does not have.
void check_supported(MemoryRow& result, const CsvRow& row) {
  if (row.given("optimizer") && row.text("optimizer") != "adam")
    unsupported(result, fmt::format("optimizer {}", row.text("optimizer")));
  for (const char* column : {"main-grads-dtype", "main-params-dtype", "exp-avg-dtype", "exp-avg-sq-dtype"})
    if (row.given(column) && row.text(column) != "fp32")
      unsupported(result, fmt::format("{} {}", column, row.text(column)));
  if (flag(row, "cross-entropy-loss-fusion") && row.text("cross-entropy-fusion-impl") == "te")
    unsupported(result, "Transformer Engine's loss, whose gradients take the place of the logits");
  const bool embedding = flag(row, "account-for-embedding-in-pipeline-split");
  if (embedding != flag(row, "account-for-loss-in-pipeline-split"))
    unsupported(result, "embedding or loss alone counts as a layer");
}

void read_device(MemoryRow& result, const CsvRow& row, const Catalog& catalog) {
  std::string name(row.text("device"));
  if (name.ends_with("_2nd")) name.resize(name.size() - 4);  // a second run of the same test
  const auto known = std::find_if(std::begin(kDevices), std::end(kDevices),
                                  [&](const TestDevice& one) { return one.name == name || one.gpu == name; });
  result.gpu = known == std::end(kDevices) ? name : std::string(known->gpu);
  const auto& gpus = catalog.entries("gpus");
  const auto entry = gpus.find(result.gpu);
  if (entry == gpus.end()) throw import::UnsupportedRow{"its GPU is not in the catalog", name};
  result.device = gpu_of(entry->second);

  // Tests run on eight GPUs, in one node or two; tests named 1node use the GPUs of one node.
  const bool one_node = result.test_case.ends_with("_1node") && known != std::end(kDevices);
  if (!row.given("gpus")) result.assumed.emplace_back("gpus");
  result.gpus = positive(row, "gpus", one_node ? known->gpus_per_node : 8);
}

/// Refuses a layout that violates a validity rule.
void check_valid(MemoryRow& result) {
  ExperimentConfig config;
  config.configuration.model = result.model;
  config.configuration.strategy = result.strategy;
  config.configuration.gpu = result.device;
  config.cluster.gpus_per_node = std::min<std::int64_t>(result.gpus, 8);
  config.cluster.nodes = result.gpus / config.cluster.gpus_per_node;
  config.configuration.gpus_per_node = config.cluster.gpus_per_node;
  GraphCache graphs;
  for (const Rule& rule : rules()) {
    if (rule.key == "topology" || rule.key == "faults" || rule.key == "transport") continue;  // no network is simulated
    if (const auto violation = rule.check(config, graphs))
      return unsupported(result, fmt::format("{}: {}", rule.reason, *violation));
  }
}

/// Names what of a described model was assumed, and refuses a row that is of another model: after a step a rank keeps
/// its weights and gradients at least.
void check_described(MemoryRow& result, const CsvRow& row) {
  restrict_kernels(result.strategy.stack, result.model);
  if (!row.given("vocab-size")) result.assumed.emplace_back("vocab-size");
  const core::memory::Footprint kept =
      core::memory::static_footprint(result.model, result.strategy, result.device, result.strategy.pp - 1);
  const auto after = row.integer("mem_allocated_bytes_last");
  if (after && *after < kept.weights + kept.gradients)
    unsupported(result, fmt::format("another model: {} bytes stay after a step, and the weights and gradients of its "
                                    "test's model are {}",
                                    *after, kept.weights + kept.gradients));
}

void read_fields(MemoryRow& result, const CsvRow& row, const Catalog& catalog) {
  const auto measured = row.integer("mem_max_allocated_bytes");
  if (!measured || *measured <= 0) row.fail("mem_max_allocated_bytes must be a number of bytes");
  result.measured_bytes = *measured;
  const auto other = other_architecture(row);
  const bool described = other && describe_test_model(result.model, row);
  if (other && !described) throw import::UnsupportedRow{"another architecture: " + other->name, other->shown_by};
  result.exclusion_reason = row.text("note");
  result.contradicted = flag(row, "contradicted");
  if (result.contradicted && result.exclusion_reason.empty())
    result.exclusion_reason = "another run of the same test on the same GPU peaked more than 15 % apart";
  read_device(result, row, catalog);
  check_supported(result, row);
  read_parallelism(result.strategy, row);
  if (!described) read_model(result, row);
  read_strategy(result, row);
  if (described) check_described(result, row);
  result.kind = described ? "other" : result.strategy.zero == 3 ? "fsdp" : result.model.has_experts() ? "moe" : "dense";
  const std::int64_t sequence = result.model.sequence;
  if (sequence > kMaxScores / sequence / result.strategy.micro_batch)
    row.fail(fmt::format("micro-batch-size x seq-length^2 must be at most {}", kMaxScores));
  check_valid(result);
}

MemoryRow read_row(const CsvRow& row, const Catalog& catalog) {
  MemoryRow result;
  result.line = row.line();
  result.test_case = row.text("test_case");
  result.kind = "other";
  result.id = row.given("id") ? std::string(row.text("id"))
                              : fmt::format("{} {} {}", result.test_case, row.text("track"), row.text("device"));
  read_supported(result, [&] { read_fields(result, row, catalog); });
  return result;
}

}  // namespace

bool is_memory_table(const import::CsvHeader& header) {
  return header.has("test_case") && header.has("mem_max_allocated_bytes");
}

std::vector<MemoryRow> read_memory(const import::CsvTable& table, const Catalog& catalog) {
  std::vector<MemoryRow> rows;
  for (const CsvRow& row : table.rows) rows.push_back(read_row(row, catalog));
  return rows;
}

std::int64_t predicted_bytes(const MemoryRow& row) {
  return core::memory::footprint(row.model, row.strategy, row.device, row.strategy.pp - 1).allocated();
}

}  // namespace manyworlds::experiments::measured
