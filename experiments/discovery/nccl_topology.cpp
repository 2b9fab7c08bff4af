// NCCL's topology: what NCCL_TOPO_DUMP_FILE writes, and the shorter files that clouds give in NCCL_TOPO_FILE. A GPU is
// a <pci> with a <gpu>, or, where no file names one, a <pci> of that class; so is a NIC, with <net> for each port.
#include <algorithm>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/clusters/fabric.hpp"
#include "experiments/discovery/lines.hpp"
#include "experiments/discovery/node_inside.hpp"
#include "experiments/text/xml.hpp"

namespace manyworlds::experiments::clusters {
namespace {

using import::XmlElement;

constexpr std::size_t kMaxDevices = 4'096;

/// One <cpu> or <pci>, while it is read and after.
struct Level {
  std::size_t parent = SIZE_MAX;
  bool is_pci = false;
  std::string pci_class;
  bool has_gpu = false;
  int line = 0;
  std::vector<std::string> net_names;
  std::vector<double> net_gbps;
  std::int64_t nvlinks = 0, capability = 0;
  std::vector<std::int64_t> gpus;  // below, this level included
};

class TreeReader {
 public:
  explicit TreeReader(const std::string& file) : file_(file) {}

  void begin(const XmlElement& element) {
    const std::size_t parent = open_.empty() ? SIZE_MAX : open_.back();
    std::size_t at = parent;
    if (element.name == "cpu" || element.name == "pci") {
      if (levels_.size() == kMaxDevices) fail(element, "is one more device than any node has");
      at = levels_.size();
      levels_.push_back({});
      levels_[at].parent = parent;
      levels_[at].is_pci = element.name == "pci";
      levels_[at].pci_class = std::string(element.value("class"));
      levels_[at].line = element.line;
    } else if (at != SIZE_MAX) {
      read_inside(levels_[at], element);
    }
    open_.push_back(at);
  }
  void end() { open_.pop_back(); }

  NodeInside take() {
    NodeInside node;
    node.format = "nccl-topology";
    const bool named_gpus = any([](const Level& one) { return one.has_gpu; });
    const bool named_nets = any([](const Level& one) { return !one.net_names.empty(); });
    const auto is_gpu = [&](const Level& one) {
      return named_gpus ? one.has_gpu : is_class(one, {"0x0302", "0x0300"});
    };
    std::vector<std::int64_t> nvlinks;
    for (std::size_t at = 0; at < levels_.size(); ++at) {
      if (!is_gpu(levels_[at])) continue;
      nvlinks.push_back(levels_[at].nvlinks);
      node.compute_capability = std::max(node.compute_capability, levels_[at].capability);
      for (std::size_t up = at; up != SIZE_MAX; up = levels_[up].parent) levels_[up].gpus.push_back(node.gpus);
      ++node.gpus;
    }
    node.nvlinks = usual_value(nvlinks);
    for (std::size_t at = 0; at < levels_.size(); ++at) add_nics(node, at, named_nets);
    if (node.gpus == 0) throw core::InputError("has no GPU: no <gpu>, and no <pci> of class 0x0302", file_, 1);
    if (!named_nets && !node.nics.empty())
      node.notes.push_back("the file names no network interfaces: NICs are its devices of class 0x0207 and 0x0200");
    return node;
  }

 private:
  [[noreturn]] void fail(const XmlElement& element, const std::string& what) const {
    throw core::InputError(fmt::format("<{}> {}", element.name, what), file_, element.line);
  }
  template <class Predicate>
  bool any(Predicate predicate) const {
    return std::any_of(levels_.begin(), levels_.end(), predicate);
  }
  static bool is_class(const Level& one, std::initializer_list<std::string_view> prefixes) {
    return one.is_pci && std::any_of(prefixes.begin(), prefixes.end(),
                                     [&](std::string_view prefix) { return one.pci_class.starts_with(prefix); });
  }

  /// Returns an integer attribute; 0 if it is absent.
  std::int64_t integer(const XmlElement& element, const char* name) const {
    const std::string_view text = element.value(name);
    if (text.empty()) return 0;
    const std::int64_t value = number_in<std::int64_t>(text).value_or(INT64_MIN);
    if (value == INT64_MIN) fail(element, fmt::format("has {}=\"{}\"; it must be an integer", name, text));
    return value;
  }

  void read_inside(Level& level, const XmlElement& element) {
    if (element.name == "gpu") {
      level.has_gpu = true;
      level.capability = std::clamp<std::int64_t>(integer(element, "sm"), 0, 1'000);
    } else if (element.name == "nvlink" || element.name == "c2c") {
      if (element.name == "nvlink") level.nvlinks += std::clamp<std::int64_t>(integer(element, "count"), 0, 1'000);
    } else if (element.name == "net") {
      if (level.net_names.size() == kMaxDevices) fail(element, "is one more interface than any NIC has");
      level.net_names.emplace_back(element.value("name"));
      level.net_gbps.push_back(
          static_cast<double>(std::clamp<std::int64_t>(integer(element, "speed"), 0, 100'000'000)) * 1e-3);
    }
  }

  void add_nics(NodeInside& node, std::size_t at, bool named_nets) {
    const Level& level = levels_[at];
    if (named_nets ? level.net_names.empty() : !is_class(level, {"0x0207", "0x0200"})) return;
    std::vector<std::int64_t> near;
    for (std::size_t up = level.parent; up != SIZE_MAX && levels_[up].is_pci && near.empty(); up = levels_[up].parent)
      near = levels_[up].gpus;
    if (!named_nets) node.nics.push_back({fmt::format("NIC{}", node.nics.size()), 0, near});
    for (std::size_t i = 0; i < level.net_names.size(); ++i)
      node.nics.push_back({level.net_names[i], level.net_gbps[i], near});
  }

  std::string file_;
  std::vector<Level> levels_;
  std::vector<std::size_t> open_;  // the level around each open element
};

}  // namespace

bool is_nccl_topology(std::string_view text) {
  return text.find("<system") != text.npos && text.find("<pci") != text.npos;
}

NodeInside parse_nccl_topology(std::string_view text, const std::string& name) {
  TreeReader reader(name);
  import::walk_xml(
      text, name, [&](const XmlElement& element) { reader.begin(element);
}, [&] {
  reader.end(); });
return reader.take();
}  // namespace manyworlds::experiments::clusters

}  // namespace manyworlds::experiments::clusters
