#include "experiments/key_contents/architecture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "core/workload/model/fine_tuning.hpp"
#include "experiments/keys/section.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::OptionInfo;
using core::workload::Architecture;
using core::workload::LayerPart;
using core::workload::Model;
using core::workload::PartType;
using import::Entry;
using import::Node;

/// Options of the whole model, which neither part nor network has for itself.
constexpr std::array<std::string_view, 14> kOfTheModel{
    "layers",        "vocabulary",       "tied_embeddings", "experts",      "experts_per_token",
    "expert_groups", "groups_per_token", "dense_layers",    "window_every", "mtp_layers",
    "inference",     "cached_tokens",    "architecture",    "teacher"};
/// Options of a residual stream, which no part has for itself.
constexpr std::array<std::string_view, 2> kOfTheStream{"hidden", "sequence"};

std::vector<std::string> names_of(const std::vector<OptionInfo>& options) {
  std::vector<std::string> names;
  for (const OptionInfo& info : options) names.push_back(info.name);
  return names;
}

std::vector<OptionInfo> without(std::vector<OptionInfo> options, std::span<const std::string_view> names) {
  std::erase_if(
      options, [&](const OptionInfo& info) { return std::find(names.begin(), names.end(), info.name) != names.end(); });
  return options;
}

/// Returns the options of the model that a network may be given.
const std::vector<OptionInfo>& network_options() {
  static const std::vector<OptionInfo> options = without(core::workload::model_options().infos(), kOfTheModel);
  return options;
}

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (const PartType& type : core::workload::part_types()) names.push_back(type.name);
  return names;
}

class ArchitectureReader {
 public:
  ArchitectureSpec read(const Node& node) {
    const Node* networks = node.kind == Node::Kind::mapping ? node.find("networks") : nullptr;
    if (networks == nullptr) {
      import::check_keys(node, {"embedding", "head", "blocks", "layers"}, "An architecture");
      read_ends(node);
      read_network(node, "", {});
    } else {
      import::check_keys(node, {"embedding", "head", "networks"}, "An architecture of networks");
      read_ends(node);
      read_networks(*networks);
    }
    return std::move(spec_);
  }

 private:
  void read_ends(const Node& node) {
    OptionInfo info;
    info.kind = OptionInfo::Kind::boolean;
    for (const auto& [name, member] : {std::pair{"embedding", &spec_.embedding}, {"head", &spec_.head}})
      if (const Node* given = node.find(name)) *member = std::get<bool>(import::read_value(*given, info, name));
  }

  void read_networks(const Node& networks) {
    if (networks.kind != Node::Kind::mapping || networks.entries.empty())
      networks.fail("'networks' must be a mapping of names to networks");
    for (const Entry& entry : networks.entries) {
      if (entry.value.kind != Node::Kind::mapping)
        entry.value.fail(fmt::format("a network must be a mapping, not {}", import::describe(entry.value)));
      core::OptionSet values;
      for (const Entry& each : entry.value.entries)
        if (each.key != "blocks" && each.key != "layers") values[each.key] = network_value(each);
      read_network(entry.value, entry.key + ".", values);
    }
  }

  static core::OptionValue network_value(const Entry& entry) {
    if (const OptionInfo* info = find_option(network_options(), entry.key))
      return import::read_value(entry.value, *info, entry.key);
    std::vector<std::string> known = names_of(network_options());
    known.insert(known.end(), {"blocks", "layers"});
    throw InputError(fmt::format("unknown option '{}' of a network{}", entry.key, suggestion(entry.key, known)),
                     entry.value.file ? *entry.value.file : "", entry.line);
  }

  /// Reads blocks and layers, with `prefix` before the names of blocks.
  void read_network(const Node& node, const std::string& prefix, const core::OptionSet& values) {
    const Node *blocks = node.find("blocks"), *layers = node.find("layers");
    if (blocks == nullptr || blocks->kind != Node::Kind::mapping || blocks->entries.empty())
      (blocks != nullptr ? *blocks : node).fail("an architecture needs 'blocks', a mapping of names to parts");
    first_block_ = spec_.blocks.size();
    for (const Entry& entry : blocks->entries) {
      spec_.blocks.push_back(read_block(entry));
      spec_.blocks.back().of_network = values;
    }
    if (layers == nullptr) node.fail("an architecture needs 'layers', the blocks of its layers in their order");
    const std::size_t before = spec_.block_by_layer.size();
    layers->kind == Node::Kind::scalar ? read_pattern_or_name(*layers) : read_layers(*layers);
    if (spec_.block_by_layer.size() == before) layers->fail("'layers' must have a layer");
    for (std::size_t i = first_block_; i < spec_.blocks.size(); ++i)
      spec_.blocks[i].name = prefix + spec_.blocks[i].name;
  }

  BlockSpec read_block(const Entry& entry) {
    BlockSpec block{entry.key, {}, {}};
    const Node& value = entry.value;
    if (value.kind == Node::Kind::sequence)
      for (const Node& item : value.items) block.parts.push_back(read_part(item));
    else
      block.parts.push_back(read_part(value));
    if (block.parts.empty()) value.fail(fmt::format("block '{}' has no parts", entry.key));
    return block;
  }

  PartSpec read_part(const Node& node) {
    const bool named = node.kind == Node::Kind::scalar;
    if (!named && (node.kind != Node::Kind::mapping || node.entries.size() != 1))
      node.fail(fmt::format("a part must be a name, or {{NAME: {{options}}}}, not {}",
                            node.kind != Node::Kind::mapping ? import::describe(node)
                            : node.entries.empty()           ? "an empty mapping"
                                                             : "a mapping of several"));
    const std::string& name = named ? node.text : node.entries[0].key;
    PartSpec part;
    part.type = core::workload::find_part_type(name);
    if (part.type == nullptr) node.fail(fmt::format("unknown part '{}'{}", name, suggestion(name, part_names())));
    part.branch = part.type->branch;
    if (named || node.entries[0].value.kind == Node::Kind::null) return part;
    const Node& options = node.entries[0].value;
    if (options.kind != Node::Kind::mapping)
      options.fail(fmt::format("'{}' must be a mapping of options, not {}", name, import::describe(options)));
    for (const Entry& entry : options.entries) read_option(part, entry);
    return part;
  }

  static void read_option(PartSpec& part, const Entry& entry) {
    static const std::vector<OptionInfo> branch = core::workload::branch_options().infos();
    std::vector<std::string> known;
    for (const auto& [options, values] : {std::pair{&part.type->options, &part.own}, std::pair{&branch, &part.branch},
                                          std::pair{&part_model_options(), &part.of_model}}) {
      if (const OptionInfo* info = find_option(*options, entry.key)) {
        (*values)[entry.key] = import::read_value(entry.value, *info, entry.key);
        return;
      }
      for (const std::string& name : names_of(*options)) known.push_back(name);
    }
    throw InputError(
        fmt::format("unknown option '{}' of '{}'{}", entry.key, part.type->name, suggestion(entry.key, known)),
        entry.value.file ? *entry.value.file : "", entry.line);
  }

  std::span<const BlockSpec> blocks() const { return std::span(spec_.blocks).subspan(first_block_); }

  bool is_block(std::string_view name) const {
    return std::any_of(blocks().begin(), blocks().end(), [&](const BlockSpec& block) { return block.name == name; });
  }

  void add_layer(std::string_view name, const Node& at) {
    const auto found =
        std::find_if(blocks().begin(), blocks().end(), [&](const BlockSpec& block) { return block.name == name; });
    if (found == blocks().end()) {
      std::vector<std::string> names;
      for (const BlockSpec& block : blocks()) names.push_back(block.name);
      at.fail(fmt::format("there is no block '{}'{}", name, suggestion(std::string(name), names)));
    }
    if (spec_.block_by_layer.size() == kMaxLayers) at.fail(fmt::format("more than {} layers", kMaxLayers));
    spec_.block_by_layer.push_back(static_cast<std::uint32_t>(first_block_ + (found - blocks().begin())));
  }

  /// A text is the name of a block, or names one with each of its characters.
  void read_pattern_or_name(const Node& node) {
    const bool single =
        std::all_of(blocks().begin(), blocks().end(), [](const BlockSpec& block) { return block.name.size() == 1; });
    if (is_block(node.text) || !single) return add_layer(node.text, node);
    for (std::size_t i = 0; i < node.text.size(); ++i) add_layer(std::string_view(node.text).substr(i, 1), node);
  }

  void read_layers(const Node& node) {
    if (node.kind != Node::Kind::sequence)
      node.fail(fmt::format("layers must be a list of blocks, not {}", import::describe(node)));
    for (const Node& item : node.items) {
      if (item.kind == Node::Kind::scalar)
        read_pattern_or_name(item);
      else
        read_repeat(item);
    }
  }

  void read_repeat(const Node& item) {
    import::check_keys(item, {"repeat", "of"}, "A repetition of layers");
    const Node *times = item.find("repeat"), *of = item.find("of");
    if (times == nullptr || of == nullptr) item.fail("a repetition of layers is {repeat: N, of: [BLOCK, …]}");
    OptionInfo info;
    info.minimum = 1, info.maximum = kMaxLayers;
    const auto count = std::get<std::int64_t>(import::read_value(*times, info, "repeat"));
    const std::size_t first = spec_.block_by_layer.size();
    of->kind == Node::Kind::scalar ? read_pattern_or_name(*of) : read_layers(*of);
    const std::size_t end = spec_.block_by_layer.size();
    if (first + (end - first) * static_cast<std::size_t>(count) > kMaxLayers)
      item.fail(fmt::format("more than {} layers", kMaxLayers));
    for (std::int64_t i = 1; i < count; ++i)
      for (std::size_t layer = first; layer < end; ++layer) spec_.block_by_layer.push_back(spec_.block_by_layer[layer]);
  }

  ArchitectureSpec spec_;
  std::size_t first_block_ = 0;  // of the network that is read
};

void give(Model& model, const core::OptionSet& values) {
  for (const auto& row : core::workload::model_options().rows())
    if (const auto value = values.find(row.info.name); value != values.end()) row.set(model, value->second);
}

/// Returns the model's options with what the network of a block and one of its parts have instead.
std::shared_ptr<const Model> model_of_part(const Model& model, const BlockSpec& block, const PartSpec& part) {
  auto own = std::make_shared<Model>(model);
  own->architecture_text.clear(), own->teacher_text.clear();
  own->architecture = nullptr;
  give(*own, block.of_network);
  give(*own, part.of_model);
  return own;
}

/// A network may have other heads than the model, whose number of those of keys it then has still.
void check_heads(const BlockSpec& block, const LayerPart& part, const Model& model) {
  for (const core::workload::ShardedSize& size : part.sharded_sizes(model))
    if (size.is_of_keys && model.heads % std::max<std::int64_t>(size.size, 1) != 0)
      throw InputError(fmt::format("block '{}': kv_heads {} do not divide heads {}; a network has kv_heads of its own",
                                   block.name, size.size, model.heads));
}

/// Refuses pairs of low rank that a part is given and does not have. Those beside experts, and in latent attention,
/// are refused by rules.
void check_pairs(const BlockSpec& block, const PartSpec& spec, const LayerPart& part, const Model& model) {
  const bool ranked = spec.of_model.contains("lora_rank"), named = spec.of_model.contains("lora_weights");
  if ((!ranked && !named) || part.has_experts() || model.is_latent()) return;
  const std::string at = fmt::format("block '{}': '{}'", block.name, spec.type->name);
  if (model.lora_rank == 0) {
    if (named && (model.lora_weights & core::workload::kAllLoraWeights) != 0)
      throw InputError(fmt::format("{} is given lora_weights, but no lora_rank", at));
    return;
  }
  const bool is_to_have_none = named && !ranked && model.lora_weights == core::workload::kNoLoraWeights;
  const core::workload::PartParameters pairs = part.lora_parameters(model);
  if (pairs.sharded + pairs.replicated > 0 || is_to_have_none) return;
  throw InputError(fmt::format("{} has no linear layer for the pairs of lora_rank {} with lora_weights {}", at,
                               model.lora_rank,
                               std::get<std::string>(core::workload::model_options().read(model).at("lora_weights"))));
}

}  // namespace

ArchitectureSpec read_architecture(const Node& node) {
  return ArchitectureReader().read(node);
}

void check_architecture(const Node& node, const std::string& text) {
  if (node.kind != Node::Kind::scalar)
    read_architecture(node);
  else if (!text.empty())
    read_architecture(import::parse_yaml(text, "model.architecture"));
}

const std::vector<OptionInfo>& part_model_options() {
  static const std::vector<OptionInfo> options = without(network_options(), kOfTheStream);
  return options;
}

std::shared_ptr<const Architecture> make_architecture(const ArchitectureSpec& spec, const Model& model) {
  const auto layers = static_cast<std::int64_t>(spec.block_by_layer.size());
  if (layers != model.layers)
    throw InputError(fmt::format("'model.layers' is {}, but its architecture has {} layers", model.layers, layers));
  auto result = std::make_shared<Architecture>();
  result->embedding = spec.embedding, result->head = spec.head;
  result->block_by_layer = spec.block_by_layer;
  for (const BlockSpec& block : spec.blocks) {
    result->blocks.push_back({block.name, {}});
    for (const PartSpec& part : block.parts) {
      const auto own_model = model_of_part(model, block, part);
      std::shared_ptr<const LayerPart> own_part = part.type->make(part.own);
      const std::string missing = own_part->missing_size(*own_model);
      if (!missing.empty())
        throw InputError(fmt::format("block '{}': '{}' needs '{}'", block.name, part.type->name, missing));
      check_heads(block, *own_part, *own_model);
      check_pairs(block, part, *own_part, *own_model);
      result->blocks.back().branches.push_back(
          {part.type->name, core::workload::branch_options().make(part.branch), std::move(own_part), own_model});
    }
  }
  return result;
}

std::shared_ptr<const Architecture> architecture_of(const Model& model) {
  if (model.architecture_text.empty()) return nullptr;
  return make_architecture(read_architecture(import::parse_yaml(model.architecture_text, "model.architecture")), model);
}

namespace {

using core::workload::Teacher;

constexpr std::array<std::string_view, 10> kNotOfTeachers{
    "sequence",  "teacher",      "dropout",         "mtp_layers",     "frozen",
    "lora_rank", "lora_weights", "lora_magnitudes", "frozen_weights", "inference"};

const std::vector<OptionInfo>& options_of_model() {
  static const std::vector<OptionInfo> options = [] {
    std::vector<OptionInfo> all = core::workload::model_options().infos();
    std::erase_if(all, [](const OptionInfo& info) { return !is_teacher_option(info.name); });
    return all;
  }();
  return options;
}

const std::vector<OptionInfo>& own_options() {
  static const std::vector<OptionInfo> options = core::workload::teacher_options().infos();
  return options;
}

[[noreturn]] void fail_unknown(const Entry& entry) {
  std::vector<std::string> known{"like", "name"};
  for (const auto* options : {&options_of_model(), &own_options()})
    for (const OptionInfo& info : *options) known.push_back(info.name);
  const std::string hint =
      entry.key == "sequence" ? ": it has the tokens of the student" : suggestion(entry.key, known);
  throw InputError(fmt::format("unknown option '{}' of a teacher{}", entry.key, hint),
                   entry.value.file ? *entry.value.file : "", entry.line);
}

void read_option(TeacherSpec& spec, const Entry& entry) {
  if (entry.key == "like" || entry.key == "name") {
    (entry.key == "like" ? spec.like : spec.name) = import::read_line(entry.value, entry.key);
  } else if (const OptionInfo* of_model = find_option(options_of_model(), entry.key)) {
    if (entry.key == "architecture") check_architecture(entry.value, entry.value.text);
    spec.values[entry.key] = import::read_value(entry.value, *of_model, entry.key);
  } else if (const OptionInfo* own = find_option(own_options(), entry.key)) {
    spec.own[entry.key] = import::read_value(entry.value, *own, entry.key);
  } else {
    fail_unknown(entry);
  }
}

/// Returns the model whose options a teacher has where it is given no others: the student, or one without sizes.
Model model_behind(const TeacherSpec& spec, const Model& student) {
  Model model;
  if (spec.name.empty()) {
    model = student;
    // Sizes that follow from others follow from the teacher's.
    if (student.kv() == student.heads && spec.values.contains("heads")) model.kv_heads = 0;
    if (student.ffn() == 4 * student.hidden && spec.values.contains("hidden")) model.ffn_hidden = 0;
  }
  model.sequence = student.sequence;
  model.documents = student.documents;
  model.routing = nullptr, model.architecture = nullptr, model.teacher = nullptr;
  model.teacher_text.clear();
  model.mtp_layers = model.lora_rank = model.cached_tokens = 0;
  model.lora_weights = 0;
  model.lora_magnitudes = false, model.frozen_weights = core::workload::WeightFormat::bf16;
  model.inference = core::workload::Inference::none;
  model.frozen = true, model.dropout = false;
  return model;
}

template <class T>
void give(T& to, const core::OptionTable<T>& table, const core::OptionSet& values) {
  for (const auto& row : table.rows())
    if (const auto value = values.find(row.info.name); value != values.end()) row.set(to, value->second);
}

}  // namespace

bool is_teacher_option(const std::string& name) {
  return std::find(kNotOfTeachers.begin(), kNotOfTeachers.end(), name) == kNotOfTeachers.end() &&
         find_option(core::workload::model_options().infos(), name) != nullptr;
}

TeacherSpec read_teacher(const Node& node) {
  if (node.kind != Node::Kind::mapping)
    node.fail(fmt::format("a teacher must be a name from the catalog, or a mapping of options, not {}",
                          import::describe(node)));
  TeacherSpec spec;
  for (const Entry& entry : node.entries) read_option(spec, entry);
  if (!spec.name.empty() && spec.like.empty())
    for (const char* size : {"layers", "hidden", "vocabulary"})
      if (!spec.values.contains(size))
        node.fail(
            fmt::format("a teacher with a name has sizes of its own, and this one has no '{0}'; like: {1} takes "
                        "those of {1} in the catalog",
                        size, spec.name));
  return spec;
}

std::shared_ptr<const Teacher> teacher_for(const Model& student) {
  if (student.teacher_text.empty()) return nullptr;
  const TeacherSpec spec = read_teacher(import::parse_yaml(student.teacher_text, "model.teacher"));
  if (!spec.like.empty()) throw InputError(fmt::format("'{}' of the catalog has not been looked up", spec.like));
  auto teacher = std::make_shared<Teacher>();
  Model& model = *teacher;
  model = model_behind(spec, student);
  give(model, core::workload::model_options(), spec.values);
  give(*teacher, core::workload::teacher_options(), spec.own);
  if (model.heads == 0 && model.architecture_text.empty())
    throw InputError("a teacher without an architecture needs heads");
  if (model.heads > 0 && model.head_dim == 0 && model.hidden % model.heads != 0)
    throw InputError(
        fmt::format("without head_dim, hidden {} must be a multiple of heads {}", model.hidden, model.heads));
  model.architecture = architecture_of(model);
  return teacher;
}

}  // namespace manyworlds::experiments
