#include "experiments/astra_sim/files/custom_algorithms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/base/error.hpp"
#include "experiments/chakra/trace.hpp"
#include "experiments/chakra/trace_paths.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/text/text.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

using chakra::Attribute;
using chakra::NodeType;
using chakra::TraceNode;
using core::InputError;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
constexpr std::int64_t kTags = 500'000'000;  // from here on ASTRA-sim's tags are of its own collectives
constexpr std::uint64_t kMaxUs = 1'000'000'000;
constexpr std::size_t kMaxTraceBytes = std::size_t{2} << 30;

/// Reads the trace of one place.
class PlaceReader {
 public:
  explicit PlaceReader(const chakra::TraceFile& file) : name_(file.name) {
    nodes_ = chakra::parse_trace(file.bytes, file.name).nodes;
    if (nodes_.empty()) throw InputError("has no node: ASTRA-sim would wait for its end for ever", name_);
    std::stable_sort(nodes_.begin(), nodes_.end(), [](auto& a, auto& b) { return a.id < b.id; });
  }

  std::vector<CustomNode> read() {
    const chakra::NodePlaces places(nodes_, name_);
    std::vector<CustomNode> custom;
    for (const TraceNode& node : nodes_) {
      custom.push_back(custom_node(node));
      for (const auto* ids : {&node.data_deps, &node.ctrl_deps}) places.append(node, *ids, custom.back().parents);
    }
    return custom;
  }

 private:
  [[noreturn]] void fail(const TraceNode& node, const std::string& why) const { chakra::refuse(node, why, name_); }

  std::int64_t needed(const TraceNode& node, const char* name, std::int64_t least, std::int64_t most) const {
    const auto found = std::find_if(node.attributes.begin(), node.attributes.end(),
                                    [&](const Attribute& one) { return one.name == name; });
    if (found == node.attributes.end()) fail(node, fmt::format("has no attribute '{}'", name));
    const std::optional<std::int64_t> value = found->integer();
    if (!value || *value < least || *value > most)
      fail(node, fmt::format("has '{}' which is no integer from {} to {}", name, least, most));
    return *value;
  }

  CustomNode custom_node(const TraceNode& node) const {
    CustomNode custom;
    custom.id = node.id;
    const auto type = static_cast<NodeType>(node.type);
    if (type == NodeType::comp) {
      if (node.duration_us > kMaxUs) fail(node, fmt::format("takes {} us, above {}", node.duration_us, kMaxUs));
      custom.ns = node.duration_us > 0 ? static_cast<std::int64_t>(node.duration_us) * 1000 : 1;
      return custom;
    }
    if (type != NodeType::comm_send && type != NodeType::comm_recv)
      fail(node, "is no send, receive or computation, of which a custom algorithm is made in ASTRA-sim");
    const bool sends = type == NodeType::comm_send;
    custom.step = sends ? CustomStep::send : CustomStep::receive;
    custom.peer = static_cast<std::uint32_t>(needed(node, sends ? "comm_dst" : "comm_src", 0, programs::kMaxRanks - 1));
    custom.bytes = needed(node, "comm_size", 1, kMaxBytes);
    custom.tag = static_cast<std::uint64_t>(needed(node, "comm_tag", 0, kTags - 1));
    return custom;
  }

  const std::string& name_;
  std::vector<TraceNode> nodes_;
};

/// Throws for a circle of dependencies.
void check_circles(const std::vector<CustomNode>& nodes, const std::string& name) {
  std::vector<std::size_t> missing(nodes.size());
  std::vector<std::vector<std::uint32_t>> children(nodes.size());
  std::vector<std::uint32_t> free;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i].parents.size();
    for (const std::uint32_t parent : nodes[i].parents) children[parent].push_back(i);
    if (missing[i] == 0) free.push_back(i);
  }
  for (std::size_t done = 0; done < free.size(); ++done)
    for (const std::uint32_t child : children[free[done]])
      if (--missing[child] == 0) free.push_back(child);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] > 0)
      throw InputError(fmt::format("node {} is in a circle of dependencies, or behind one", nodes[i].id), name);
}

/// Reads the traces at a prefix.
CustomAlgorithm read_one(const std::string& prefix, const std::string& key) {
  std::vector<chakra::TraceFile> files;
  std::error_code error;
  if (const std::string first = chakra::path_of(prefix, 0); !std::filesystem::exists(first, error))
    return {key, {first}, {}};
  const std::uint32_t places = chakra::count_traces(prefix);
  for (std::uint32_t place = 0; place < places; ++place) {
    const std::string name = chakra::path_of(prefix, place);
    files.push_back({name, import::read_table_text(name, kMaxTraceBytes)});
  }
  return parse_custom_algorithm(files, key);
}

}  // namespace

std::optional<std::uint32_t> CustomAlgorithms::find(core::collective::Kind kind, std::uint64_t node) const {
  if (const auto found = of_node.find(static_cast<std::int32_t>(node)); found != of_node.end()) return found->second;
  if (const auto found = of_kind.find(kind); found != of_kind.end()) return found->second;
  return std::nullopt;
}

bool CustomAlgorithms::has_message(std::uint64_t tag, std::int64_t bytes) const {
  return messages.count({tag % kTags, bytes}) > 0;
}

std::uint32_t CustomAlgorithms::add(CustomAlgorithm algorithm) {
  for (const std::vector<CustomNode>& place : algorithm.places)
    for (const CustomNode& node : place)
      if (node.step != CustomStep::compute) messages.emplace(node.tag, node.bytes);
  all.push_back(std::move(algorithm));
  return static_cast<std::uint32_t>(all.size() - 1);
}

CustomAlgorithm parse_custom_algorithm(const std::vector<chakra::TraceFile>& files, const std::string& key) {
  CustomAlgorithm custom;
  custom.key = key;
  for (const chakra::TraceFile& file : files) {
    custom.names.push_back(file.name);
    custom.places.push_back(PlaceReader(file).read());
    check_circles(custom.places.back(), file.name);
  }
  return custom;
}

std::map<std::int32_t, std::string> parse_per_node_file(std::string_view text, const std::string& name) {
  const import::Node document = import::parse_yaml(text, name);
  if (document.kind != import::Node::Kind::mapping)
    throw InputError("must be a mapping of nodes of the workload to prefixes of traces, as {4: algorithms/ring}", name);
  std::map<std::int32_t, std::string> prefixes;
  for (const import::Entry& entry : document.entries) {
    std::int32_t node = 0;
    const char* end = entry.key.data() + entry.key.size();
    const auto [stop, error] = std::from_chars(entry.key.data(), end, node);
    if (error != std::errc() || stop != end)
      throw InputError(fmt::format("{}: must be the id of a node of the workload, an integer", entry.key.substr(0, 60)),
                       name, entry.line);
    if (entry.value.kind != import::Node::Kind::scalar)
      throw InputError(fmt::format("{}: must be the prefix of traces, a text", node), name, entry.line);
    prefixes[node] = entry.value.text;
  }
  return prefixes;
}

CustomAlgorithms read_custom_algorithms(const CustomNames& names, const std::string& system) {
  CustomAlgorithms custom;
  std::map<std::string, std::uint32_t> known;
  const auto number_of = [&](const std::string& prefix, const std::string& key) {
    const auto found = known.find(prefix);
    return found != known.end() ? found->second : known[prefix] = custom.add(read_one(prefix, key));
  };
  for (const auto& [kind, named] : names.of_kind)
    custom.of_kind[kind] = number_of(named.second, fmt::format("{}: {}", system, named.first));
  if (!names.per_node_file) return custom;
  const std::string& path = *names.per_node_file;
  for (const auto& [node, prefix] : parse_per_node_file(import::read_text(path), path))
    custom.of_node[node] = number_of(prefix, fmt::format("{}: {}", path, node));
  return custom;
}

}  // namespace manyworlds::experiments::astra_sim
