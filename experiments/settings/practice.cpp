// Defaults of today's practice. Each convention is one row: a key, and its value given the settings known by then.
#include "experiments/settings/practice.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "experiments/config/config_schema.hpp"
#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionValue;

constexpr const char* kStack = "strategy.stack.";
constexpr const char* kStackName = "strategy.stack.name";
constexpr const char* kProtocol = "collectives.protocol";
constexpr const char* kLibraryVersion = "collectives.version";
constexpr const char* kFeedForward = "model.ffn_hidden";
constexpr const char* kBucketParameters = "strategy.bucket_parameters";
constexpr const char* kSplit = "strategy.split";
constexpr const char* kDefaultStack = "megatron-core";
/// Mean error of predicted memory peaks of models with experts, the larger of the two kinds that fill a GPU (rows
/// "memory" of the table in docs/accuracy.md).
constexpr double kMemoryHeadroom = 0.04;
/// Ports of NVIDIA's Quantum-2 QM9700 (400 Gb/s each), and of Ethernet switches of 25.6 and 51.2 Tb/s.
constexpr std::int64_t kSwitchPorts = 64;
constexpr const char* kTopology = "topology";
constexpr const char* kDefaultTopology = "rail_optimized";
constexpr const char* kFabric = "cluster.fabric";
constexpr const char* kTransport = "transport";

std::int64_t integer(const Settings& settings, std::string_view key, std::int64_t fallback = 0) {
  const OptionValue* found = settings.value(key);
  return found == nullptr ? fallback : std::get<std::int64_t>(*found);
}

/// Returns whether a switch is on; false if it is absent or not boolean.
bool flag(const Settings& settings, std::string_view key) {
  const OptionValue* found = settings.value(key);
  const bool* on = found == nullptr ? nullptr : std::get_if<bool>(found);
  return on != nullptr && *on;
}

std::int64_t gpus(const Settings& settings) {
  std::int64_t nodes = integer(settings, "cluster.nodes", 1);
  for (const std::string group : kNodeGroups) nodes += integer(settings, "cluster." + group + ".nodes");
  return nodes * integer(settings, "cluster.gpus_per_node", 1);
}

/// Returns the number of ranks that hold the same parameters; 0 if the layout does not fit the GPUs, which a rule
/// reports.
std::int64_t replicas(const Settings& settings) {
  const std::int64_t stage = integer(settings, "strategy.tp", 1) * integer(settings, "strategy.pp", 1);
  return gpus(settings) % stage == 0 ? gpus(settings) / stage : 0;
}

/// Returns the nodes of a tensor-parallel group. Software overlaps its collectives with GEMMs only inside a node:
/// Transformer Engine's Userbuffers and PyTorch's symmetric memory need NVLink (NVIDIA/TransformerEngine issue 1071).
std::int64_t tensor_nodes(const Settings& settings) {
  const std::int64_t tp = integer(settings, "strategy.tp", 1), node = integer(settings, "cluster.gpus_per_node", 1);
  return (tp + node - 1) / node;
}

/// Returns the stack that was named, or today's default.
const CatalogEntry& stack_of(const Settings& settings, const Catalog& catalog) {
  const auto& stacks = catalog.entries("stacks");
  const auto named = stacks.find(settings.text(kStackName));
  return named == stacks.end() ? stacks.at(kDefaultStack) : named->second;
}

/// Returns the value of a strategy key in the stack's own recipe; null if the recipe has none.
const OptionValue* recipe_value(const Settings& settings, const Catalog& catalog, const std::string& key) {
  const CatalogEntry& stack = stack_of(settings, catalog);
  const auto found = stack.recipe.find(key);
  return found == stack.recipe.end() ? nullptr : &found->second.value;
}

/// Computes the value of a key; nothing if the chosen components have no such key.
using ComputeDefault = std::function<std::optional<OptionValue>(const Settings&, const Catalog&)>;

struct Convention {
  Convention(std::string of, ComputeDefault value)
      : key(std::move(of)), mark(deferred_mark(key)), today(std::move(value)) {}

  std::string key, mark;
  ComputeDefault today;
};

Convention constant_default(const std::string& key, OptionValue value) {
  return {key, [value](const Settings&, const Catalog&) { return value; }};
}

/// Returns the default of the option tables.
OptionValue table_default(const char* key) {
  return find_key(key, {}).option->default_value;
}

const OptionValue& default_bucket_parameters() {
  static const OptionValue value = table_default(kBucketParameters);
  return value;
}

const OptionValue& default_split() {
  static const OptionValue value = table_default(kSplit);
  return value;
}

/// Width of a gated layer in Llama: two thirds of 4 x hidden, rounded up to a multiple of 256.
std::int64_t gated_width(std::int64_t hidden) {
  return (8 * hidden / 3 + 255) / 256 * 256;
}

/// 0 means 4 x hidden. Models with experts get 0 too, since their layers of experts do not use this width.
OptionValue feed_forward(const Settings& settings, const Catalog&) {
  const bool gated = settings.text("model.activation") == "swiglu" && integer(settings, "model.experts") == 0;
  return gated ? gated_width(integer(settings, "model.hidden")) : std::int64_t{0};
}

/// Follows the stack's recipe if there are replicas to shard states over.
OptionValue zero(const Settings& settings, const Catalog& catalog) {
  const OptionValue* recipe = recipe_value(settings, catalog, "zero");
  const std::string exchange = settings.text("strategy.gradient_exchange");  // of factors only without ZeRO
  const bool sums = exchange.empty() || exchange == "sums";
  return recipe != nullptr && replicas(settings) > 1 && sums ? *recipe : OptionValue(std::int64_t{0});
}

/// Follows the stack's recipe; other software has the buckets of the option's default.
OptionValue bucket_parameters(const Settings& settings, const Catalog& catalog) {
  const OptionValue* recipe = recipe_value(settings, catalog, "bucket_parameters");
  return recipe != nullptr ? *recipe : default_bucket_parameters();
}

/// Follows the stack's recipe in a pipeline whose layers are neither listed nor filled up.
OptionValue split(const Settings& settings, const Catalog& catalog) {
  const OptionValue* recipe = recipe_value(settings, catalog, "split");
  const bool open = integer(settings, "strategy.pp", 1) > 1 && integer(settings, "strategy.empty_layers") == 0 &&
                    settings.text("strategy.stage_layers") == core::join_list({});
  return recipe != nullptr && open ? *recipe : default_split();
}

/// Follows the stack's recipe, and is on for models with experts, if the sequence can be sharded.
OptionValue sequence_parallel(const Settings& settings, const Catalog& catalog) {
  const OptionValue* recipe = recipe_value(settings, catalog, "sequence_parallel");
  const std::int64_t tp = integer(settings, "strategy.tp", 1), cp = integer(settings, "strategy.cp", 1);
  const bool divides = tp > 1 && integer(settings, "model.sequence") % (tp * cp) == 0;
  const bool wanted = (recipe != nullptr && std::get<bool>(*recipe)) || integer(settings, "model.experts") > 0;
  return divides && wanted;
}

/// Returns the NIC ports of a leaf switch with kSwitchPorts ports and this ratio of NIC ports to uplinks, as a multiple
/// of `group`; 0 if there is no such switch.
std::int64_t leaf_ports(double oversubscription, std::int64_t group) {
  for (auto up = static_cast<std::int64_t>(kSwitchPorts / (oversubscription + 1)); up > 0; --up) {
    const double down = static_cast<double>(up) * oversubscription;
    const auto whole_ports = static_cast<std::int64_t>(std::llround(down));
    if (std::abs(down - static_cast<double>(whole_ports)) < 1e-9 && whole_ports % group == 0) return whole_ports;
  }
  return 0;
}

double oversubscription(const Settings& settings) {
  const OptionValue* found = settings.value("topology.oversubscription");
  return found == nullptr ? 1 : std::get<double>(*found);
}

/// Returns the graph of a cluster that has one, otherwise the topology that the section began with, or nothing for a
/// single node, which has no fabric.
std::optional<OptionValue> topology(const Settings& settings, const Catalog&) {
  if (!settings.text(kFabric).empty()) return "graph";
  if (gpus(settings) == integer(settings, "cluster.gpus_per_node", 1)) return std::nullopt;
  return settings.text(kTopology);
}

/// Returns the cluster's own fabric, for a topology that is read from a file.
std::optional<OptionValue> topology_file(const Settings& settings, const Catalog&) {
  const std::string fabric = settings.text(kFabric);
  if (settings.text(kTopology) != "graph" || fabric.empty()) return std::nullopt;
  return fabric;
}

/// Returns as many nodes per pod as a switch has ports; 0, which means all nodes, if they all fit on one.
std::optional<OptionValue> rail_ports(const Settings& settings, const Catalog&) {
  if (settings.text(kTopology) != "rail_optimized") return std::nullopt;
  const std::int64_t ports = leaf_ports(oversubscription(settings), 1);
  return gpus(settings) / integer(settings, "cluster.gpus_per_node", 1) > ports ? ports : std::int64_t{0};
}

std::optional<OptionValue> leaf_hosts(const Settings& settings, const Catalog&) {
  const std::string fabric = settings.text(kTopology);
  if (fabric == "dragonfly_plus") return std::int64_t{0};
  if (fabric != "fat_tree") return std::nullopt;
  const double ratio = oversubscription(settings);
  const std::int64_t whole_nodes = leaf_ports(ratio, integer(settings, "cluster.gpus_per_node", 1));
  const std::int64_t ports = whole_nodes > 0 ? whole_nodes : leaf_ports(ratio, 1);
  return ports > 0 ? ports : std::int64_t{kSwitchPorts / 2};
}

bool is_roce(const Settings& settings) {
  return settings.text("cluster.network") == "roce";
}

/// NICs and switches for RoCE are set up for DCQCN; InfiniBand has credit-based flow control.
std::optional<OptionValue> transport(const Settings& settings, const Catalog&) {
  return is_roce(settings) ? std::optional<OptionValue>("dcqcn") : std::nullopt;
}

OptionValue routing(const Settings& settings, const Catalog&) {
  return is_roce(settings) ? "ecmp_hash" : "destination_mod_k";
}

/// Returns one sequence per GPU, rounded up to what every replica can divide into micro-batches, but at most the
/// option's maximum; a rule refuses a batch that then does not divide.
OptionValue global_batch(const Settings& settings, const Catalog&) {
  const std::int64_t cp = integer(settings, "strategy.cp", 1);
  const std::int64_t share =
      std::max<std::int64_t>(replicas(settings) / cp, 1) * integer(settings, "strategy.micro_batch", 1);
  const auto max_batch = static_cast<std::int64_t>(find_key("strategy.global_batch", {}).option->maximum);
  return std::min((gpus(settings) + share - 1) / share * share, max_batch);
}

/// Returns the version of the communication library that the stack had in its time, if that is not today's.
std::optional<OptionValue> library_version(const Settings& settings, const Catalog& catalog) {
  const std::string& version = stack_of(settings, catalog).library;
  return version.empty() ? std::nullopt : std::optional<OptionValue>(version);
}

const std::vector<Convention>& conventions() {
  static const std::vector<Convention> all{
      // The architecture of Llama; models in the catalog have their own values.
      {"model.sequence", [](const Settings&, const Catalog&) { return table_default("model.sequence"); }},
      constant_default("model.norm", "rms_norm"),
      constant_default("model.activation", "swiglu"),
      constant_default("model.position", "rotary"),
      constant_default("model.tied_embeddings", false),
      constant_default("model.biases", false),
      constant_default("model.dropout", false),
      {kFeedForward, feed_forward},
      {"strategy.zero", zero},
      {kBucketParameters, bucket_parameters},
      {kSplit, split},
      {"strategy.sequence_parallel", sequence_parallel},
      {"strategy.global_batch", global_batch},
      constant_default("collectives.all_reduce", "auto"),
      constant_default(kProtocol, "calibrated"),
      constant_default("collectives.channels", std::int64_t{0}),
      {kLibraryVersion, library_version},
      constant_default("cluster.memory_headroom", kMemoryHeadroom),
      {kTopology, topology},
      {"topology.file", topology_file},
      {"topology.nodes_per_pod", rail_ports},
      {"topology.leaf_hosts", leaf_hosts},
      {kTransport, transport},
      {"transport.routing", routing},
  };
  return all;
}

/// Returns whether a switch that the stack turns on has any effect in this layout.
bool has_effect(const Settings& settings, const std::string& option) {
  const std::int64_t stage = integer(settings, "strategy.zero");
  if (option == "overlap_parameters") return stage == 1 || stage == 2;
  if (option == "overlap_tensor")
    return integer(settings, "strategy.tp", 1) == 1 ||
           (flag(settings, "strategy.sequence_parallel") && tensor_nodes(settings) == 1);
  const bool tokens_travel = integer(settings, "model.experts") > 0 && integer(settings, "strategy.ep", 1) > 1;
  if (option == "overlap_experts")
    return tokens_travel && settings.text("strategy.recompute") != "full" &&
           (integer(settings, "strategy.pp", 1) == 1 || integer(settings, "strategy.virtual_stages", 1) > 1);
  if (option == "delay_expert_weights") return tokens_travel;
  if (option == "overlap_shared_expert") return tokens_travel && integer(settings, "model.shared_ffn_hidden") > 0;
  return true;
}

/// Returns the options of a stack, with their keys.
const std::vector<std::pair<std::string, const core::OptionInfo*>>& stack_options() {
  static const auto all = [] {
    std::vector<std::pair<std::string, const core::OptionInfo*>> options;
    for (const core::OptionInfo& info : catalog_section("stacks").options)
      options.emplace_back(kStack + info.name, &info);
    return options;
  }();
  return all;
}

/// Sets the stack's options, except switches without effect in this layout; options that it omits get their default.
void assume_stack(Settings& settings, const CatalogEntry& stack) {
  const bool several = integer(settings, "strategy.pp", 1) > 1 && integer(settings, "strategy.virtual_stages", 1) > 1;
  for (const auto& [key, option] : stack_options()) {
    if (settings.count(key) > 0) continue;
    const core::OptionInfo& info = *option;
    auto sourced = stack.values.find(info.name);
    const bool of_stages = several && stack.recipe.count("several_stages." + info.name) > 0;
    if (of_stages) sourced = stack.recipe.find("several_stages." + info.name);
    if (!of_stages && sourced == stack.values.end()) {
      if (has_default(info)) settings.set(key, info.default_value);
      continue;
    }
    const bool* on = std::get_if<bool>(&sourced->second.value);
    const bool without_effect = on != nullptr && *on && !has_effect(settings, info.name);
    settings.set(key, without_effect ? OptionValue(false) : sourced->second.value);
  }
}

/// Adds the options of the new component that the previous one did not have.
void add_component_options(Settings& settings, const std::string& section, const std::string& component) {
  for (const core::OptionInfo& info :
       find_choice(*find_section(config_schema().subsections, section), component)->options)
    if (has_default(info) && !is_deferred_today(section + "." + info.name))
      settings.add(section + "." + info.name, info.default_value);
}

std::string to_text(const OptionValue& value) {
  return std::visit([](const auto& held) { return fmt::format("{}", held); }, value);
}

}  // namespace

const std::vector<std::string>& practice_names() {
  static const std::vector<std::string> names{"today", "2021"};
  return names;
}

Practice practice_named(const std::string& name) {
  MANYWORLDS_CHECK(name == "today" || name == "2021", "practice '{}'", name);
  return name == "today" ? Practice::today : Practice::of_2021;
}

bool is_deferred_today(const std::string& path) {
  static const std::set<std::string> keys = [] {
    std::set<std::string> keys_open;
    for (const Convention& one : conventions()) keys_open.insert(one.key);
    return keys_open;
  }();
  return path.starts_with(kStack) || keys.count(path) > 0;
}

std::string default_component_today(const std::string& path, const std::string& of_2021) {
  return path == kTopology ? kDefaultTopology : of_2021;
}

std::string deferred_mark(const std::string& path) {
  return path + ".open";
}

Assumptions assume_of_model_file(Settings& settings) {
  constexpr const char* kSequence = "model.sequence";
  Assumptions filled{{}, settings.text(deferred_mark("model"))};
  if (const auto sequence = settings.find(deferred_mark(kSequence)); sequence != settings.end()) {
    filled.values[kSequence] = sequence->second;
    settings[kSequence] = filled.values.at(kSequence);
  }
  settings.erase(deferred_mark(kSequence));
  settings.erase(deferred_mark("model"));
  return filled;
}

Assumptions assume(Settings& settings, const Catalog& catalog, Practice practice) {
  Assumptions filled = assume_of_model_file(settings);
  if (practice != Practice::today) return filled;
  Settings today = assume_today(settings, catalog);
  for (const auto& [key, value] : filled.values) today.set(key, value);
  filled.values = std::move(today);
  return filled;
}

Settings assume_today(Settings& settings, const Catalog& catalog) {
  Settings filled;
  const auto fill = [&](const Convention& one) {
    const bool open = settings.erase(one.mark) > 0 || settings.count(one.key) == 0;
    std::optional<OptionValue> value = open ? one.today(settings, catalog) : std::nullopt;
    if (!value) return;
    settings.set(one.key, *value);
    if (one.key == kTransport || one.key == kTopology)
      add_component_options(settings, one.key, std::get<std::string>(*value));
    filled.add(one.key, std::move(*value));
  };
  if (catalog.entries("stacks").count(settings.text(kStackName)) == 0) filled["strategy.stack"] = kDefaultStack;
  for (const Convention& one : conventions()) fill(one);
  if (const auto ports = filled.find("topology.nodes_per_pod");
      ports != filled.end() && std::get<std::int64_t>(ports->second) == 0)
    filled.erase(ports);  // all nodes are on one switch
  if (const auto width = filled.find(kFeedForward); width != filled.end() && std::get<std::int64_t>(width->second) == 0)
    filled.erase(width);  // it follows from hidden
  for (const auto& [key, as_any] :
       {std::pair(kBucketParameters, &default_bucket_parameters()), {kSplit, &default_split()}})
    if (const OptionValue* found = filled.value(key); found != nullptr && *found == *as_any)
      filled.erase(key);  // as any other option
  const CatalogEntry& stack = stack_of(settings, catalog);
  settings.add(kStackName, kDefaultStack);
  settings.add(kLibraryVersion, core::collective::version_names().back());
  assume_stack(settings, stack);
  if (settings.text(kProtocol) == "auto") settings[kProtocol] = "calibrated";
  return filled;
}

void change_setting(Settings& settings, const std::string& key, OptionValue value) {
  constexpr const char *kParallel = "strategy.sequence_parallel", *kOverlapTensor = "strategy.stack.overlap_tensor";
  constexpr const char *kSchedule = "strategy.schedule", *kChunks = "strategy.virtual_stages";
  settings[key] = std::move(value);
  const std::int64_t tp = integer(settings, "strategy.tp", 1);
  if (key == kParallel && !flag(settings, kParallel)) settings[kOverlapTensor] = false;
  if (tp == 1) settings[kParallel] = false;
  if (tp > 1 && (flag(settings, kOverlapTensor) || integer(settings, "model.experts") > 0)) settings[kParallel] = true;
  if (replicas(settings) == 1) settings["strategy.zero"] = std::int64_t{0};
  const std::string schedule = settings.text(kSchedule);
  const bool interleaves = integer(settings, "strategy.pp", 1) > 1 && integer(settings, kChunks, 1) > 1;
  if (schedule == "interleaved" && !interleaves) settings[kSchedule] = "1f1b";
  if (schedule == "1f1b" || (schedule == "interleaved" && !interleaves)) settings[kChunks] = std::int64_t{1};
  for (const core::OptionInfo& info : catalog_section("stacks").options)
    if (flag(settings, kStack + info.name) && !has_effect(settings, info.name)) settings[kStack + info.name] = false;
}

std::string unused_oversubscription_note(const Settings& settings) {
  const std::int64_t nodes = gpus(settings) / integer(settings, "cluster.gpus_per_node", 1);
  const std::int64_t pod = integer(settings, "topology.nodes_per_pod"), leaf = integer(settings, "topology.leaf_hosts");
  const std::string fabric = settings.text(kTopology);
  const bool one_leaf =
      (fabric == "rail_optimized" && (pod == 0 || nodes <= pod)) || (fabric == "fat_tree" && gpus(settings) <= leaf);
  if (!one_leaf || oversubscription(settings) == 1) return "";
  return "all nodes hang on one switch: topology.oversubscription changes nothing";
}

std::string unused_channels_note(const Settings& settings) {
  const std::int64_t channels = integer(settings, "collectives.channels");
  if (settings.text("collectives.protocol") != "calibrated" || channels <= 0 ||
      channels >= integer(settings, "cluster.gpus_per_node", 1))
    return "";
  return fmt::format(
      "collectives.channels={} is not heeded: protocol calibrated has a channel for each NIC of a communicator's node; "
      "collectives.protocol=none has as many as are set",
      channels);
}

std::string tensor_over_nodes_note(const Settings& settings) {
  const std::int64_t nodes = tensor_nodes(settings);
  if (nodes == 1) return "";
  std::string note =
      fmt::format("unusual: a tensor-parallel group takes {} nodes, its collectives go over NICs", nodes);
  if (flag(settings, "strategy.stack.overlap_tensor"))
    note += "; no software known overlaps them with GEMMs there (overlap_tensor)";
  return note;
}

std::string unused_fabric_note(const Settings& settings) {
  const bool unused = !settings.text(kFabric).empty() && settings.text(kTopology) != "graph";
  return unused ? fmt::format("the cluster has a fabric of its own, and topology {} is simulated in its place",
                              settings.text(kTopology))
                : "";
}

void AssumedValues::note(const std::string& what) {
  if (!what.empty()) notes_.insert(what);
}

void AssumedValues::add(const Assumptions& assumptions) {
  if (assumptions == last_) return;
  last_ = assumptions;
  note(assumptions.model_note);
  for (const auto& [key, value] : assumptions.values) values_[std::string(key)].insert(to_text(value));
}

std::string AssumedValues::line() const {
  std::vector<std::string> parts;
  for (const auto& [key, values] : values_) parts.push_back(fmt::format("{}={}", key, fmt::join(values, " or ")));
  std::string line = fmt::format("{}", fmt::join(parts, ", "));
  for (const std::string& note : notes_) line += (line.empty() ? "" : "; ") + note;
  return line;
}

}  // namespace manyworlds::experiments
