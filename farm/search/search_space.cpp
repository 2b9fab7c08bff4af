#include "farm/search/search_space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/workload/schedule/schedule.hpp"
#include "experiments/catalog/cluster_files.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/tree/yaml.hpp"
#include "farm/search/catalog_values.hpp"
#include "farm/search/model_shape.hpp"

namespace manyworlds::farm {
namespace {

using core::workload::ScheduleType;
using experiments::CatalogEntry;
using experiments::import::Node;
using Sizes = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

constexpr std::int64_t kMinTokensPerRank = 4'096;              // minimum tokens of a sample per context-parallel rank
constexpr std::int64_t kLargestLimit = 9'007'199'254'740'992;  // that limit.link_hops may be
constexpr std::int64_t kMaxStages = 64;
constexpr std::int64_t kMaxChunks = 8;  // per pipeline rank
constexpr std::int64_t kMaxMicroBatch = 8;
constexpr std::int64_t kEmbeddingHeadLayers = 2;  // layers that embedding and head count as in the pipeline's balance

Sizes powers_of_two(std::int64_t max_size) {
  Sizes result;
  for (std::int64_t size = 1; size <= std::max<std::int64_t>(max_size, 1); size *= 2) result.push_back(size);
  return result;
}

Texts texts_of(const Sizes& sizes) {
  Texts result;
  for (const std::int64_t size : sizes) result.push_back(std::to_string(size));
  return result;
}

/// The user's values of keys (`--set`), as text and in the order given.
class Pins {
 public:
  explicit Pins(const Texts& set);

  /// Removes a key and returns its values; empty if the user did not set it.
  Texts take(const std::string& path);
  struct Pin {
    std::string typed, path, text;
    Texts values;
    bool is_list = false;  // the user gave a list
  };
  const std::vector<Pin>& remaining() const { return pins_; }

 private:
  std::vector<Pin> pins_;
};

Pins::Pins(const Texts& set) {
  for (const std::string& given : set) {
    const Node at = source_node("--set " + given);
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos || equals == 0) at.fail("must be key=value, such as strategy.tp=8");
    Pin pin{given.substr(0, equals), "", given.substr(equals + 1), {}, false};
    pin.path = pin.typed == "assume" ? pin.typed : experiments::find_typed_key(pin.typed, at).path;
    for (const Pin& other : pins_)
      if (other.path == pin.path) at.fail(fmt::format("'{}' is set twice; keep one", pin.path));
    const Node value = experiments::import::parse_yaml(pin.text, *at.file);
    if (value.kind == Node::Kind::scalar) pin.values = {value.text};
    pin.is_list = value.kind == Node::Kind::sequence;
    if (pin.is_list)
      for (const Node& item : value.items)
        if (item.kind == Node::Kind::scalar) pin.values.push_back(item.text);
    pins_.push_back(std::move(pin));
  }
}

Texts Pins::take(const std::string& path) {
  for (auto pin = pins_.begin(); pin != pins_.end(); ++pin)
    if (pin->path == path) {
      Texts values = std::move(pin->values);
      pins_.erase(pin);
      return values;
    }
  return {};
}

/// Keys that vary together, and the rows of values that they take.
struct LinkedAxes {
  Texts keys;
  std::vector<Texts> rows;
};

/// Keeps the rows with one of the user's values of a key; a key that varies alone takes the user's values as they are.
void restrict_to(LinkedAxes& axes, std::size_t key, const Texts& values) {
  if (values.empty()) return;
  if (axes.keys.size() == 1) {
    axes.rows.clear();
    for (const std::string& value : values) axes.rows.push_back({value});
    return;
  }
  Texts available;
  for (const Texts& row : axes.rows)
    if (std::find(available.begin(), available.end(), row[key]) == available.end()) available.push_back(row[key]);
  std::erase_if(axes.rows,
                [&](const Texts& row) { return std::find(values.begin(), values.end(), row[key]) == values.end(); });
  if (axes.rows.empty())
    throw core::InputError(
        fmt::format("no layout of the search has this value; {} may be {}", axes.keys[key], fmt::join(available, ", ")),
        fmt::format("{}={}", axes.keys[key], fmt::join(values, ",")));
}

/// The sweep document of a search: base settings, axes, and conditions.
class SweepDocument {
 public:
  explicit SweepDocument(Pins pins) : pins_(std::move(pins)) {}

  Texts take(const std::string& key) { return pins_.take(key); }
  void add(LinkedAxes axes);
  void add(const std::string& key, Texts values) {
    LinkedAxes axes{{key}, {}};
    for (std::string& value : values) axes.rows.push_back({std::move(value)});
    add(std::move(axes));
  }
  void add_where(std::string condition) { where_.push_back(std::move(condition)); }
  void add_base(std::string key, std::string value) { base_.emplace_back(std::move(key), std::move(value)); }
  std::string render(const std::string& name);

 private:
  Pins pins_;
  std::vector<std::pair<std::string, std::string>> base_;
  std::vector<LinkedAxes> axes_;
  Texts where_;
};

void SweepDocument::add(LinkedAxes axes) {
  for (std::size_t key = 0; key < axes.keys.size(); ++key)
    restrict_to(axes, key, pins_.take("strategy." + axes.keys[key]));
  axes_.push_back(std::move(axes));
}

std::string SweepDocument::render(const std::string& name) {
  const Texts assume = take("assume");
  std::string yaml = fmt::format("# The layouts that `manyworlds search` looks through.\nname: {}\n", name);
  if (!assume.empty()) yaml += fmt::format("assume: {}\n", assume.front());
  yaml += "base:\n";
  std::string zip, listed;
  for (const Pins::Pin& pin : pins_.remaining()) {
    if (pin.is_list) {
      listed += fmt::format("  {}: {}\n", pin.typed, pin.text);
      continue;
    }
    std::erase_if(base_, [&](const auto& one) { return one.first == pin.path; });
    base_.emplace_back(pin.typed, pin.text);
  }
  for (const auto& [key, value] : base_) yaml += fmt::format("  {}: {}\n", key, value);
  yaml += "axes:\n" + listed;
  for (const LinkedAxes& axes : axes_) {
    Texts columns;
    for (std::size_t key = 0; key < axes.keys.size(); ++key) {
      Texts values;
      for (const Texts& row : axes.rows) values.push_back(row[key]);
      columns.push_back(fmt::format("strategy.{}: [{}]", axes.keys[key], fmt::join(values, ", ")));
    }
    if (columns.size() == 1)
      yaml += fmt::format("  {}\n", columns.front());
    else
      zip += fmt::format("  - {{{}}}\n", fmt::join(columns, ", "));
  }
  if (!zip.empty()) yaml += "zip:\n" + zip;
  if (!where_.empty()) yaml += "where:\n";
  for (const std::string& condition : where_) yaml += fmt::format("  - '{}'\n", condition);
  return yaml + "objective: tokens_per_s_per_gpu\n";
}

/// Returns the pipeline sizes that divide the layers, or the layers with embedding and head counted as layers.
LinkedAxes stages(const ModelShape& shape, std::int64_t gpus) {
  LinkedAxes result{{"pp", "empty_layers"}, {}};
  const std::int64_t most = shape.has_tables ? 1 : shape.layers + kEmbeddingHeadLayers;
  for (std::int64_t pp = 1; pp <= std::min({gpus, kMaxStages, most}); ++pp)
    if (gpus % pp == 0)
      for (const std::int64_t empty : {std::int64_t{0}, kEmbeddingHeadLayers})
        if ((shape.layers + empty) % pp == 0 && (empty == 0 || pp > 1))
          result.rows.push_back({std::to_string(pp), std::to_string(empty)});
  // Where the layers divide evenly, empty layers are useful only if the stages can be split into two chunks with them
  // and not without.
  std::erase_if(result.rows, [&](const Texts& row) {
    const std::int64_t pp = std::stoll(row[0]), layers_per_stage = shape.layers / pp;
    return row[1] != "0" && shape.layers % pp == 0 &&
           (layers_per_stage % 2 == 0 || (shape.layers + kEmbeddingHeadLayers) / pp % 2 != 0);
  });
  return result;
}

/// Returns each schedule with every possible number of chunks: the layers must divide over the chunks of a pipeline of
/// two ranks or more.
LinkedAxes schedules(const ModelShape& shape, const Texts& names, const Texts& chunks) {
  LinkedAxes result{{"schedule", "virtual_stages"}, {}};
  const auto can_be = [&](std::int64_t count) {
    return shape.layers % (2 * count) == 0 || (shape.layers + kEmbeddingHeadLayers) % (2 * count) == 0;
  };
  for (const std::string& name : names) {
    const auto& all = core::workload::schedules();
    const auto type = std::find_if(all.begin(), all.end(), [&](const ScheduleType& one) { return one.name == name; });
    if (type == all.end()) throw core::InputError(fmt::format("unknown schedule '{}'", name), "strategy.schedule");
    Texts counts = chunks;
    if (type->chunks > 0)
      counts = texts_of({type->chunks});
    else if (chunks.empty())
      for (std::int64_t count = 2; count <= kMaxChunks; ++count)
        if (can_be(count)) counts.push_back(std::to_string(count));
    for (const std::string& count : counts)
      if (chunks.empty() || std::find(chunks.begin(), chunks.end(), count) != chunks.end())
        result.rows.push_back({name, count});
  }
  return result;
}

Texts schedules_wanted(const SearchOptions& options, const CatalogEntry& stack) {
  if (!options.all_schedules && !stack.schedules.empty()) return stack.schedules;
  Texts all;
  for (const ScheduleType& type : core::workload::schedules())
    if (type.not_searched.empty()) all.push_back(type.name);
  return all;
}

/// Returns the tensor-parallel sizes; for models with experts, each with whole experts (etp 1) and with experts split
/// as far (etp = tp).
LinkedAxes tensor_sizes(const ModelShape& shape, std::int64_t gpus_per_node) {
  LinkedAxes result{{"tp"}, {}};
  if (shape.experts > 0) result.keys.emplace_back("etp");
  for (std::int64_t tp = 1; tp <= gpus_per_node; ++tp) {
    if (gpus_per_node % tp != 0 || !shape.divides_over(tp)) continue;
    for (const std::int64_t etp : {std::int64_t{1}, tp}) {
      Texts row{std::to_string(tp)};
      if (shape.experts > 0) row.push_back(std::to_string(etp));
      if (result.rows.empty() || result.rows.back() != row) result.rows.push_back(std::move(row));
    }
  }
  return result;
}

/// Returns the micro-batches: of samples of one token, such as images, as many as each GPU has. Of a model with
/// embedding tables all of a GPU's samples are one.
Sizes micro_batches(const ModelShape& shape, std::int64_t gpus, std::int64_t batch) {
  if (shape.has_tables && batch % gpus != 0)
    throw core::InputError(
        fmt::format("{} samples are no multiple of {} GPUs, which share the embedding tables of {} and have one "
                    "micro-batch each",
                    batch, gpus, shape.name),
        "--global-batch");
  if (shape.has_tables) return {batch / gpus};
  if (shape.sequence > 1) return powers_of_two(std::min(kMaxMicroBatch, batch));
  Sizes sizes = powers_of_two(batch / gpus);
  if (sizes.back() < batch / gpus) sizes.push_back(batch / gpus);
  return sizes;
}

/// Adds the sizes of expert parallelism and the dispatchers: that of the stack, if it copies no tokens, or HybridEP's.
void add_expert_axes(SweepDocument& document, const ModelShape& shape, std::int64_t gpus, const CatalogEntry& stack) {
  Sizes sizes;
  for (std::int64_t size = 1; size <= std::min(shape.experts, gpus); ++size)
    if (shape.experts % size == 0 && gpus % size == 0) sizes.push_back(size);
  document.add("ep", texts_of(sizes));
  const std::string own = text_value(stack, "dispatcher");
  document.add("stack.dispatcher", {"all_to_all", own.empty() || own == "all_to_all" ? "hybrid_ep" : own});
  document.add_where("strategy.ep > 1 or strategy.stack.dispatcher == \"all_to_all\"");
}

std::string mapping_of(const std::map<std::string, std::string>& values) {
  std::string text;
  for (const auto& [key, value] : values) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, value);
  return "{" + text + "}";
}

std::string model_text(const SearchOptions& options, const ModelShape& shape) {
  if (options.job) return mapping_of(options.job->model);
  if (!shape.has_sequence) return fmt::format("{{like: {}}}", shape.like);
  return fmt::format("{{like: {}, sequence: {}}}", shape.like, shape.sequence);
}

std::string strategy_text(const SearchOptions& options, std::int64_t batch, const std::string& stack) {
  std::map<std::string, std::string> strategy, switches;
  if (options.job) strategy = options.job->strategy, switches = options.job->stack;
  strategy["global_batch"] = std::to_string(batch);
  switches["like"] = stack;
  strategy["stack"] = mapping_of(switches);
  return mapping_of(strategy);
}

/// Returns the topology as a document names it.
std::string topology_of(const SearchOptions& options, const ClusterSpec& machines) {
  if (!options.topology.empty()) return options.topology;
  if (machines.is_nameless) return "one_switch";  // which nothing asks
  if (machines.fabric.empty()) return "rail_optimized";
  return fmt::format("{{graph: {{file: {}}}}}", nlohmann::json(machines.fabric).dump());
}

/// Returns what the options leave open and the space has a value for, with the option that says otherwise.
Texts assumed_in(const SearchOptions& options, const ClusterSpec& machines, const ModelShape& shape,
                 std::int64_t batch) {
  Texts assumed;
  if (!options.gpus && !options.nodes && options.node_list.empty())
    assumed.push_back(fmt::format("cluster.nodes={} (all {} GPUs of {}; --gpus N)", machines.nodes, machines.gpus(),
                                  machines.cluster));
  if (machines.unused > 0) assumed.push_back(unused_text(machines));
  if (options.topology.empty() && machines.fabric.empty() && !machines.is_nameless && !is_set(options, "topology"))
    assumed.push_back(fmt::format("topology={} (--topology NAME)", topology_of(options, machines)));
  // One that the model's file does not say is among the defaults of the document.
  if (shape.has_sequence && !options.sequence && !is_set(options, "model.sequence"))
    assumed.push_back(fmt::format("model.sequence={} (the model's own; --sequence N)", shape.sequence));
  if (!options.global_batch && !is_set(options, "strategy.global_batch"))
    assumed.push_back(fmt::format("strategy.global_batch={} (a sample for each GPU; --global-batch N)", batch));
  return assumed;
}

}  // namespace

SearchSpace search_space(const SearchOptions& options, const experiments::Catalog& catalog) {
  SweepDocument document{Pins(options.set)};
  const Texts named = document.take("strategy.stack");
  const std::string stack_name = named.empty() ? options.stack : named.front();
  const auto& [stack, entry] =
      catalog.find_named("stacks", stack_name, source_node(named.empty() ? "--stack" : "--set"));
  const ClusterSpec machines = machines_of(options, catalog);
  const ModelShape shape = model_shape_of(options, catalog);
  const std::int64_t gpus = machines.gpus(), batch = options.global_batch.value_or(gpus);

  document.add_base("model", model_text(options, shape));
  document.add_base("cluster", cluster_text(machines));
  document.add_base("topology", topology_of(options, machines));
  document.add_base("fidelity", "analytic");
  // What a search may take is its budget: no layout is too large for it, however many packets are skipped in it.
  document.add_base("limit", fmt::format("{{link_hops: {0}, events: {0}}}", kLargestLimit));
  document.add_base("strategy", strategy_text(options, batch, stack));

  document.add(stages(shape, gpus));
  if (const Sizes context_sizes = powers_of_two(shape.sequence / kMinTokensPerRank); context_sizes.size() > 1)
    document.add("cp", texts_of(context_sizes));
  document.add("micro_batch", texts_of(micro_batches(shape, gpus, batch)));
  const std::string attention = text_value(entry, "attention");
  const bool fused = !attention.empty() && attention != "unfused";  // stores nothing that `selective` would drop
  document.add("recompute", fused ? Texts{"none", "full"} : Texts{"none", "selective", "full"});
  document.add(tensor_sizes(shape, machines.gpus_per_node));
  if (shape.experts > 0) add_expert_axes(document, shape, gpus, entry);
  if (shape.has_tables) document.add("ep", texts_of({gpus}));
  Texts wanted = document.take("strategy.schedule");
  if (wanted.empty()) wanted = schedules_wanted(options, entry);
  document.add(schedules(shape, wanted, document.take("strategy.virtual_stages")));
  document.add_where(
      fmt::format("strategy.pp > 1 or strategy.schedule == \"{}\"", core::workload::schedules().front().name));
  document.add("zero", {"0", "1", "3"});
  for (const std::string& condition : options.layouts) document.add_where(condition);

  SearchSpace result;
  result.name = fmt::format("{}-on-{}-{}", shape.name, gpus, machines.gpu.empty() ? machines.cluster : machines.gpu);
  result.yaml = document.render(result.name);
  result.stack = stack;
  result.assumed = assumed_in(options, machines, shape, batch);
  return result;
}

std::string with_sample(const std::string& yaml, std::int64_t experiments, std::int64_t seed) {
  return yaml + fmt::format("sample: {{experiments: {}, seed: {}}}\n", experiments, seed);
}

}  // namespace manyworlds::farm
