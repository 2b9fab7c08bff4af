#include "experiments/measured/training_steps.hpp"

#include <algorithm>
#include <set>

#include "core/memory/footprint.hpp"
#include "experiments/measured/words.hpp"
#include "experiments/rules/validity.hpp"
#include "experiments/settings/calibration.hpp"
#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments::measured {
namespace {

using import::CsvRow;
using import::Node;

/// Ends the reading of one row.
struct LeftOut {
  std::string reason, detail;
};

// Columns without which a table is none of training steps.
constexpr const char* kNeeded[] = {"id", "source", "model", "gpu", "num_gpus", "global_batch", "measured_step_s"};

/// Options of a model by the columns that have always had other names.
struct Renamed {
  const char *column, *option;
};
constexpr Renamed kRenamed[] = {{"vocab", "vocabulary"}, {"seq_len", "sequence"}};

/// What a model has that is described by its dimensions alone; words.csv tells whose style it is.
struct Style {
  const char *name, *norm, *activation, *position, *tied_embeddings, *biases, *dropout, *vocabulary;
};
constexpr Style kStyles[] = {
    {"gpt", "layer_norm", "gelu", "learned", "true", "true", "true", "50257"},
    {"mpt", "layer_norm", "gelu", "learned", "true", "true", "false", "50368"},
    {"llama", "rms_norm", "swiglu", "rotary", "false", "false", "false", "32000"},
};

/// NICs where neither row nor source names any: the clusters that the catalog has for a GPU, or as they are usual.
constexpr double kUsualNicGbps = 400;
constexpr std::int64_t kNoLimit = 9'007'199'254'740'992;  // the largest that may be set

class RowReader {
 public:
  RowReader(const CsvRow& row, const Words& words, const Catalog& catalog, GraphCache& graphs)
      : row_(row), words_(words), catalog_(catalog), graphs_(graphs), assigner_(catalog, settings_, nullptr) {}

  TrainingStep read() {
    made_.id = row_.text("id");
    made_.source = row_.text("source");
    made_.line = row_.line();
    try {
      read_said();
      read_machines();
      read_model();
      read_strategy();
      finish();
    } catch (const LeftOut& why) {
      made_.left_out = why.reason;
      made_.detail = why.detail;
    } catch (const core::InputError& error) {
      made_.left_out = "a field cannot be read";
      made_.detail = error.what();
    }
    if (!made_.left_out.empty()) made_.experiments.clear();
    return std::move(made_);
  }

 private:
  std::string text(const char* column) const { return std::string(row_.text(column)); }

  void assume(const char* column) { made_.assumed.emplace_back(column); }

  std::int64_t whole(const char* column, std::int64_t otherwise) const {
    return row_.integer(column).value_or(otherwise);
  }

  /// What a row must say itself.
  std::int64_t needed(const char* column) const {
    const auto value = row_.integer(column);
    if (!value) throw LeftOut{fmt::format("{} is not printed", column), ""};
    if (*value < 1) throw LeftOut{fmt::format("{} is below 1", column), text(column)};
    return *value;
  }

  Node node(std::string value) const {
    Node made;
    made.kind = Node::Kind::scalar;
    made.text = std::move(value);
    made.file = std::make_shared<const std::string>(row_.header().file);
    made.line = row_.line();
    return made;
  }

  /// As a user would have set it. What no sweep can say yet is no fault of the row's, but it cannot be simulated.
  void set(const std::string& key, const std::string& value) {
    try {
      const Node given = node(value);
      assigner_.assign(find_key(key, given), given);
    } catch (const core::InputError& error) {
      throw LeftOut{fmt::format("{} is not modelled as the row has it", key), error.what()};
    }
  }
  void set(const std::string& key, std::int64_t value) { set(key, std::to_string(value)); }

  /// As set(), where `usual` is what holds when there is no such option.
  void set_unless(const std::string& key, const std::string& value, const std::string& usual) {
    if (value != usual || knows(key)) set(key, value);
  }

  bool knows(const std::string& key) const {
    try {
      find_key(key, node(""));
      return true;
    } catch (const core::InputError&) {
      return false;
    }
  }

  std::optional<std::string> meaning(const char* column) const {
    const std::string said = text(column);
    return said.empty() ? std::nullopt : words_.meaning(column, said);
  }

  void read_said();
  void read_machines();
  void set_nic(std::int64_t nodes);
  void read_model();
  void set_style();
  void read_strategy();
  void set_split(std::int64_t stages);
  void set_schedule(std::int64_t pp);
  void set_stack();
  void pick_recompute();
  void finish();
  std::string family() const;
  std::string settings_text(const std::string& prefix, const std::set<std::string>& without) const;

  const CsvRow& row_;
  const Words& words_;
  const Catalog& catalog_;
  GraphCache& graphs_;
  Settings settings_;
  Assigner assigner_;
  const Origin* origin_ = nullptr;
  std::int64_t gpus_ = 0, dp_ = 0;
  bool one_layer_ = false, experts_ = false;
  TrainingStep made_;
};

void RowReader::read_said() {
  const std::string experts = whole("ep", 1) > 1 ? " experts " + text("model") : "";  // recipes differ by model
  origin_ = &words_.origin(made_.source + text("notes") + text("gpu") + text("dtype") + experts, whole("year", 0));
  made_.gpu = meaning("gpu").value_or("");
  if (catalog_.of("gpus").count(text("gpu"))) made_.gpu = text("gpu");
  made_.family = row_.given("family") ? text("family") : family();
  made_.weight = row_.real("weight").value_or(1);
  if (made_.weight <= 0) throw LeftOut{"weight is not above 0", text("weight")};
  made_.apart = row_.integer("fit") == 0;
  made_.apart_because = text("apart_because");
  const auto measured = row_.real("measured_step_s");
  if (!measured) throw LeftOut{"no step time is printed", ""};
  if (*measured <= 0) throw LeftOut{"measured_step_s is not above 0", text("measured_step_s")};
  made_.measured_s = *measured;
  const std::string about = squeezed(made_.source + text("model") + text("notes"));
  if (about.find("lora") != std::string::npos) throw LeftOut{"low-rank adapters are not modelled", ""};
  one_layer_ = about.find("perlayer") != std::string::npos || about.find("singlelayer") != std::string::npos;
  if (made_.gpu.empty()) throw LeftOut{"its GPU is not in the catalog", text("gpu")};
  assigner_.defaults();
}

std::string RowReader::family() const {
  std::string name = origin_->named() ? origin_->family : made_.source.substr(0, made_.source.find_first_of("([;"));
  while (name.ends_with(' ')) name.pop_back();
  const auto fill = [&name](const std::string& hole, const std::string& with) {
    if (const auto at = name.find(hole); at != std::string::npos) name.replace(at, hole.size(), with);
  };
  std::string gpu = made_.gpu.substr(0, made_.gpu.find('_'));
  std::transform(gpu.begin(), gpu.end(), gpu.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  const bool sharded = text("zero_stage").starts_with('3');
  fill("{gpu}", gpu);
  const auto& models = catalog_.of("models");
  const auto model = models.find(meaning("model").value_or(""));
  const bool experts = model != models.end() && model->second.figures.count("experts") > 0;
  fill("{kind}", experts || row_.integer("ep").value_or(1) > 1 ? "MoE" : "dense");
  fill("{cut}", sharded ? "ZeRO-3" : "3D");
  return name;
}

void RowReader::read_machines() {
  gpus_ = needed("num_gpus");
  set("cluster.gpu", made_.gpu);
  std::int64_t of_node = whole("gpus_per_node", 8);
  // What joins the GPUs of a node may join more: a rack of GB200 NVL72 is one node with as many as divide the whole.
  const std::int64_t domain = std::get<std::int64_t>(settings_.at("cluster.gpu.scale_up_domain"));
  if (domain > 16)
    for (of_node = std::min(gpus_, domain); gpus_ % of_node != 0;) --of_node;
  of_node = std::min(of_node, gpus_);
  if (of_node < 1 || gpus_ % of_node != 0)
    throw LeftOut{"num_gpus is no multiple of gpus_per_node", fmt::format("{} of {}", gpus_, of_node)};
  set("cluster.nodes", gpus_ / of_node);
  set("cluster.gpus_per_node", of_node);
  if (const auto intra = row_.real("intra_bw_GBps")) set("cluster.gpu.scale_up_gb_per_s", fmt::format("{}", *intra));
  set_nic(gpus_ / of_node);
  set("topology", "rail_optimized");
  set("transport", "static_window");
  set("collectives.protocol", "calibrated");
  set("collectives.all_to_all", "node_aware");  // as NCCL's PXN sends what crosses nodes
  // Four packets of 4 KiB as one: step times differ by some per mille, and cost a third.
  set("transport.payload_bytes", "16384");
  // A measured step ended, however many packets it takes.
  set("limit.link_hops", kNoLimit);
  set("limit.events", kNoLimit);
}

/// NICs of the row, of the cluster of its source, of a cluster with its GPU, or the usual ones.
void RowReader::set_nic(std::int64_t nodes) {
  if (const auto inter = row_.real("inter_bw_GBps_per_gpu"))
    return set("cluster.nic_gbps", fmt::format("{}", *inter * 8));
  if (nodes > 1) assume("inter_bw_GBps_per_gpu");
  const std::string cluster = row_.given("cluster") ? text("cluster") : origin_->cluster;
  std::optional<double> of_gpu;
  for (const auto& [name, entry] : catalog_.of("clusters")) {
    const auto nic = entry.figures.find("nic_gbps"), gpu = entry.figures.find("gpu");
    if (nic == entry.figures.end()) continue;
    const double gbps = std::get<double>(nic->second.value);
    if (name == cluster) return set("cluster.nic_gbps", fmt::format("{}", gbps));
    if (!of_gpu && gpu != entry.figures.end() && std::get<std::string>(gpu->second.value) == made_.gpu) of_gpu = gbps;
  }
  set("cluster.nic_gbps", fmt::format("{}", of_gpu.value_or(kUsualNicGbps)));
}

void RowReader::read_model() {
  const std::string name = text("model");
  std::string known = catalog_.of("models").count(name) ? name : words_.meaning("model", name).value_or("");
  if (row_.given("catalog_model")) known = text("catalog_model");
  const bool found = catalog_.of("models").count(known) > 0;
  if (found) set("model", known);
  for (const core::OptionInfo& info : catalog_branch("models").options) {
    std::string column = info.name;
    for (const Renamed& renamed : kRenamed)
      if (info.name == renamed.option) column = renamed.column;
    if (info.name != "name" && row_.given(column)) set("model." + info.name, text(column.c_str()));
  }
  if (!found) set_style();
  experts_ = knows("model.experts") && std::get<std::int64_t>(settings_.at("model.experts")) > 0;
  if (whole("ep", 1) > 1 && !experts_) throw LeftOut{"the shape of its experts is not given", name};
  if (one_layer_) set("model.layers", 1);
}

void RowReader::set_style() {
  for (const char* column : {"layers", "hidden", "heads"})
    if (!row_.given(column))
      throw LeftOut{"the shape of its model is not given", fmt::format("{}: {}", text("model"), column)};
  const std::string whose = words_.meaning("style", text("model")).value_or("gpt");
  const Style* style =
      std::find_if(std::begin(kStyles), std::end(kStyles), [&](const Style& s) { return whose == s.name; });
  MANYWORLDS_CHECK(style != std::end(kStyles), "words.csv names the unknown style '{}'", whose);
  if (whose == "llama" && !row_.given("ffn_hidden"))
    throw LeftOut{"the shape of its model is not given", fmt::format("{}: ffn_hidden", text("model"))};
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
  const std::int64_t tp = needed("tp"), pp = needed("pp"), cp = whole("cp", 1);
  const std::int64_t cut = tp * pp * cp;
  dp_ = row_.integer("dp").value_or(gpus_ / cut);
  if (dp_ * cut != gpus_)
    throw LeftOut{"tp x pp x cp x dp is not num_gpus", fmt::format("{} x {} x {} x {}, {}", tp, pp, cp, dp_, gpus_)};
  set("strategy.tp", tp);
  set("strategy.pp", pp);
  set_unless("strategy.cp", std::to_string(cp), "1");
  const bool spread = experts_ && origin_->experts_over_replicas && whole("ep", 1) == 1;
  if (spread) assume("ep");
  set_unless("strategy.ep", std::to_string(spread ? dp_ : whole("ep", 1)), "1");
  set("strategy.micro_batch", needed("micro_batch"));
  set("strategy.global_batch", needed("global_batch"));
  set_schedule(pp);
  set("strategy.sequence_parallel",
      (row_.integer("sequence_parallel").value_or(origin_->sequence_parallel ? 1 : 0) == 1 && tp > 1) ? "true"
                                                                                                      : "false");
  if (!row_.given("sequence_parallel") && tp > 1) assume("sequence_parallel");
  const std::string zero = text("zero_stage");
  const bool numbered = !zero.empty() && zero[0] >= '0' && zero[0] <= '3';
  const auto said = numbered ? std::optional(zero.substr(0, 1)) : meaning("zero_stage");
  if (!said && dp_ > 1) assume("zero_stage");
  set("strategy.zero", dp_ * cp > 1 ? said.value_or(std::to_string(origin_->zero)) : "0");
  if (std::get<std::int64_t>(settings_.at("strategy.zero")) == 3 && !origin_->sharded_by.empty())
    for (const char* kind : {"collectives.all_gather", "collectives.reduce_scatter"}) set(kind, origin_->sharded_by);
  set("strategy.overlap_grad_reduce", origin_->overlap_grad_reduce ? "true" : "false");
  set_stack();
  pick_recompute();
}

void RowReader::set_schedule(std::int64_t pp) {
  const std::int64_t chunks = pp > 1 ? whole("vpp_interleave", 1) : 1;
  if (pp > 1 && !row_.given("vpp_interleave")) assume("vpp_interleave");
  std::string schedule = meaning("schedule").value_or("1f1b");
  if (pp == 1) schedule = "1f1b";
  if (schedule == "1f1b" || schedule == "interleaved") schedule = chunks > 1 ? "interleaved" : "1f1b";
  set("strategy.schedule", schedule);
  set("strategy.virtual_stages", chunks);
  set_split(pp * chunks);
}

/// Layers that the chunks do not share evenly: one fewer at both ends if that makes it even, otherwise fewer at the
/// last.
void RowReader::set_split(std::int64_t stages) {
  const std::int64_t layers = std::get<std::int64_t>(settings_.at("model.layers"));
  if (row_.given("split")) return set("strategy.split", text("split"));
  if (layers % stages == 0) return;
  assume("split");
  set("strategy.split", (layers + 2) % stages == 0 ? "light_ends" : "light_last");
}

void RowReader::set_stack() {
  std::string stack = row_.given("stack") ? text("stack") : origin_->stack;
  if (!row_.given("stack") && !origin_->named()) assume("stack");
  if (catalog_.of("stacks").count(stack)) set("strategy.stack", stack);
  // Pieces of collectives beside GEMMs need sequence parallelism; without it that software does not take them.
  const std::string pieces = "strategy.stack.overlap_tensor";
  if (knows(pieces) && !std::get<bool>(settings_.at("strategy.sequence_parallel"))) set(pieces, "false");
  // What it gathers late is what an optimizer shard wrote; replicas that share nothing, or all, have none.
  const std::int64_t zero = std::get<std::int64_t>(settings_.at("strategy.zero"));
  if (zero == 0 || zero == 3) set("strategy.stack.overlap_parameters", "false");
  // Those who split backward passes check the norm of gradients after the optimizer (Qi et al. 2024, section 4).
  if (std::get<std::string>(settings_.at("strategy.schedule")).starts_with("zb_"))
    set("strategy.stack.post_validation", "true");
  const std::string said = meaning("dtype").value_or("bf16");
  if (!row_.given("dtype")) assume("dtype");
  if (knows("strategy.stack.precision"))
    set("strategy.stack.precision", said);
  else if (said != "bf16" && said != "fp16")
    throw LeftOut{"its precision is not modelled", said};
  for (const core::OptionInfo& info : catalog_branch("stacks").options) {
    const std::string column = "stack." + info.name;  // alone some would be those of the model
    if (row_.given(column)) set("strategy." + column, text(column.c_str()));
  }
}

/// As the row says, or what is known of its source; otherwise what a user would take who tries none, selective and full
/// until one fits.
void RowReader::pick_recompute() {
  if (const auto said = meaning("recompute")) return set("strategy.recompute", *said);
  if (row_.given("recompute")) throw LeftOut{"its recompute is not modelled", text("recompute")};
  assume("recompute");
  if (!origin_->recompute.empty()) return set("strategy.recompute", origin_->recompute);
  for (const char* choice : {"none", "selective", "full"}) {
    set("strategy.recompute", choice);
    const auto made = world_of(settings_).configuration;
    if (made.strategy.dp < 1 || find_violation(world_of(settings_), graphs_)) return;  // finish() says what it is
    if (static_cast<double>(core::memory::peak(made.model, made.strategy, made.gpu).total()) <=
        made.gpu.memory_gib * static_cast<double>(1 << 30))
      return;
  }
}

std::string RowReader::settings_text(const std::string& prefix, const std::set<std::string>& without) const {
  std::string made;
  for (const auto& [key, value] : settings_)
    if (key.starts_with(prefix) && !without.count(key)) made += fmt::format("{}={} ", key, to_json(value).dump());
  return made;
}

void RowReader::finish() {
  derive(settings_);
  if (const std::string lacking = lend_calibration(settings_, catalog_); !lacking.empty())
    throw LeftOut{"its GPU has no calibrated library", lacking};
  if (const auto [key, what] = absent_figure(settings_); !key.empty())
    throw LeftOut{"a figure of its GPU is published nowhere", what};
  const World world = world_of(settings_);
  if (const auto violation = find_violation(world, graphs_)) {
    const auto rule =
        std::find_if(rules().begin(), rules().end(), [&](const Rule& r) { return r.name == violation->rule; });
    throw LeftOut{rule->reason, violation->reason};
  }
  const auto& made = world.configuration;
  const double usable = made.gpu.memory_gib * static_cast<double>(1 << 30);
  made_.fits = static_cast<double>(core::memory::peak(made.model, made.strategy, made.gpu).total()) <= usable;
  made_.choice = fmt::format("{}|{}|{}|{}|{}", settings_text("model.", {"model.name"}), made_.gpu, gpus_,
                             made.strategy.global_batch, meaning("dtype").value_or(""));
  made_.layout = settings_text("strategy.", {"strategy.global_batch"});
  // It was measured, so it fitted: what we think of its memory must not keep it from being simulated.
  if (!made_.fits) set("cluster.gpu.memory_gib", "1000000");
  made_.experiments.push_back(settings_);
  if (!one_layer_) return;
  made_.experiments.insert(made_.experiments.begin(), settings_);
  made_.experiments.front()["model.layers"] = std::int64_t{2};
}

}  // namespace

bool is_training_steps(const import::CsvHeader& header) {
  return std::all_of(std::begin(kNeeded), std::end(kNeeded), [&](const char* name) { return header.has(name); });
}

std::vector<TrainingStep> read_training_steps(const import::CsvTable& table, const Catalog& catalog) {
  const Words words;
  GraphCache graphs;
  std::vector<TrainingStep> steps;
  for (const CsvRow& row : table.rows) steps.push_back(RowReader(row, words, catalog, graphs).read());
  return steps;
}

}  // namespace manyworlds::experiments::measured
