#include "farm/search/search_space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/base/error.hpp"
#include "core/workload/schedule/schedule.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/text/yaml.hpp"

namespace manyworlds::farm {
namespace {

using core::workload::ScheduleType;
using experiments::CatalogEntry;
using experiments::import::Node;
using Sizes = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

constexpr std::int64_t kShortestPiece = 4'096;  // tokens of a sample that context parallelism leaves a rank, at least
constexpr std::int64_t kMostStages = 64;
constexpr std::int64_t kMostChunks = 8;  // of a pipeline rank
constexpr std::int64_t kMostMicroBatch = 8;
constexpr std::int64_t kEndLayers = 2;  // what embedding and head count for where layers are spread over stages

Node place_of(const std::string& word) {
  Node at;
  at.file = std::make_shared<const std::string>(word);
  return at;
}

std::string scalar(const CatalogEntry& entry, const std::string& name) {
  const auto found = entry.figures.find(name);
  return found == entry.figures.end() ? "" : std::get<std::string>(found->second.value);
}

std::int64_t figure(const CatalogEntry& entry, const std::string& name, std::int64_t otherwise) {
  const auto found = entry.figures.find(name);
  return found == entry.figures.end() ? otherwise : std::get<std::int64_t>(found->second.value);
}

Sizes powers_of_two(std::int64_t most) {
  Sizes made;
  for (std::int64_t size = 1; size <= std::max<std::int64_t>(most, 1); size *= 2) made.push_back(size);
  return made;
}

Texts texts_of(const Sizes& sizes) {
  Texts made;
  for (const std::int64_t size : sizes) made.push_back(std::to_string(size));
  return made;
}

/// What the user says of keys: of each its values as text, in the order given.
class Pins {
 public:
  explicit Pins(const Texts& set);

  /// The values of a key, which nobody will be given again; none where nothing was said.
  Texts take(const std::string& path);
  struct Pin {
    std::string typed, path, text;
    Texts values;
    bool several = false;  // a list
  };
  const std::vector<Pin>& left() const { return pins_; }

 private:
  std::vector<Pin> pins_;
};

Pins::Pins(const Texts& set) {
  for (const std::string& given : set) {
    const Node at = place_of("--set " + given);
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos || equals == 0) at.fail("must be key=value, such as strategy.tp=8");
    Pin pin{given.substr(0, equals), "", given.substr(equals + 1), {}, false};
    pin.path = pin.typed == "assume" ? pin.typed : experiments::find_typed_key(pin.typed, at).path;
    for (const Pin& other : pins_)
      if (other.path == pin.path) at.fail(fmt::format("'{}' is set twice; keep one", pin.path));
    const Node value = experiments::import::parse_yaml(pin.text, *at.file);
    if (value.kind == Node::Kind::scalar) pin.values = {value.text};
    pin.several = value.kind == Node::Kind::sequence;
    if (pin.several)
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

/// Keys that move together, and each row of values that they take.
struct Factor {
  Texts keys;
  std::vector<Texts> rows;
};

/// Leaves the rows that have what was said of the key; one that moves alone takes what was said as it is.
void restrict_to(Factor& factor, std::size_t key, const Texts& values) {
  if (values.empty()) return;
  if (factor.keys.size() == 1) {
    factor.rows.clear();
    for (const std::string& value : values) factor.rows.push_back({value});
    return;
  }
  Texts tried;
  for (const Texts& row : factor.rows)
    if (std::find(tried.begin(), tried.end(), row[key]) == tried.end()) tried.push_back(row[key]);
  std::erase_if(factor.rows,
                [&](const Texts& row) { return std::find(values.begin(), values.end(), row[key]) == values.end(); });
  if (factor.rows.empty())
    throw core::InputError(
        fmt::format("no layout of the search has it; of {} there is {}", factor.keys[key], fmt::join(tried, ", ")),
        fmt::format("{}={}", factor.keys[key], fmt::join(values, ",")));
}

/// The document of a search: what is the same for all, what is searched, and what leaves points out.
class Document {
 public:
  explicit Document(Pins pins) : pins_(std::move(pins)) {}

  Texts take(const std::string& key) { return pins_.take(key); }
  void add(Factor factor);
  void add(const std::string& key, Texts values) {
    Factor factor{{key}, {}};
    for (std::string& value : values) factor.rows.push_back({std::move(value)});
    add(std::move(factor));
  }
  void add_where(std::string condition) { where_.push_back(std::move(condition)); }
  void add_base(std::string key, std::string value) { base_.emplace_back(std::move(key), std::move(value)); }
  std::string render(const std::string& name);

 private:
  Pins pins_;
  std::vector<std::pair<std::string, std::string>> base_;
  std::vector<Factor> factors_;
  Texts where_;
};

void Document::add(Factor factor) {
  for (std::size_t key = 0; key < factor.keys.size(); ++key)
    restrict_to(factor, key, pins_.take("strategy." + factor.keys[key]));
  factors_.push_back(std::move(factor));
}

std::string Document::render(const std::string& name) {
  const Texts assume = take("assume");
  std::string yaml = fmt::format("# The layouts that `manyworlds search` looks through.\nname: {}\n", name);
  if (!assume.empty()) yaml += fmt::format("assume: {}\n", assume.front());
  yaml += "base:\n";
  std::string zip, listed;
  for (const Pins::Pin& pin : pins_.left()) {
    if (pin.several) {
      listed += fmt::format("  {}: {}\n", pin.typed, pin.text);
      continue;
    }
    std::erase_if(base_, [&](const auto& one) { return one.first == pin.path; });
    base_.emplace_back(pin.typed, pin.text);
  }
  for (const auto& [key, value] : base_) yaml += fmt::format("  {}: {}\n", key, value);
  yaml += "axes:\n" + listed;
  for (const Factor& factor : factors_) {
    Texts columns;
    for (std::size_t key = 0; key < factor.keys.size(); ++key) {
      Texts values;
      for (const Texts& row : factor.rows) values.push_back(row[key]);
      columns.push_back(fmt::format("strategy.{}: [{}]", factor.keys[key], fmt::join(values, ", ")));
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

/// What there is of machines.
struct Machines {
  std::string cluster;  // a name of the catalog
  std::string gpu;
  std::int64_t nodes = 1, gpus_per_node = 8;
  std::int64_t gpus() const { return nodes * gpus_per_node; }
};

const experiments::Catalog::Entries::value_type& cluster_of(const SearchWords& words,
                                                            const experiments::Catalog& catalog) {
  if (!words.cluster.empty()) return catalog.find_named("clusters", words.cluster, place_of("--cluster"));
  const std::string& gpu = catalog.find_named("gpus", words.gpu, place_of("--gpu")).first;
  for (const auto& cluster : catalog.of("clusters"))
    if (scalar(cluster.second, "gpu") == gpu) return cluster;
  throw core::InputError(fmt::format("no cluster of the catalog has {}; name one with --cluster", gpu), "--gpu");
}

Machines machines_of(const SearchWords& words, const experiments::Catalog& catalog) {
  const auto& [name, cluster] = cluster_of(words, catalog);
  Machines made{name, scalar(cluster, "gpu"), figure(cluster, "nodes", 1), figure(cluster, "gpus_per_node", 8)};
  made.nodes = words.nodes.value_or(made.nodes);
  if (!words.gpus) return made;
  if (words.nodes) throw core::InputError("says the same as --nodes; keep one", "--gpus");
  if (*words.gpus < made.gpus_per_node) made.gpus_per_node = *words.gpus;
  if (*words.gpus % made.gpus_per_node != 0)
    throw core::InputError(
        fmt::format("{} GPUs are no whole nodes of {}, which {} has; {} would be", *words.gpus, made.gpus_per_node,
                    name, (*words.gpus / made.gpus_per_node + 1) * made.gpus_per_node),
        "--gpus");
  made.nodes = *words.gpus / made.gpus_per_node;
  return made;
}

struct Shape {
  std::string name;
  std::int64_t layers = 0, heads = 0, kv_heads = 0, experts = 0, sequence = 0;
};

Shape shape_of(const SearchWords& words, const experiments::Catalog& catalog) {
  const auto& [name, model] = catalog.find_named("models", words.model, place_of("--model"));
  Shape made{name, figure(model, "layers", 0), figure(model, "heads", 0), 0, figure(model, "experts", 0), 0};
  made.kv_heads = figure(model, "kv_heads", made.heads);
  made.sequence = words.sequence.value_or(figure(model, "sequence", 0));
  for (const auto& [key, value] : {std::pair("layers", made.layers), std::pair("heads", made.heads)})
    if (value == 0) throw core::InputError(fmt::format("'{}' of {} is in no catalog", key, name), "--model");
  if (made.sequence == 0)
    throw core::InputError(fmt::format("{} has no sequence of its own; give one", name), "--sequence");
  return made;
}

/// Stages that layers divide over, or layers with a place for embedding and head beside them.
Factor stages(const Shape& shape, std::int64_t gpus) {
  Factor made{{"pp", "empty_layers"}, {}};
  for (std::int64_t pp = 1; pp <= std::min({gpus, kMostStages, shape.layers + kEndLayers}); ++pp)
    if (gpus % pp == 0)
      for (const std::int64_t empty : {std::int64_t{0}, kEndLayers})
        if ((shape.layers + empty) % pp == 0 && (empty == 0 || pp > 1))
          made.rows.push_back({std::to_string(pp), std::to_string(empty)});
  // A second name for the same stages is of use alone where only it can be cut on.
  std::erase_if(made.rows, [&](const Texts& row) {
    const std::int64_t pp = std::stoll(row[0]), alone = shape.layers / pp;
    return row[1] != "0" && shape.layers % pp == 0 && (alone % 2 == 0 || (shape.layers + kEndLayers) / pp % 2 != 0);
  });
  return made;
}

/// Each schedule with every number of chunks it can have: layers must divide over them for some pipeline.
Factor schedules(const Shape& shape, const Texts& names, const Texts& chunks) {
  Factor made{{"schedule", "virtual_stages"}, {}};
  const auto can_be = [&](std::int64_t count) {
    return shape.layers % (2 * count) == 0 || (shape.layers + kEndLayers) % (2 * count) == 0;
  };
  for (const std::string& name : names) {
    const auto& all = core::workload::schedules();
    const auto type = std::find_if(all.begin(), all.end(), [&](const ScheduleType& one) { return one.name == name; });
    if (type == all.end()) throw core::InputError(fmt::format("unknown schedule '{}'", name), "strategy.schedule");
    Texts counts = chunks;
    if (type->chunks > 0)
      counts = texts_of({type->chunks});
    else if (chunks.empty())
      for (std::int64_t count = 2; count <= kMostChunks; ++count)
        if (can_be(count)) counts.push_back(std::to_string(count));
    for (const std::string& count : counts)
      if (chunks.empty() || std::find(chunks.begin(), chunks.end(), count) != chunks.end())
        made.rows.push_back({name, count});
  }
  return made;
}

Texts schedules_wanted(const SearchWords& words, const CatalogEntry& stack) {
  if (!words.all_schedules && !stack.schedules.empty()) return stack.schedules;
  Texts all;
  for (const ScheduleType& type : core::workload::schedules())
    if (type.chunks != ScheduleType::kAsWritten) all.push_back(type.name);
  return all;
}

/// Each tensor-parallel size; of models with experts with experts that are whole, or cut as far.
Factor tensor_sizes(const Shape& shape, std::int64_t gpus_per_node) {
  Factor made{{"tp"}, {}};
  if (shape.experts > 0) made.keys.emplace_back("etp");
  for (std::int64_t tp = 1; tp <= gpus_per_node; ++tp) {
    if (gpus_per_node % tp != 0 || shape.heads % tp != 0 || shape.kv_heads % tp != 0) continue;
    for (const std::int64_t etp : {std::int64_t{1}, tp}) {
      Texts row{std::to_string(tp)};
      if (shape.experts > 0) row.push_back(std::to_string(etp));
      if (made.rows.empty() || made.rows.back() != row) made.rows.push_back(std::move(row));
    }
  }
  return made;
}

void add_expert_axes(Document& document, const Shape& shape, std::int64_t gpus) {
  Sizes sizes;
  for (std::int64_t size = 1; size <= std::min(shape.experts, gpus); ++size)
    if (shape.experts % size == 0 && gpus % size == 0) sizes.push_back(size);
  document.add("ep", texts_of(sizes));
  document.add("stack.dispatcher", {"all_to_all", "hybrid_ep"});
  document.add_where("strategy.ep > 1 or strategy.stack.dispatcher == \"all_to_all\"");
}

}  // namespace

SearchSpace search_space(const SearchWords& words, const experiments::Catalog& catalog) {
  Document document{Pins(words.set)};
  const Texts named = document.take("strategy.stack");
  const std::string stack_name = named.empty() ? words.stack : named.front();
  const auto& [stack, entry] = catalog.find_named("stacks", stack_name, place_of(named.empty() ? "--stack" : "--set"));
  const Machines machines = machines_of(words, catalog);
  const Shape shape = shape_of(words, catalog);
  const std::int64_t gpus = machines.gpus(), batch = words.global_batch.value_or(gpus);

  document.add_base("model", fmt::format("{{like: {}, sequence: {}}}", shape.name, shape.sequence));
  document.add_base("cluster", fmt::format("{{like: {}, nodes: {}, gpus_per_node: {}}}", machines.cluster,
                                           machines.nodes, machines.gpus_per_node));
  document.add_base("topology", words.topology);
  document.add_base("fidelity", "analytic");
  document.add_base("strategy", fmt::format("{{global_batch: {}, stack: {{like: {}}}}}", batch, stack));

  document.add(stages(shape, gpus));
  if (const Sizes pieces = powers_of_two(shape.sequence / kShortestPiece); pieces.size() > 1)
    document.add("cp", texts_of(pieces));
  document.add("micro_batch", texts_of(powers_of_two(std::min(kMostMicroBatch, batch))));
  const std::string attention = scalar(entry, "attention");
  const bool fused = !attention.empty() && attention != "unfused";  // which keeps nothing that selective would drop
  document.add("recompute", fused ? Texts{"none", "full"} : Texts{"none", "selective", "full"});
  document.add(tensor_sizes(shape, machines.gpus_per_node));
  if (shape.experts > 0) add_expert_axes(document, shape, gpus);
  Texts wanted = document.take("strategy.schedule");
  if (wanted.empty()) wanted = schedules_wanted(words, entry);
  document.add(schedules(shape, wanted, document.take("strategy.virtual_stages")));
  document.add_where("strategy.pp > 1 or strategy.schedule == \"1f1b\"");
  document.add("zero", {"0", "1", "3"});

  SearchSpace made;
  made.name = fmt::format("{}-on-{}-{}", shape.name, gpus, machines.gpu.empty() ? machines.cluster : machines.gpu);
  made.yaml = document.render(made.name);
  return made;
}

std::string with_sample(const std::string& yaml, std::int64_t experiments, std::int64_t seed) {
  return yaml + fmt::format("sample: {{experiments: {}, seed: {}}}\n", experiments, seed);
}

}  // namespace manyworlds::farm
