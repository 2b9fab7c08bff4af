// Reads the file of edits.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "core/compute/measured.hpp"
#include "experiments/edits/edit.hpp"
#include "experiments/programs/kernel_shapes.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/programs/words.hpp"
#include "experiments/tree/scalar.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::edits {
namespace {

using core::InputError;
using import::Entry;
using import::Node;

constexpr double kMaxFactor = 1e6, kMaxUs = 1e9;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50, kMaxExtent = std::int64_t{1} << 40;
constexpr std::size_t kMaxEdits = 10'000;
constexpr std::array<const char*, 6> kKinds{"kernel", "copy", "host", "collective", "send", "receive"};
constexpr std::array<const char*, 10> kActions{"scale",  "drop",   "fuse",  "set",  "move",
                                               "insert", "bucket", "batch", "hold", "widen"};

std::vector<std::string> words(const auto& list) {
  return {list.begin(), list.end()};
}

double real(const Node& node, const std::string& key, double least, double most) {
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::real;
  info.minimum = least, info.maximum = most;
  return std::get<double>(import::read_value(node, info, key));
}
double factor(const Node& node, const std::string& key) {
  return real(node, key, 0, kMaxFactor);
}
std::int64_t whole(const Node& node, const std::string& key, std::int64_t most, const char* unit = "") {
  core::OptionInfo info;
  info.unit = unit;
  info.minimum = 1, info.maximum = static_cast<double>(most);
  return std::get<std::int64_t>(import::read_value(node, info, key));
}

template <class Value, class Read>
void read_if_there(const Node& node, const char* key, Value& value, const Read& read) {
  if (const Node* found = node.find(key)) value = read(*found, key);
}

/// Reads one of a list of names into the value of its place.
template <class Value>
void read_choice(const Node& node, const char* key, const auto& list, std::optional<Value>& value) {
  const Node* found = node.find(key);
  if (found == nullptr) return;
  const std::vector<std::string> names = words(list);
  const std::string name = import::read_line(*found, key, names);
  value = static_cast<Value>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// Returns the kind that a selection names, whose key is one of kKinds; nothing if it names none.
const Entry* kind_of(const Node& node) {
  const Entry* found = nullptr;
  for (const Entry& entry : node.entries) {
    if (std::find(kKinds.begin(), kKinds.end(), entry.key) == kKinds.end()) continue;
    if (found != nullptr)
      throw InputError(fmt::format("selects '{}' and '{}'; make it two edits", found->key, entry.key), *node.file,
                       entry.line);
    found = &entry;
  }
  return found;
}

/// Returns a list, as one text ("0-7,16") or one of YAML.
std::string list_of(const Node& node, const char* key) {
  if (node.kind != Node::Kind::sequence || node.items.empty()) return import::read_line(node, key);
  std::vector<std::string> items;
  for (const Node& item : node.items) items.push_back(import::read_line(item, key));
  return fmt::format("{}", fmt::join(items, ","));
}

void read_occurrences(const Node& node, Selection& selection) {
  const std::string text = list_of(node, "occurrences");
  selection.is_last = text == "last";
  if (selection.is_last) return;
  try {
    selection.occurrences = programs::parse_ranks(text == "first" ? "0" : text);
  } catch (const InputError&) {
    node.fail(fmt::format("'occurrences' must be first, last, or a list as in 0-7,16, not '{}'", text));
  }
}

std::vector<std::uint32_t> ranks_of(const Node& node, const char* key) {
  try {
    std::vector<std::uint32_t> ranks = programs::parse_ranks(list_of(node, key));
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  } catch (const InputError& error) {
    if (error.located()) throw;
    throw error.at(*node.file, node.line);
  }
}

Selection selection_of(const Node& node) {
  const Entry* what = node.kind == Node::Kind::mapping ? kind_of(node) : nullptr;
  if (what == nullptr && !node.entries.empty()) {
    std::vector<std::string> known = words(kKinds);
    known.insert(known.end(), {"stream", "ranks", "occurrences", "part", "gemm", "in", "name"});
    import::check_keys(node, known, "a selection");
  }
  if (what == nullptr)
    node.fail(fmt::format("a selection must be a mapping with one of {}, as in {{kernel: \"*gemm*\"}}, not {}",
                          fmt::join(kKinds, ", "), describe(node)));
  Selection selection;
  selection.line = node.line;
  selection.kind = static_cast<OpKind>(std::find(kKinds.begin(), kKinds.end(), what->key) - kKinds.begin());
  selection.what = import::read_line(what->value, what->key);
  std::vector<std::string> keys{what->key, "stream", "ranks", "occurrences"};
  if (selection.kind == OpKind::kernel) keys.insert(keys.end(), {"part", "gemm"});
  if (selection.kind == OpKind::collective) keys.emplace_back("in");
  if (selection.kind != OpKind::kernel && selection.kind != OpKind::host) keys.emplace_back("name");
  import::check_keys(node, keys, "a selection");
  const auto line = [](const Node& value, const char* key) { return import::read_line(value, key); };
  read_if_there(node, "stream", selection.stream, line);
  read_if_there(node, "name", selection.name, line);
  read_if_there(node, "in", selection.dimension, line);
  read_if_there(node, "part", selection.part, line);
  read_if_there(node, "gemm", selection.gemm, line);
  read_if_there(node, "ranks", selection.ranks, ranks_of);
  if (const Node* occurrences = node.find("occurrences")) read_occurrences(*occurrences, selection);
  return selection;
}

/// Returns a node as JSON: what is not quoted is a number or a truth value where it can be one.
nlohmann::json as_json(const Node& node) {
  if (node.kind == Node::Kind::mapping) {
    nlohmann::json object = nlohmann::json::object();
    for (const Entry& entry : node.entries) object[entry.key] = as_json(entry.value);
    return object;
  }
  if (node.kind == Node::Kind::sequence) {
    nlohmann::json list = nlohmann::json::array();
    for (const Node& item : node.items) list.push_back(as_json(item));
    return list;
  }
  if (node.kind == Node::Kind::null) return nullptr;
  if (!node.quoted) {
    if (const auto whole = core::number_in<std::int64_t>(node.text)) return *whole;
    if (const auto number = core::number_in<double>(node.text)) return *number;
    if (node.text == "true" || node.text == "false") return node.text == "true";
  }
  return node.text;
}

Scale scale_of(const Node& node) {
  import::check_keys(node, {"time", "bytes", "m", "n", "k", "batch"}, "'scale'");
  Scale scale;
  for (const auto& [key, value] : {std::pair("time", &scale.time),
                                   {"bytes", &scale.bytes},
                                   {"m", &scale.m},
                                   {"n", &scale.n},
                                   {"k", &scale.k},
                                   {"batch", &scale.batch}})
    read_if_there(node, key, *value, factor);
  if (node.entries.empty()) node.fail("'scale' must have 'time', 'bytes', 'm', 'n', 'k' or 'batch', as in {time: 0.5}");
  return scale;
}

Fuse fuse_of(const Node& node) {
  import::check_keys(node, {"time", "bytes"}, "'fuse'");
  Fuse fuse;
  read_if_there(node, "time", fuse.time, factor);
  read_if_there(node, "bytes", fuse.bytes, factor);
  return fuse;
}

programs::GemmShape gemm_of(const Node& node) {
  if (node.kind != Node::Kind::sequence || node.items.size() != 4)
    node.fail(fmt::format("'gemm' must be [m, n, k, batch], not {}", describe(node)));
  programs::GemmShape shape;
  std::int64_t* extents[]{&shape.m, &shape.n, &shape.k, &shape.batch};
  double product = 2;
  for (std::size_t i = 0; i < 4; ++i) {
    *extents[i] = whole(node.items[i], "gemm", kMaxExtent);
    product *= static_cast<double>(*extents[i]);
  }
  if (product > 1e18) node.fail("'gemm' must have at most 1e18 operations");
  return shape;
}

programs::AttentionShape attention_of(const Node& node) {
  constexpr std::array<const char*, 8> kKeys{"class", "queries",   "keys",   "width",
                                             "batch", "key_batch", "causal", "dtype"};
  if (node.kind != Node::Kind::mapping)
    node.fail(
        fmt::format("'attention' must be a mapping, as in {{class: flash2_forward, queries: 1024, keys: 1024, width: "
                    "64, batch: 96}}, not {}",
                    describe(node)));
  import::check_keys(node, words(kKeys), "'attention'");
  try {
    const nlohmann::json value = as_json(node);
    return programs::attention_of(import::JsonView(value, "attention"));
  } catch (const InputError& error) {
    if (error.located()) throw;
    node.fail(error.what());
  }
}

Set set_of(const Node& node) {
  import::check_keys(node, {"us", "bytes", "gemm", "attention", "dtype", "scales_with"}, "'set'");
  Set set;
  read_if_there(node, "us", set.us, [](const Node& value, const char* key) { return real(value, key, 0, kMaxUs); });
  read_if_there(node, "bytes", set.bytes,
                [](const Node& value, const char* key) { return whole(value, key, kMaxBytes, "bytes"); });
  if (const Node* gemm = node.find("gemm")) set.gemm = gemm_of(*gemm);
  if (const Node* attention = node.find("attention")) set.attention = attention_of(*attention);
  if (set.gemm && set.attention) node.fail("a kernel has 'gemm' or 'attention', not both");
  read_choice(node, "dtype", core::compute::kDtypeNames, set.dtype);
  read_choice(node, "scales_with", programs::kScalesWith, set.scales_with);
  if (node.entries.empty()) node.fail("'set' must have 'us', 'bytes', 'gemm', 'attention', 'dtype' or 'scales_with'");
  return set;
}

Batch batch_of(const Node& node) {
  import::check_keys(node, {"factor", "tokens"}, "'batch'");
  Batch batch;
  for (const char* key : {"factor", "tokens"})
    if (node.find(key) == nullptr)
      node.fail("'batch' must have 'factor' and 'tokens', as in {factor: 2, tokens: 8192}");
  batch.factor = factor(*node.find("factor"), "factor");
  batch.tokens = whole(*node.find("tokens"), "tokens", kMaxExtent);
  return batch;
}

Widen widen_of(const Node& node) {
  import::check_keys(node, {"in", "factor"}, "'widen'");
  for (const char* key : {"in", "factor"})
    if (node.find(key) == nullptr) node.fail("'widen' must have 'in' and 'factor', as in {in: tp, factor: 2}");
  return {import::read_line(*node.find("in"), "in"), whole(*node.find("factor"), "factor", 1 << 20)};
}

/// Reads one edit: an action, what it is done to, and for some what waits for it.
Edit edit_of(const Node& node) {
  if (node.kind != Node::Kind::mapping)
    node.fail(
        fmt::format("an edit must be a mapping, as in {{select: {{kernel: \"*gemm*\"}}, scale: {{time: 0.5}}}}, "
                    "not {}",
                    describe(node)));
  const Entry* action = nullptr;
  for (const Entry& entry : node.entries) {
    if (std::find(kActions.begin(), kActions.end(), entry.key) == kActions.end()) continue;
    if (action != nullptr)
      throw InputError(fmt::format("has '{}' and '{}'; make it two edits", action->key, entry.key), *node.file,
                       entry.line);
    action = &entry;
  }
  if (action == nullptr) node.fail(fmt::format("an edit must have one of {}", fmt::join(kActions, ", ")));
  const std::string& what = action->key;
  const bool is_insert = what == "insert";
  if (what == "hold") {
    import::check_keys(node, {what}, "an edit that holds ranks");
    Selection all_of_ranks;
    all_of_ranks.kind = OpKind::recorded;
    all_of_ranks.ranks = ranks_of(action->value, "hold");
    return {std::move(all_of_ranks), Hold{}, node.line};
  }
  if (what == "widen") {
    import::check_keys(node, {what}, "an edit that widens groups");
    return {{}, widen_of(action->value), node.line};
  }
  std::vector<std::string> keys{what, is_insert ? "after" : "select"};
  if (is_insert || what == "move") keys.emplace_back("before");
  import::check_keys(node, keys, "an edit");

  Edit edit;
  edit.line = node.line;
  const Node* before = node.find("before");
  const Node* select = node.find(is_insert ? "after" : "select");
  if (select == nullptr && is_insert) select = before;
  if (select == nullptr) node.fail(is_insert ? "'insert' must have 'after', 'before' or both" : "'select' is missing");
  edit.selection = selection_of(*select);
  const bool has_waiting = before != nullptr && before != select;
  const std::optional<Selection> waiting = has_waiting ? std::optional(selection_of(*before)) : std::nullopt;
  const Node& value = action->value;
  if (what == "scale") edit.action = scale_of(value);
  if (what == "drop") {
    if (value.text != "true") value.fail("'drop' must be true");
    edit.action = Drop{};
  }
  if (what == "fuse") edit.action = fuse_of(value);
  if (what == "set") edit.action = set_of(value);
  if (what == "move") edit.action = Move{import::read_line(value, "move"), waiting};
  if (is_insert) {
    if (value.kind != Node::Kind::mapping)
      value.fail(
          fmt::format("'insert' must be an operation of a program file, as in {{kernel: cast, us: 3, stream: "
                      "compute}}, not {}",
                      describe(value)));
    edit.action = Insert{as_json(value), before == select, waiting};
  }
  if (what == "bucket") edit.action = Bucket{whole(value, "bucket", kMaxBytes, "bytes")};
  if (what == "batch") edit.action = batch_of(value);
  if ((what == "fuse" || what == "batch") && edit.selection.kind != OpKind::kernel)
    select->fail(fmt::format("'{}' is of kernels, and '{}' selects none", what, name_of(edit.selection.kind)));
  if (what == "bucket" && edit.selection.kind != OpKind::collective) select->fail("'bucket' is of collectives");
  return edit;
}

}  // namespace

const char* name_of(const Action& action) {
  return kActions[action.index()];
}

const char* name_of(OpKind kind) {
  return kKinds.at(static_cast<std::size_t>(kind));
}

Edits parse_edits(std::string_view text, const std::string& name) {
  const Node root = import::parse_yaml(text, name);
  if (root.kind != Node::Kind::sequence || root.items.empty())
    root.fail(
        fmt::format("must be a list of edits, as in `- {{select: {{kernel: \"*gemm*\"}}, scale: {{time: 0.5}}}}`, "
                    "not {}",
                    describe(root)));
  if (root.items.size() > kMaxEdits) root.fail(fmt::format("has more than {} edits", kMaxEdits));
  Edits edits{name, {}};
  for (const Node& item : root.items) edits.edits.push_back(edit_of(item));
  return edits;
}

}  // namespace manyworlds::experiments::edits
