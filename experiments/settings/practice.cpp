// Each convention is one row: the key, and what it means today beside the settings that are known by then.
#include "experiments/settings/practice.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "experiments/config/vocabulary.hpp"
#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionValue;

constexpr const char* kStack = "strategy.stack.";
constexpr const char* kStackName = "strategy.stack.name";
constexpr const char* kProtocol = "collectives.protocol";
constexpr const char* kFeedForward = "model.ffn_hidden";
constexpr const char* kStackOfToday = "megatron-core";
/// The mean error of predicted peaks of models with experts, the larger of the two kinds that fill a GPU
/// (the rows "memory" of README's table).
constexpr double kMemoryHeadroom = 0.04;
/// Of NVIDIA's Quantum-2 QM9700 (400 Gb/s each), and of Ethernet switches of 25.6 and 51.2 Tb/s.
constexpr std::int64_t kSwitchPorts = 64;
constexpr const char* kTopology = "topology";
constexpr const char* kTopologyOfToday = "rail_optimized";
constexpr const char* kTransport = "transport";

std::int64_t integer(const Settings& settings, const std::string& key, std::int64_t otherwise = 0) {
  const auto found = settings.find(key);
  return found == settings.end() ? otherwise : std::get<std::int64_t>(found->second);
}

std::string text(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? std::string() : std::get<std::string>(found->second);
}

/// False of what is no switch, too.
bool flag(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  const bool* on = found == settings.end() ? nullptr : std::get_if<bool>(&found->second);
  return on != nullptr && *on;
}

std::int64_t gpus(const Settings& settings) {
  std::int64_t nodes = integer(settings, "cluster.nodes", 1);
  for (const std::string group : kNodeGroups) nodes += integer(settings, "cluster." + group + ".nodes");
  return nodes * integer(settings, "cluster.gpus_per_node", 1);
}

/// Ranks that hold the same parameters; 0 where the layout does not fit the GPUs, which a rule says.
std::int64_t replicas(const Settings& settings) {
  const std::int64_t stage = integer(settings, "strategy.tp", 1) * integer(settings, "strategy.pp", 1);
  return gpus(settings) % stage == 0 ? gpus(settings) / stage : 0;
}

/// The stack that was named, or today's.
const CatalogEntry& stack_of(const Settings& settings, const Catalog& catalog) {
  const auto& stacks = catalog.of("stacks");
  const auto named = stacks.find(text(settings, kStackName));
  return named == stacks.end() ? stacks.at(kStackOfToday) : named->second;
}

/// What the stack's own recipe has for a key of the strategy; null where it says nothing.
const OptionValue* of_recipe(const Settings& settings, const Catalog& catalog, const std::string& key) {
  const CatalogEntry& stack = stack_of(settings, catalog);
  const auto found = stack.recipe.find(key);
  return found == stack.recipe.end() ? nullptr : &found->second.value;
}

/// What a key means; nothing where the components that were chosen have no such key.
using Meaning = std::function<std::optional<OptionValue>(const Settings&, const Catalog&)>;

struct Convention {
  std::string key;
  Meaning today;
};

Convention always(const std::string& key, OptionValue value) {
  return {key, [value](const Settings&, const Catalog&) { return value; }};
}

/// Llama's width of a gated layer: two thirds of 4 x hidden, rounded up to a multiple of 256.
std::int64_t gated_width(std::int64_t hidden) {
  return (8 * hidden / 3 + 255) / 256 * 256;
}

/// 0 is 4 x hidden. Of layers of experts it is the width of nothing.
OptionValue feed_forward(const Settings& settings, const Catalog&) {
  const bool gated = text(settings, "model.activation") == "swiglu" && integer(settings, "model.experts") == 0;
  return gated ? gated_width(integer(settings, "model.hidden")) : std::int64_t{0};
}

/// As the software's recipe has it, where there are replicas to cut states over.
OptionValue zero(const Settings& settings, const Catalog& catalog) {
  const OptionValue* recipe = of_recipe(settings, catalog, "zero");
  return recipe != nullptr && replicas(settings) > 1 ? *recipe : OptionValue(std::int64_t{0});
}

/// As the recipe has it, and where experts need it, if the sequence can be cut.
OptionValue sequence_parallel(const Settings& settings, const Catalog& catalog) {
  const OptionValue* recipe = of_recipe(settings, catalog, "sequence_parallel");
  const std::int64_t tp = integer(settings, "strategy.tp", 1), cp = integer(settings, "strategy.cp", 1);
  const bool can = tp > 1 && integer(settings, "model.sequence") % (tp * cp) == 0;
  const bool wanted = (recipe != nullptr && std::get<bool>(*recipe)) || integer(settings, "model.experts") > 0;
  return can && wanted;
}

/// NIC ports of a leaf switch of kSwitchPorts whose uplinks are so much fewer, in whole multiples of `group`; 0 where
/// no such switch can be.
std::int64_t leaf_ports(double oversubscription, std::int64_t group) {
  for (auto up = static_cast<std::int64_t>(kSwitchPorts / (oversubscription + 1)); up > 0; --up) {
    const double down = static_cast<double>(up) * oversubscription;
    const auto whole = static_cast<std::int64_t>(std::llround(down));
    if (std::abs(down - static_cast<double>(whole)) < 1e-9 && whole % group == 0) return whole;
  }
  return 0;
}

double oversubscription(const Settings& settings) {
  const auto found = settings.find("topology.oversubscription");
  return found == settings.end() ? 1 : std::get<double>(found->second);
}

/// The one that the sections began with, which machines of one node make nothing of.
std::optional<OptionValue> topology(const Settings& settings, const Catalog&) {
  if (gpus(settings) == integer(settings, "cluster.gpus_per_node", 1)) return std::nullopt;
  return text(settings, kTopology);
}

/// As many nodes as a switch has ports for; 0, all of them, where they are no more.
std::optional<OptionValue> rail_ports(const Settings& settings, const Catalog&) {
  if (text(settings, kTopology) != "rail_optimized") return std::nullopt;
  const std::int64_t ports = leaf_ports(oversubscription(settings), 1);
  return gpus(settings) / integer(settings, "cluster.gpus_per_node", 1) > ports ? ports : std::int64_t{0};
}

std::optional<OptionValue> leaf_hosts(const Settings& settings, const Catalog&) {
  const std::string fabric = text(settings, kTopology);
  if (fabric == "dragonfly_plus") return std::int64_t{0};
  if (fabric != "fat_tree") return std::nullopt;
  const double ratio = oversubscription(settings);
  const std::int64_t whole_nodes = leaf_ports(ratio, integer(settings, "cluster.gpus_per_node", 1));
  const std::int64_t ports = whole_nodes > 0 ? whole_nodes : leaf_ports(ratio, 1);
  return ports > 0 ? ports : std::int64_t{kSwitchPorts / 2};
}

bool is_roce(const Settings& settings) {
  return text(settings, "cluster.network") == "roce";
}

/// DCQCN is what RoCE's NICs and switches are set up for; InfiniBand's links count credits.
std::optional<OptionValue> transport(const Settings& settings, const Catalog&) {
  return is_roce(settings) ? std::optional<OptionValue>("dcqcn") : std::nullopt;
}

OptionValue routing(const Settings& settings, const Catalog&) {
  return is_roce(settings) ? "ecmp_hash" : "destination_mod_k";
}

/// A sequence for each GPU, or the least that every replica can cut into micro-batches; a rule refuses what would be
/// beyond the option's range.
OptionValue global_batch(const Settings& settings, const Catalog&) {
  const std::int64_t cp = integer(settings, "strategy.cp", 1);
  const std::int64_t share =
      std::max<std::int64_t>(replicas(settings) / cp, 1) * integer(settings, "strategy.micro_batch", 1);
  const auto most = static_cast<std::int64_t>(find_key("strategy.global_batch", {}).option->maximum);
  return std::min((gpus(settings) + share - 1) / share * share, most);
}

const std::vector<Convention>& conventions() {
  static const std::vector<Convention> all{
      // The parts of a Llama; the catalog's models have their own.
      always("model.norm", "rms_norm"),
      always("model.activation", "swiglu"),
      always("model.position", "rotary"),
      always("model.tied_embeddings", false),
      always("model.biases", false),
      always("model.dropout", false),
      {kFeedForward, feed_forward},
      {"strategy.zero", zero},
      {"strategy.sequence_parallel", sequence_parallel},
      {"strategy.global_batch", global_batch},
      always("collectives.all_reduce", "auto"),
      always(kProtocol, "calibrated"),
      always("collectives.channels", std::int64_t{0}),
      always("cluster.memory_headroom", kMemoryHeadroom),
      {kTopology, topology},
      {"topology.nodes_per_pod", rail_ports},
      {"topology.leaf_hosts", leaf_hosts},
      {kTransport, transport},
      {"transport.routing", routing},
  };
  return all;
}

/// Whether the layout has a use for a switch that its stack turns on.
bool has_use(const Settings& settings, const std::string& option) {
  const std::int64_t stage = integer(settings, "strategy.zero");
  if (option == "overlap_parameters") return stage == 1 || stage == 2;
  if (option == "overlap_tensor")
    return integer(settings, "strategy.tp", 1) == 1 || flag(settings, "strategy.sequence_parallel");
  const bool travel = integer(settings, "model.experts") > 0 && integer(settings, "strategy.ep", 1) > 1;
  if (option == "overlap_experts")
    return travel && text(settings, "strategy.recompute") != "full" &&
           (integer(settings, "strategy.pp", 1) == 1 || integer(settings, "strategy.virtual_stages", 1) > 1);
  if (option == "delay_expert_weights") return travel;
  if (option == "overlap_shared_expert") return travel && integer(settings, "model.shared_ffn_hidden") > 0;
  return true;
}

/// What the stack has, as far as the layout has a use for it, and what it says nothing of by default.
void assume_stack(Settings& settings, const CatalogEntry& stack) {
  for (const core::OptionInfo& info : catalog_branch("stacks").options) {
    if (settings.count(kStack + info.name) > 0) continue;
    const auto figure = stack.figures.find(info.name);
    if (figure == stack.figures.end()) {
      if (has_default(info)) settings[kStack + info.name] = info.fallback;
      continue;
    }
    const bool* on = std::get_if<bool>(&figure->second.value);
    const bool idle = on != nullptr && *on && !has_use(settings, info.name);
    settings[kStack + info.name] = idle ? OptionValue(false) : figure->second.value;
  }
}

/// The options that a component has and the one before it had not.
void choose_options(Settings& settings, const std::string& branch, const std::string& component) {
  for (const core::OptionInfo& info : find_alternative(*find_branch(vocabulary().branches, branch), component)->options)
    if (has_default(info) && !is_open_today(branch + "." + info.name))
      settings.try_emplace(branch + "." + info.name, info.fallback);
}

std::string shown(const OptionValue& value) {
  return std::visit([](const auto& held) { return fmt::format("{}", held); }, value);
}

}  // namespace

const std::vector<std::string>& practice_names() {
  static const std::vector<std::string> names{"today", "2021"};
  return names;
}

Practice practice_called(const std::string& name) {
  MANYWORLDS_CHECK(name == "today" || name == "2021", "practice '{}'", name);
  return name == "today" ? Practice::today : Practice::of_2021;
}

bool is_open_today(const std::string& path) {
  static const std::set<std::string> keys = [] {
    std::set<std::string> made;
    for (const Convention& one : conventions()) made.insert(one.key);
    return made;
  }();
  return path.starts_with(kStack) || keys.count(path) > 0;
}

std::string first_component(const std::string& path, const std::string& of_2021) {
  return path == kTopology ? kTopologyOfToday : of_2021;
}

std::string open_mark(const std::string& path) {
  return path + ".open";
}

Settings assume_today(Settings& settings, const Catalog& catalog) {
  Settings filled;
  const auto fill = [&](const std::string& key, std::optional<OptionValue> value) {
    const bool open = settings.erase(open_mark(key)) > 0 || settings.count(key) == 0;
    if (!open || !value) return;
    settings[key] = *value;
    if (key == kTransport || key == kTopology) choose_options(settings, key, std::get<std::string>(*value));
    filled.emplace(key, std::move(*value));
  };
  if (catalog.of("stacks").count(text(settings, kStackName)) == 0) filled["strategy.stack"] = kStackOfToday;
  for (const Convention& one : conventions()) fill(one.key, one.today(settings, catalog));
  if (const auto ports = filled.find("topology.nodes_per_pod");
      ports != filled.end() && std::get<std::int64_t>(ports->second) == 0)
    filled.erase(ports);  // all nodes hang on one switch
  if (const auto width = filled.find(kFeedForward); width != filled.end() && std::get<std::int64_t>(width->second) == 0)
    filled.erase(width);  // it follows from hidden
  const CatalogEntry& stack = stack_of(settings, catalog);
  settings.try_emplace(kStackName, kStackOfToday);
  assume_stack(settings, stack);
  if (text(settings, kProtocol) == "auto") settings[kProtocol] = "calibrated";
  return filled;
}

void change(Settings& settings, const std::string& key, OptionValue value) {
  constexpr const char *kParallel = "strategy.sequence_parallel", *kOverlapTensor = "strategy.stack.overlap_tensor";
  constexpr const char *kSchedule = "strategy.schedule", *kChunks = "strategy.virtual_stages";
  settings[key] = std::move(value);
  const std::int64_t tp = integer(settings, "strategy.tp", 1);
  if (key == kParallel && !flag(settings, kParallel)) settings[kOverlapTensor] = false;
  if (tp == 1) settings[kParallel] = false;
  if (tp > 1 && (flag(settings, kOverlapTensor) || integer(settings, "model.experts") > 0)) settings[kParallel] = true;
  if (replicas(settings) == 1) settings["strategy.zero"] = std::int64_t{0};
  const std::string schedule = text(settings, kSchedule);
  const bool in_turns = integer(settings, "strategy.pp", 1) > 1 && integer(settings, kChunks, 1) > 1;
  if (schedule == "interleaved" && !in_turns) settings[kSchedule] = "1f1b";
  if (schedule == "1f1b" || (schedule == "interleaved" && !in_turns)) settings[kChunks] = std::int64_t{1};
  for (const core::OptionInfo& info : catalog_branch("stacks").options)
    if (flag(settings, kStack + info.name) && !has_use(settings, info.name)) settings[kStack + info.name] = false;
}

std::string idle_oversubscription(const Settings& settings) {
  const std::int64_t nodes = gpus(settings) / integer(settings, "cluster.gpus_per_node", 1);
  const std::int64_t pod = integer(settings, "topology.nodes_per_pod"), leaf = integer(settings, "topology.leaf_hosts");
  const std::string fabric = text(settings, kTopology);
  const bool one_leaf =
      (fabric == "rail_optimized" && (pod == 0 || nodes <= pod)) || (fabric == "fat_tree" && gpus(settings) <= leaf);
  if (!one_leaf || oversubscription(settings) == 1) return "";
  return "all nodes hang on one switch: topology.oversubscription changes nothing";
}

void Assumed::note(const std::string& what) {
  if (!what.empty()) notes_.insert(what);
}

void Assumed::add(const Settings& filled_in) {
  for (const auto& [key, value] : filled_in) values_[key].insert(shown(value));
}

std::string Assumed::line() const {
  std::vector<std::string> parts;
  for (const auto& [key, values] : values_) parts.push_back(fmt::format("{}={}", key, fmt::join(values, " or ")));
  std::string line = fmt::format("{}", fmt::join(parts, ", "));
  for (const std::string& note : notes_) line += (line.empty() ? "" : "; ") + note;
  return line;
}

}  // namespace manyworlds::experiments
