#include "experiments/config/faults.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/error.hpp"
#include "experiments/text/nearest.hpp"
#include "topologies/parts/reach.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::network::Graph;
using core::network::Link;

constexpr const char* kForm = "NAME-NAME, NAME-NAME#N or NAME";

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// What stands between commas; nothing for an empty text.
std::vector<std::string_view> items_of(std::string_view text, const char* key) {
  std::vector<std::string_view> items;
  if (trimmed(text).empty()) return items;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    items.push_back(trimmed(text.substr(0, comma)));
    if (items.back().empty()) throw InputError(fmt::format("'{}' has nothing between two commas", key));
    text.remove_prefix(more ? comma + 1 : text.size());
  }
  return items;
}

/// Finds the cables that a text names. A cable is the number of its first direction.
class Cables {
 public:
  explicit Cables(const Graph& graph) : graph_(graph) {
    for (std::uint32_t vertex = 0; vertex < graph.names.size(); ++vertex) vertex_[graph.names[vertex]] = vertex;
  }

  std::vector<std::uint32_t> named(std::string_view text, const char* key) const {
    const std::size_t hash = text.find('#'), dash = text.substr(0, hash).find('-');
    if (dash == std::string_view::npos && hash != std::string_view::npos)
      throw InputError(fmt::format("'{}': '{}' counts cables of no pair; write {}", key, text, kForm));
    if (dash == std::string_view::npos) {
      const std::uint32_t alone = vertex(text, key);
      return those([&](const Link& link) { return link.from == alone || link.to == alone; });
    }
    const std::uint32_t a = vertex(text.substr(0, dash), key);
    const std::uint32_t b = vertex(text.substr(0, hash).substr(dash + 1), key);
    const auto all =
        those([&](const Link& link) { return (link.from == a && link.to == b) || (link.from == b && link.to == a); });
    if (all.empty())
      throw InputError(fmt::format("'{}': no cable joins {} and {}", key, graph_.names[a], graph_.names[b]));
    if (hash == std::string_view::npos) return all;
    const std::string_view digits = text.substr(hash + 1);
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || number >= all.size())
      throw InputError(fmt::format("'{}': '{}' must count from 0 to {}, the cables between {} and {}", key, text,
                                   all.size() - 1, graph_.names[a], graph_.names[b]));
    return {all[number]};
  }

 private:
  std::uint32_t vertex(std::string_view name, const char* key) const {
    const auto found = vertex_.find(std::string(name));
    if (found == vertex_.end())
      throw InputError(fmt::format("'{}': this fabric has no '{}'{}; write {}", key, name,
                                   suggestion(std::string(name), near(name)), kForm));
    return found->second;
  }
  /// Names a slip away from this one; if there is none, one of every sort.
  std::vector<std::string> near(std::string_view name) const {
    std::vector<std::string> names;
    constexpr std::size_t kSlip = 2;
    for (const std::string& known : graph_.names)
      if (edit_distance(std::string(name), known) <= kSlip) names.push_back(known);
    const auto letters = [](std::string_view text) { return text.substr(0, text.find_first_of("0123456789")); };
    if (names.empty())
      for (const std::string& known : graph_.names)
        if (std::none_of(names.begin(), names.end(), [&](const auto& one) { return letters(one) == letters(known); }))
          names.push_back(known);
    return names;
  }
  template <class Which>
  std::vector<std::uint32_t> those(Which which) const {
    std::vector<std::uint32_t> cables;
    for (std::uint32_t link = 0; link < graph_.links.size(); link += 2)
      if (which(graph_.links[link])) cables.push_back(link);
    return cables;
  }

  const Graph& graph_;
  std::unordered_map<std::string, std::uint32_t> vertex_;
};

double share_of(std::string_view text, const char* key, const char* example) {
  const std::size_t equals = text.find('=');
  const std::string_view digits = equals == std::string_view::npos ? "" : trimmed(text.substr(equals + 1));
  double share = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), share);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || !(share > 0 && share < 1))
    throw InputError(
        fmt::format("'{}': '{}' must end in a share of the rate above 0 and below 1, as in {}", key, text, example));
  return share;
}

/// What becomes of every cable: nothing, a share of its rate, or 0 where it is down.
std::vector<std::optional<double>> fates_of(const Faults& faults, const Graph& graph) {
  const Cables cables(graph);
  std::vector<std::optional<double>> fate(graph.links.size());
  const auto set = [&](std::string_view text, const char* key, double share) {
    for (const std::uint32_t cable : cables.named(text, key)) {
      if (fate[cable])
        throw InputError(fmt::format("'{}': '{}' names {}-{} a second time", key, text,
                                     graph.names[graph.links[cable].from], graph.names[graph.links[cable].to]));
      fate[cable] = share;
    }
  };
  for (const std::string_view item : items_of(faults.down, "faults.down")) set(item, "faults.down", 0);
  for (const std::string_view item : items_of(faults.slow, "faults.slow")) {
    const double share = share_of(item, "faults.slow", "leaf0-spine1=0.5; what carries nothing is 'faults.down'");
    set(trimmed(item.substr(0, item.find('='))), "faults.slow", share);
  }
  return fate;
}

}  // namespace

const core::OptionTable<Faults>& fault_options() {
  static const core::OptionTable<Faults> table{
      core::option("down", &Faults::down, "cables without link: leaf0-spine1, leaf0-spine1#0, spine3 (all of it), …"),
      core::option("slow", &Faults::slow, "cables at a share of their rate: leaf0-spine2=0.5, …"),
      core::option("slow_gpus", &Faults::slow_gpus,
                   "GPUs whose kernels run at a share of their rate, a node for all of its: gpu3=0.8, node1=0.9, …"),
  };
  return table;
}

std::map<std::int64_t, double> slow_gpus(const Faults& faults, std::int64_t nodes, std::int64_t gpus_per_node) {
  constexpr const char* kKey = "faults.slow_gpus";
  std::map<std::int64_t, double> paces;
  for (const std::string_view item : items_of(faults.slow_gpus, kKey)) {
    const double share = share_of(item, kKey, "gpu3=0.8");
    const std::string_view name = trimmed(item.substr(0, item.find('=')));
    const bool whole = name.starts_with("node");
    const std::string_view digits = name.substr(whole ? 4 : std::min<std::size_t>(3, name.size()));
    const std::int64_t count = whole ? nodes : nodes * gpus_per_node, each = whole ? gpus_per_node : 1;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool named = (whole || name.starts_with("gpu")) && error == std::errc() && !digits.empty() &&
                       end == digits.data() + digits.size() && number >= 0 && number < count;
    if (!named)
      throw InputError(fmt::format("'{}': there is no '{}'; write gpu0 to gpu{} or node0 to node{}", kKey, name,
                                   nodes * gpus_per_node - 1, nodes - 1));
    for (std::int64_t gpu = number * each; gpu < (number + 1) * each; ++gpu)
      if (!paces.try_emplace(gpu, share).second)
        throw InputError(fmt::format("'{}': '{}' names gpu{} a second time", kKey, item, gpu));
  }
  return paces;
}

void apply(const Faults& faults, Graph& graph) {
  if (faults.none()) return;
  const auto fate = fates_of(faults, graph);
  std::vector<Link> left;
  for (std::size_t cable = 0; cable < graph.links.size(); cable += 2) {
    if (fate[cable] && *fate[cable] == 0) continue;
    for (const std::size_t direction : {cable, cable + 1}) {
      left.push_back(graph.links[direction]);
      std::int64_t& rate = left.back().bits_per_second;
      if (fate[cable])
        rate = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(rate) * *fate[cable]));
    }
  }
  graph.links = std::move(left);
  if (const auto pair = topologies::unconnected(graph))
    throw InputError(fmt::format("'faults' leave no path from GPU {} to GPU {}", pair->first, pair->second));
}

}  // namespace manyworlds::experiments
