#include "experiments/faults/faults.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/error.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/text.hpp"
#include "topologies/parts/connectivity.hpp"

namespace manyworlds::experiments {
namespace {

using core::InputError;
using core::network::Graph;
using core::network::Link;

constexpr std::string_view kBlanks = " ";
constexpr const char* kCableSyntax = "NAME-NAME, NAME-NAME#N or NAME";

/// Returns the items between commas; none for an empty text.
std::vector<std::string_view> split_items(std::string_view text, const char* key) {
  std::vector<std::string_view> items;
  if (import::trimmed(text, kBlanks).empty()) return items;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    items.push_back(import::trimmed(text.substr(0, comma), kBlanks));
    if (items.back().empty()) throw InputError(fmt::format("'{}' has nothing between two commas", key));
    text.remove_prefix(more ? comma + 1 : text.size());
  }
  return items;
}

/// Finds cables by name. A cable is identified by the index of its first direction.
class CableFinder {
 public:
  explicit CableFinder(const Graph& graph) : graph_(graph) {
    for (std::uint32_t vertex = 0; vertex < graph.names.size(); ++vertex) vertex_[graph.names[vertex]] = vertex;
  }

  std::vector<std::uint32_t> named(std::string_view text, const char* key) const {
    const std::size_t hash = text.find('#'), dash = text.substr(0, hash).find('-');
    if (dash == std::string_view::npos && hash != std::string_view::npos)
      throw InputError(fmt::format("'{}': '{}' counts cables of no pair; write {}", key, text, kCableSyntax));
    if (dash == std::string_view::npos) {
      const std::uint32_t only_end = vertex(text, key);
      return cables_where([&](const Link& link) { return link.from == only_end || link.to == only_end; });
    }
    const std::uint32_t a = vertex(text.substr(0, dash), key);
    const std::uint32_t b = vertex(text.substr(0, hash).substr(dash + 1), key);
    const auto parallel = cables_where(
        [&](const Link& link) { return (link.from == a && link.to == b) || (link.from == b && link.to == a); });
    if (parallel.empty())
      throw InputError(fmt::format("'{}': no cable joins {} and {}", key, graph_.names[a], graph_.names[b]));
    if (hash == std::string_view::npos) return parallel;
    const std::string_view digits = text.substr(hash + 1);
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || number >= parallel.size())
      throw InputError(fmt::format("'{}': '{}' must count from 0 to {}, the cables between {} and {}", key, text,
                                   parallel.size() - 1, graph_.names[a], graph_.names[b]));
    return {parallel[number]};
  }

 private:
  std::uint32_t vertex(std::string_view name, const char* key) const {
    const auto found = vertex_.find(std::string(name));
    if (found == vertex_.end())
      throw InputError(fmt::format("'{}': this fabric has no '{}'{}; write {}", key, name,
                                   suggestion(std::string(name), similar_names(name)), kCableSyntax));
    return found->second;
  }
  /// Returns the vertex names within two edits of `name`; if there are none, one example of each kind of vertex.
  std::vector<std::string> similar_names(std::string_view name) const {
    std::vector<std::string> names;
    constexpr std::size_t kMaxEdits = 2;
    for (const std::string& known : graph_.names)
      if (edit_distance(std::string(name), known) <= kMaxEdits) names.push_back(known);
    const auto letters = [](std::string_view text) { return text.substr(0, text.find_first_of("0123456789")); };
    if (names.empty())
      for (const std::string& known : graph_.names)
        if (std::none_of(names.begin(), names.end(), [&](const auto& one) { return letters(one) == letters(known); }))
          names.push_back(known);
    return names;
  }
  template <class Which>
  std::vector<std::uint32_t> cables_where(Which predicate) const {
    std::vector<std::uint32_t> cables;
    for (std::uint32_t link = 0; link < graph_.links.size(); link += 2)
      if (predicate(graph_.links[link])) cables.push_back(link);
    return cables;
  }

  const Graph& graph_;
  std::unordered_map<std::string, std::uint32_t> vertex_;
};

double share_of(std::string_view text, const char* key, const char* example) {
  const std::size_t equals = text.find('=');
  const std::string_view digits =
      equals == std::string_view::npos ? "" : import::trimmed(text.substr(equals + 1), kBlanks);
  double share = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), share);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || !(share > 0 && share < 1))
    throw InputError(
        fmt::format("'{}': '{}' must end in a share of the rate above 0 and below 1, as in {}", key, text, example));
  return share;
}

/// Returns the rate of every cable as a share of its full rate: 0 if it is down, nothing if it has no fault.
std::vector<std::optional<double>> rate_shares_of(const Faults& faults, const Graph& graph) {
  const CableFinder cables(graph);
  std::vector<std::optional<double>> rate_share(graph.links.size());
  const auto set = [&](std::string_view text, const char* key, double share) {
    for (const std::uint32_t cable : cables.named(text, key)) {
      if (rate_share[cable])
        throw InputError(fmt::format("'{}': '{}' names {}-{} a second time", key, text,
                                     graph.names[graph.links[cable].from], graph.names[graph.links[cable].to]));
      rate_share[cable] = share;
    }
  };
  for (const std::string_view item : split_items(faults.down, "faults.down")) set(item, "faults.down", 0);
  for (const std::string_view item : split_items(faults.slow, "faults.slow")) {
    const double share = share_of(item, "faults.slow", "leaf0-spine1=0.5; what carries nothing is 'faults.down'");
    set(import::trimmed(item.substr(0, item.find('=')), kBlanks), "faults.slow", share);
  }
  return rate_share;
}

/// Returns the time of "leaf0-spine1@2ms".
core::Time time_of(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::string_view digits = at == std::string_view::npos ? "" : import::trimmed(text.substr(at + 1), kBlanks);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(digits.data() + digits.size() - end));
  const core::Time scale = unit == "us"   ? core::kMicrosecond
                           : unit == "ms" ? 1'000 * core::kMicrosecond
                           : unit == "s"  ? 1'000'000 * core::kMicrosecond
                                          : 0;
  constexpr double kLongest = 1e6;  // seconds
  if (digits.empty() || error != std::errc() || scale == 0 || !(value >= 0) ||
      value * static_cast<double>(scale) > kLongest * 1e12)
    throw InputError(
        fmt::format("'faults.fails': '{}' must end in the time since the begin of the step in us, ms or s, "
                    "as in leaf0-spine1@2ms; what is broken from the begin is 'faults.down'",
                    text));
  return core::round_half_up(value * static_cast<double>(scale));
}

}  // namespace

const core::OptionTable<Faults>& fault_options() {
  static const core::OptionTable<Faults> table{
      core::option("down", &Faults::down, "cables without link: leaf0-spine1, leaf0-spine1#0, spine3 (all of it), …"),
      core::option("slow", &Faults::slow, "cables at a share of their rate: leaf0-spine2=0.5, …"),
      core::option(
          "fails", &Faults::fails,
          "cables that fail on the way, with the time since the begin of the step or of net: leaf0-spine1@2ms, …; "
          "fidelity fluid, or packet and composition coupled"),
      core::option("reconverge_us", &Faults::reconverge_us,
                   "from a failure until routes avoid the cable; until then what goes over it is lost", {0, 1e10},
                   "us"),
      core::option(
          "retransmit_us", &Faults::retransmit_us,
          "timeout after which NICs of a lossless fabric send again what was lost (RoCE: 4.096 us times two to the "
          "NCCL_IB_TIMEOUT); 0: at once when there are routes",
          {0, 1e10}, "us"),
      core::option("slow_gpus", &Faults::slow_gpus,
                   "GPUs whose kernels run at a share of their rate, a node for all of its: gpu3=0.8, node1=0.9, …"),
  };
  return table;
}

core::step::LinkFailures failures_of(const Faults& faults, const Graph& graph) {
  core::step::LinkFailures result;
  const std::vector<std::string_view> items = split_items(faults.fails, "faults.fails");
  if (items.empty()) return result;
  result.reconvergence_ps = core::round_half_up(faults.reconverge_us * static_cast<double>(core::kMicrosecond));
  result.retransmit_ps = core::round_half_up(faults.retransmit_us * static_cast<double>(core::kMicrosecond));
  const CableFinder cables(graph);
  Graph left = graph;
  std::vector<bool> fails(graph.links.size(), false);
  for (const std::string_view item : items) {
    const core::Time at = time_of(item);
    for (const std::uint32_t link :
         cables.named(import::trimmed(item.substr(0, item.find('@')), kBlanks), "faults.fails")) {
      if (fails[link])
        throw InputError(fmt::format("'faults.fails': '{}' names {}-{} a second time", item,
                                     graph.names[graph.links[link].from], graph.names[graph.links[link].to]));
      fails[link] = fails[link + 1] = true;
      result.cables.push_back({link, at});
    }
  }
  left.links.clear();
  for (std::size_t link = 0; link < graph.links.size(); ++link)
    if (!fails[link]) left.links.push_back(graph.links[link]);
  if (const auto pair = topologies::find_unreachable_pair(left))
    throw InputError(fmt::format("'faults.fails' leave no path from GPU {} to GPU {}", pair->first, pair->second));
  return result;
}

std::map<std::int64_t, double> slow_gpus(const Faults& faults, std::int64_t nodes, std::int64_t gpus_per_node) {
  constexpr const char* kKey = "faults.slow_gpus";
  std::map<std::int64_t, double> speed_factors;
  for (const std::string_view item : split_items(faults.slow_gpus, kKey)) {
    const double share = share_of(item, kKey, "gpu3=0.8");
    const std::string_view name = import::trimmed(item.substr(0, item.find('=')), kBlanks);
    const bool is_node = name.starts_with("node");
    const std::string_view digits = name.substr(is_node ? 4 : std::min<std::size_t>(3, name.size()));
    const std::int64_t count = is_node ? nodes : nodes * gpus_per_node, each = is_node ? gpus_per_node : 1;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool named = (is_node || name.starts_with("gpu")) && error == std::errc() && !digits.empty() &&
                       end == digits.data() + digits.size() && number >= 0 && number < count;
    if (!named)
      throw InputError(fmt::format("'{}': there is no '{}'; write gpu0 to gpu{} or node0 to node{}", kKey, name,
                                   nodes * gpus_per_node - 1, nodes - 1));
    for (std::int64_t gpu = number * each; gpu < (number + 1) * each; ++gpu)
      if (!speed_factors.try_emplace(gpu, share).second)
        throw InputError(fmt::format("'{}': '{}' names gpu{} a second time", kKey, item, gpu));
  }
  return speed_factors;
}

void apply_faults(const Faults& faults, Graph& graph) {
  if (faults.fabric_is_intact()) return;
  const auto rate_share = rate_shares_of(faults, graph);
  std::vector<Link> remaining;
  for (std::size_t cable = 0; cable < graph.links.size(); cable += 2) {
    if (rate_share[cable] && *rate_share[cable] == 0) continue;
    for (const std::size_t direction : {cable, cable + 1}) {
      remaining.push_back(graph.links[direction]);
      std::int64_t& rate = remaining.back().bits_per_second;
      if (rate_share[cable])
        rate = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(rate) * *rate_share[cable]));
    }
  }
  graph.links = std::move(remaining);
  if (const auto pair = topologies::find_unreachable_pair(graph))
    throw InputError(fmt::format("'faults' leave no path from GPU {} to GPU {}", pair->first, pair->second));
}

}  // namespace manyworlds::experiments
