#include "experiments/measured/training_steps.hpp"

#include <algorithm>
#include <set>

#include "core/memory/footprint.hpp"
#include "experiments/catalog/calibration.hpp"
#include "experiments/measured/term_table.hpp"
#include "experiments/settings/network_lengths.hpp"
#include "experiments/settings/required_settings.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/text/unsupported_row.hpp"
#include "experiments/validity/validity.hpp"

namespace manyworlds::experiments::measured {
namespace {

using import::CsvRow;
using import::Node;
using import::read_supported;
using import::UnsupportedRow;

// Columns that every table of training steps has.
constexpr const char* kRequiredColumns[] = {"id",       "source",       "model",          "gpu",
                                            "num_gpus", "global_batch", "measured_step_s"};

/// Options of a model whose columns have other names for historical reasons.
struct RenamedColumn {
  const char *column, *option;
};
constexpr RenamedColumn kRenamedColumns[] = {{"vocab", "vocabulary"}, {"seq_len", "sequence"}};

/// Properties of a model that is described only by its dimensions; words.csv assigns models to styles.
struct Style {
  const char *name, *norm, *activation, *position, *tied_embeddings, *biases, *dropout, *vocabulary;
};
constexpr Style kStyles[] = {
    {"gpt", "layer_norm", "gelu", "learned", "true", "true", "true", "50257"},
    {"mpt", "layer_norm", "gelu", "learned", "true", "true", "false", "50368"},
    {"llama", "rms_norm", "swiglu", "rotary", "false", "false", "false", "32000"},
};

/// NIC rate if neither row nor source names one, and the catalog has no cluster with the GPU.
constexpr double kDefaultNicGbps = 400;
constexpr const char* kDidNotRun = "it did not run, so that it has no step time";
constexpr std::int64_t kNoLimit = 9'007'199'254'740'992;  // the largest value that may be set

class RowReader {
 public:
  RowReader(const CsvRow& row, const TermTable& terms, const Catalog& catalog, GraphCache& graphs)
      : row_(row), terms_(terms), catalog_(catalog), graphs_(graphs), assigner_(catalog, settings_, nullptr) {}

  TrainingStep read() {
    result_.id = row_.text("id");
    result_.source = row_.text("source");
    result_.line = row_.line();
    read_supported(result_, [this] {
      read_source();
      read_machines();
      read_model();
      read_strategy();
      finish();
    });
    if (!result_.unsupported.empty()) result_.experiments.clear();
    if (!result_.unsupported.empty() && result_.unsupported != kDidNotRun) result_.ran.reset();
    return std::move(result_);
  }

 private:
  std::string text(const char* column) const { return std::string(row_.text(column)); }

  void assume(const char* column) { result_.assumed.emplace_back(column); }

  std::int64_t integer_or(const char* column, std::int64_t default_value) const {
    return row_.integer(column).value_or(default_value);
  }

  /// Returns a number that a row must have.
  std::int64_t required_integer(const char* column) const {
    const auto value = row_.integer(column);
    if (!value) throw UnsupportedRow{fmt::format("{} is not printed", column), ""};
    if (*value < 1) throw UnsupportedRow{fmt::format("{} is below 1", column), text(column)};
    return *value;
  }

  Node node(std::string value) const {
    Node result;
    result.kind = Node::Kind::scalar;
    result.text = std::move(value);
    result.file = std::make_shared<const std::string>(row_.header().file);
    result.line = row_.line();
    return result;
  }

  /// Sets a key as a user would. A value that sweeps cannot express makes the row unsupported, not invalid.
  void set(const std::string& key, const std::string& value) {
    try {
      const Node given = node(value);
      assigner_.assign(find_key(key, given), given);
    } catch (const core::InputError& error) {
      throw UnsupportedRow{fmt::format("{} is not modelled as the row has it", key), error.what()};
    }
  }
  void set(const std::string& key, std::int64_t value) { set(key, std::to_string(value)); }

  /// Calls set() unless `value` equals `usual`, which holds also if there is no such option.
  void set_unless(const std::string& key, const std::string& value, const std::string& usual) {
    if (value != usual || has_key(key)) set(key, value);
  }

  bool has_key(const std::string& key) const {
    try {
      find_key(key, node(""));
      return true;
    } catch (const core::InputError&) {
      return false;
    }
  }

  std::optional<std::string> meaning(const char* column) const {
    const std::string given_text = text(column);
    return given_text.empty() ? std::nullopt : terms_.meaning(column, given_text);
  }

  void read_source();
  void read_machines();
  void set_nic(std::int64_t nodes);
  void read_model();
  void set_style();
  void read_strategy();
  void set_split(std::int64_t stages);
  void set_schedule(std::int64_t pp);
  void set_known_stack(const std::string& name, const CatalogEntry& entry);
  void set_stack();
  void set_strategy_columns();
  void choose_recompute();
  void finish();
  std::string family() const;
  std::string settings_text(const std::string& prefix, const std::set<std::string, std::less<>>& without) const;

  const CsvRow& row_;
  const TermTable& terms_;
  const Catalog& catalog_;
  GraphCache& graphs_;
  Settings settings_;
  Assigner assigner_;
  const SourceProfile* profile_ = nullptr;
  std::int64_t gpus_ = 0, dp_ = 0;
  bool one_layer_ = false, has_experts_ = false;
  TrainingStep result_;
};

void RowReader::read_source() {
  const std::string experts =
      integer_or("ep", 1) > 1 ? " experts " + text("model") : "";  // recipes depend on the model
  profile_ =
      &terms_.profile(result_.source + text("notes") + text("gpu") + text("dtype") + experts, integer_or("year", 0));
  result_.gpu = meaning("gpu").value_or("");
  if (catalog_.entries("gpus").count(text("gpu"))) result_.gpu = text("gpu");
  result_.family = row_.given("family") ? text("family") : family();
  result_.weight = row_.real("weight").value_or(1);
  if (result_.weight <= 0) throw UnsupportedRow{"weight is not above 0", text("weight")};
  reject_renamed_columns(row_);
  result_.excluded_from_family = row_.integer("included") == 0;
  result_.exclusion_reason = text("exclusion_reason");
  const auto measured = row_.real("measured_step_s");
  if (row_.given("ran")) result_.ran = text("ran") == "true";
  if (!measured && row_.given("measured_tokens_per_s_per_gpu") && !row_.given("global_batch"))
    throw UnsupportedRow{"no step time: tokens/s are printed, but neither batch nor micro-batch", ""};
  if (!measured && result_.ran != false) throw UnsupportedRow{"no step time is printed", ""};
  if (measured && *measured <= 0) throw UnsupportedRow{"measured_step_s is not above 0", text("measured_step_s")};
  result_.measured_s = measured.value_or(0);
  const std::string about = normalized_text(result_.source + text("model") + text("notes"));
  if (about.find("lora") != std::string::npos && !row_.given("lora_rank"))
    throw UnsupportedRow{"the rank of its low-rank adapters is not given", ""};
  one_layer_ = about.find("perlayer") != std::string::npos || about.find("singlelayer") != std::string::npos;
  if (result_.gpu.empty()) throw UnsupportedRow{"its GPU is not in the catalog", text("gpu")};
  assigner_.defaults();
}

std::string RowReader::family() const {
  std::string name =
      profile_->named() ? profile_->family : result_.source.substr(0, result_.source.find_first_of("([;"));
  while (name.ends_with(' ')) name.pop_back();
  const auto fill = [&name](const std::string& hole, const std::string& with) {
    if (const auto at = name.find(hole); at != std::string::npos) name.replace(at, hole.size(), with);
  };
  std::string gpu = result_.gpu.substr(0, result_.gpu.find('_'));
  std::transform(gpu.begin(), gpu.end(), gpu.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  const bool sharded = text("zero_stage").starts_with('3');
  fill("{gpu}", gpu);
  const auto& models = catalog_.entries("models");
  const auto model = models.find(meaning("model").value_or(""));
  const bool experts = model != models.end() && model->second.values.count("experts") > 0;
  fill("{kind}", experts || row_.integer("ep").value_or(1) > 1 ? "MoE" : "dense");
  fill("{sharding}", sharded ? "ZeRO-3" : "3D");
  return name;
}

void RowReader::read_machines() {
  gpus_ = required_integer("num_gpus");
  set("cluster.gpu", result_.gpu);
  std::int64_t node_size = integer_or("gpus_per_node", 8);
  // A scale-up domain may join several servers: a rack of GB200 NVL72 is one node, whose size must divide the number of
  // GPUs.
  const std::int64_t domain = std::get<std::int64_t>(settings_.at("cluster.gpu.scale_up_domain"));
  if (domain > 16)
    for (node_size = std::min(gpus_, domain); gpus_ % node_size != 0;) --node_size;
  node_size = std::min(node_size, gpus_);
  if (node_size < 1 || gpus_ % node_size != 0)
    throw UnsupportedRow{"num_gpus is no multiple of gpus_per_node", fmt::format("{} of {}", gpus_, node_size)};
  set("cluster.nodes", gpus_ / node_size);
  set("cluster.gpus_per_node", node_size);
  if (const auto intra = row_.real("intra_bw_GBps")) set("cluster.gpu.scale_up_gb_per_s", fmt::format("{}", *intra));
  set_nic(gpus_ / node_size);
  set("topology", "rail_optimized");
  set("transport", "static_window");
  set("collectives.protocol", "calibrated");
  set("collectives.all_to_all", "node_aware");  // as NCCL's PXN routes traffic between nodes
  // Four packets of 4 KiB are simulated as one: step times differ by a few per mille, at a third of the cost.
  set("transport.payload_bytes", "16384");
  // A measured step ended, so the number of its packets is not limited.
  set("limit.link_hops", kNoLimit);
  set("limit.events", kNoLimit);
}

/// Sets the NIC rate of the row, of its source's cluster, of a catalog cluster with its GPU, or the default.
void RowReader::set_nic(std::int64_t nodes) {
  if (const auto inter = row_.real("inter_bw_GBps_per_gpu"))
    return set("cluster.nic_gbps", fmt::format("{}", *inter * 8));
  if (nodes > 1) assume("inter_bw_GBps_per_gpu");
  const std::string cluster = row_.given("cluster") ? text("cluster") : profile_->cluster;
  std::optional<double> rate_with_gpu;
  for (const auto& [name, entry] : catalog_.entries("clusters")) {
    const auto nic = entry.values.find("nic_gbps"), gpu = entry.values.find("gpu");
    if (nic == entry.values.end()) continue;
    const double gbps = std::get<double>(nic->second.value);
    if (name == cluster) {
      for (const auto& [key, value] : entry.values)
        if (key == "nic_gbps" || key == "pipeline_host_us") settings_["cluster." + key] = value.value;
      return;
    }
    if (!rate_with_gpu && gpu != entry.values.end() && std::get<std::string>(gpu->second.value) == result_.gpu)
      rate_with_gpu = gbps;
  }
  set("cluster.nic_gbps", fmt::format("{}", rate_with_gpu.value_or(kDefaultNicGbps)));
}

void RowReader::read_model() {
  const std::string name = text("model");
  std::string known = catalog_.entries("models").count(name) ? name : terms_.meaning("model", name).value_or("");
  if (row_.given("catalog_model")) known = text("catalog_model");
  const bool found = catalog_.entries("models").count(known) > 0;
  if (found) set("model", known);
  for (const core::OptionInfo& info : catalog_section("models").options) {
    std::string column = info.name;
    for (const RenamedColumn& renamed : kRenamedColumns)
      if (info.name == renamed.option) column = renamed.column;
    if (info.name != "name" && row_.given(column)) set("model." + info.name, text(column.c_str()));
  }
  if (!found) set_style();
  has_experts_ = has_key("model.experts") && std::get<std::int64_t>(settings_.at("model.experts")) > 0;
  if (integer_or("ep", 1) > 1 && !has_experts_) throw UnsupportedRow{"the shape of its experts is not given", name};
  if (one_layer_) set("model.layers", 1);
}

void RowReader::set_style() {
  for (const char* column : {"layers", "hidden", "heads"})
    if (!row_.given(column))
      throw UnsupportedRow{"the shape of its model is not given", fmt::format("{}: {}", text("model"), column)};
  const std::string whose = terms_.meaning("style", text("model")).value_or("gpt");
  const Style* style =
      std::find_if(std::begin(kStyles), std::end(kStyles), [&](const Style& s) { return whose == s.name; });
  MANYWORLDS_CHECK(style != std::end(kStyles), "words.csv names the unknown style '{}'", whose);
  if (whose == "llama" && !row_.given("ffn_hidden"))
    throw UnsupportedRow{"the shape of its model is not given", fmt::format("{}: ffn_hidden", text("model"))};
  const std::pair<const char*, const char*> all[] = {
      {"norm", style->norm},         {"activation", style->activation},
      {"position", style->position}, {"tied_embeddings", style->tied_embeddings},
      {"biases", style->biases},     {"dropout", style->dropout}};
  for (const auto& [option, value] : all)
    if (!row_.given(option)) set(std::string("model.") + option, value);
  set("model.name", text("model"));
  if (row_.given("vocab")) return;
  set("model.vocabulary", style->vocabulary);
  assume("vocab");
}

void RowReader::read_strategy() {
  const std::int64_t tp = required_integer("tp"), pp = required_integer("pp"), cp = integer_or("cp", 1);
  const std::int64_t replica_size = tp * pp * cp;
  dp_ = row_.integer("dp").value_or(gpus_ / replica_size);
  if (dp_ * replica_size != gpus_)
    throw UnsupportedRow{"tp x pp x cp x dp is not num_gpus",
                         fmt::format("{} x {} x {} x {}, {}", tp, pp, cp, dp_, gpus_)};
  set("strategy.tp", tp);
  set("strategy.pp", pp);
  set_unless("strategy.cp", std::to_string(cp), "1");
  const bool spreads_experts = has_experts_ && profile_->experts_over_replicas && integer_or("ep", 1) == 1;
  if (spreads_experts) assume("ep");
  set_unless("strategy.ep", std::to_string(spreads_experts ? dp_ : integer_or("ep", 1)), "1");
  set("strategy.micro_batch", required_integer("micro_batch"));
  set("strategy.global_batch", required_integer("global_batch"));
  set_schedule(pp);
  set("strategy.sequence_parallel",
      (row_.integer("sequence_parallel").value_or(profile_->sequence_parallel ? 1 : 0) == 1 && tp > 1) ? "true"
                                                                                                       : "false");
  if (!row_.given("sequence_parallel") && tp > 1) assume("sequence_parallel");
  const std::string zero = text("zero_stage");
  const bool is_numbered = !zero.empty() && zero[0] >= '0' && zero[0] <= '3';
  const auto given_text = is_numbered ? std::optional(zero.substr(0, 1)) : meaning("zero_stage");
  if (!given_text && dp_ > 1) assume("zero_stage");
  set("strategy.zero", dp_ * cp > 1 ? given_text.value_or(std::to_string(profile_->zero)) : "0");
  if (std::get<std::int64_t>(settings_.at("strategy.zero")) == 3 && !profile_->sharded_by.empty())
    for (const char* kind : {"collectives.all_gather", "collectives.reduce_scatter"}) set(kind, profile_->sharded_by);
  set("strategy.overlap_grad_reduce", profile_->overlap_grad_reduce ? "true" : "false");
  set_stack();
  set_strategy_columns();
  choose_recompute();
}

/// Sets options of the strategy and of collectives whose columns have their names in a sweep.
void RowReader::set_strategy_columns() {
  for (const std::string& column : row_.header().names)
    if ((column.starts_with("strategy.") || column.starts_with("collectives.")) && row_.given(column))
      set(column, text(column.c_str()));
}

void RowReader::set_schedule(std::int64_t pp) {
  const std::int64_t chunks = pp > 1 ? integer_or("vpp_interleave", 1) : 1;
  if (pp > 1 && !row_.given("vpp_interleave")) assume("vpp_interleave");
  std::string schedule = meaning("schedule").value_or("1f1b");
  if (pp == 1) schedule = "1f1b";
  if (schedule == "1f1b" || schedule == "interleaved") schedule = chunks > 1 ? "interleaved" : "1f1b";
  set("strategy.schedule", schedule);
  set("strategy.virtual_stages", chunks);
  set_split(pp * chunks);
}

/// Splits layers as the row says or its stack does. Others split layers that do not divide over the chunks: one fewer
/// at both ends if that divides; otherwise fewer in the last.
void RowReader::set_split(std::int64_t stages) {
  const std::int64_t layers = std::get<std::int64_t>(settings_.at("model.layers"));
  if (row_.given("split")) return set("strategy.split", text("split"));
  const std::string software = row_.given("stack") ? text("stack") : profile_->stack;
  const auto stack = catalog_.entries("stacks").find(software);
  if (stages > 1 && stack != catalog_.entries("stacks").end())
    if (const auto split = stack->second.recipe.find("split"); split != stack->second.recipe.end())
      return set("strategy.split", std::get<std::string>(split->second.value));
  if (layers % stages == 0) return;
  assume("split");
  set("strategy.split", (layers + 2) % stages == 0 ? "light_ends" : "light_last");
}

/// Sets a stack of the catalog, with the library of its time and the buckets of its recipe.
void RowReader::set_known_stack(const std::string& name, const CatalogEntry& entry) {
  set("strategy.stack", name);
  if (!entry.library.empty()) set("collectives.version", entry.library);
  if (const auto buckets = entry.recipe.find("bucket_parameters"); buckets != entry.recipe.end())
    set("strategy.bucket_parameters", std::get<std::int64_t>(buckets->second.value));
}

void RowReader::set_stack() {
  const std::string stack = row_.given("stack") ? text("stack") : profile_->stack;
  if (!row_.given("stack") && !profile_->named()) assume("stack");
  const Catalog::Entries& stacks = catalog_.entries("stacks");
  const auto known = stacks.find(stack);
  if (known == stacks.end() && row_.given("stack")) throw UnsupportedRow{"its stack is not in the catalog", stack};
  if (known != stacks.end()) set_known_stack(stack, known->second);
  // Chunked collectives beside GEMMs need sequence parallelism and NVLink; the software does not use them without.
  const std::string chunked_overlap = "strategy.stack.overlap_tensor";
  const bool over_nodes = std::get<std::int64_t>(settings_.at("strategy.tp")) >
                          std::get<std::int64_t>(settings_.at("cluster.gpus_per_node"));
  if (has_key(chunked_overlap) && (over_nodes || !std::get<bool>(settings_.at("strategy.sequence_parallel"))))
    set(chunked_overlap, "false");
  // Late gathers need an optimizer shard: replicas that share no states, or all of them, have none.
  const std::int64_t zero = std::get<std::int64_t>(settings_.at("strategy.zero"));
  if (zero == 0 || zero == 3) set("strategy.stack.overlap_parameters", "false");
  // Software that splits backward passes checks the gradient norm after the optimizer (Qi et al. 2024, section 4).
  if (std::get<std::string>(settings_.at("strategy.schedule")).starts_with("zb_"))
    set("strategy.stack.post_validation", "true");
  const std::string given_text = meaning("dtype").value_or("bf16");
  if (!row_.given("dtype")) assume("dtype");
  if (has_key("strategy.stack.precision"))
    set("strategy.stack.precision", given_text);
  else if (given_text != "bf16" && given_text != "fp16")
    throw UnsupportedRow{"its precision is not modelled", given_text};
  for (const core::OptionInfo& info : catalog_section("stacks").options) {
    const std::string column = "stack." + info.name;  // without the prefix, some would be options of the model
    if (row_.given(column)) set("strategy." + column, text(column.c_str()));
  }
}

/// Uses the recompute of the row or of its source; otherwise the first of none, selective and full that fits into
/// memory, as a user would try them.
void RowReader::choose_recompute() {
  if (const auto given_text = meaning("recompute")) return set("strategy.recompute", *given_text);
  if (row_.given("recompute")) throw UnsupportedRow{"its recompute is not modelled", text("recompute")};
  assume("recompute");
  if (!profile_->recompute.empty()) return set("strategy.recompute", profile_->recompute);
  for (const char* comparison_group : {"none", "selective", "full"}) {
    set("strategy.recompute", comparison_group);
    const auto result = config_of(settings_).configuration;
    if (result.strategy.dp < 1 || find_violation(config_of(settings_), graphs_)) return;  // finish() reports it
    if (static_cast<double>(core::memory::peak(result.model, result.strategy, result.gpu).total()) <=
        result.gpu.memory_gib * static_cast<double>(1 << 30))
      return;
  }
}

std::string RowReader::settings_text(const std::string& prefix,
                                     const std::set<std::string, std::less<>>& without) const {
  std::string result;
  for (const auto& [key, value] : settings_)
    if (key.starts_with(prefix) && !without.count(key)) result += fmt::format("{}={} ", key, to_json(value).dump());
  return result;
}

void RowReader::finish() {
  fit_networks(settings_);
  derive(settings_);
  if (const std::string missing = borrow_calibration(settings_, catalog_); !missing.empty())
    throw UnsupportedRow{"its GPU has no calibrated library", missing};
  if (const auto [key, what] = missing_required(settings_); !key.empty())
    throw UnsupportedRow{"a value of its GPU is not published", what};
  const ExperimentConfig config = config_of(settings_);
  if (const auto violation = find_violation(config, graphs_)) {
    const auto rule =
        std::find_if(rules().begin(), rules().end(), [&](const Rule& r) { return r.name == violation->rule; });
    // A layout that its software refuses is predicted not to run; what only this program cannot build is not predicted.
    if (result_.ran == false && !rule->source.starts_with("by construction")) {
      result_.fits_memory = false;
      throw UnsupportedRow{kDidNotRun, "predicted to be refused: " + violation->reason};
    }
    throw UnsupportedRow{rule->reason, violation->reason};
  }
  const auto& result = config.configuration;
  const double usable = result.gpu.memory_gib * static_cast<double>(1 << 30);
  result_.fits_memory =
      static_cast<double>(core::memory::peak(result.model, result.strategy, result.gpu).total()) <= usable;
  result_.comparison_group =
      fmt::format("{}|{}|{}|{}|{}", settings_text("model.", {"model.name", "model.carried"}), result_.gpu, gpus_,
                  result.strategy.global_batch, meaning("dtype").value_or(""));
  result_.choice = fmt::format("{} on {} {}", text("model"), gpus_, result_.gpu);
  result_.layout = settings_text("strategy.", {"strategy.global_batch"});
  result_.rank_memory = read_rank_memory(row_, gpus_);
  if (result_.measured_s == 0)
    throw UnsupportedRow{kDidNotRun, result_.fits_memory ? "predicted to fit into memory" : "predicted not to fit"};
  // The row was measured, so it fitted: the memory model must not keep it from being simulated.
  if (!result_.fits_memory) set("cluster.gpu.memory_gib", "1000000");
  result_.experiments.push_back(settings_);
  if (!one_layer_) return;
  result_.experiments.insert(result_.experiments.begin(), settings_);
  result_.experiments.front()["model.layers"] = std::int64_t{2};
}

}  // namespace

bool is_training_steps_table(const import::CsvHeader& header) {
  return std::all_of(std::begin(kRequiredColumns), std::end(kRequiredColumns),
                     [&](const char* name) { return header.has(name); });
}

std::vector<TrainingStep> read_training_steps(const import::CsvTable& table, const Catalog& catalog) {
  const TermTable terms;
  GraphCache graphs;
  std::vector<TrainingStep> steps;
  for (const CsvRow& row : table.rows) steps.push_back(RowReader(row, terms, catalog, graphs).read());
  return steps;
}

}  // namespace manyworlds::experiments::measured
