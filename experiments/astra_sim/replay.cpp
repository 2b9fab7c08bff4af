#include "experiments/astra_sim/replay.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "core/base/error.hpp"
#include "experiments/astra_sim/collectives/message_pairs.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

using core::InputError;
using core::collective::Kind;
using graphs::GraphNode;
using graphs::GroupCall;
using graphs::kNoResource;
using graphs::Transfer;

/// The children of every node of a graph.
std::vector<std::vector<std::uint32_t>> children_of(const graphs::RankGraph& graph) {
  std::vector<std::vector<std::uint32_t>> children(graph.nodes.size());
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i)
    for (const std::uint32_t parent : graph.nodes[i].parents) children[parent].push_back(i);
  return children;
}

class Replayer {
 public:
  Replayer(const Job& job, const Network& network, const Memory& memory, Congestion congestion,
           CollectiveTimes& collectives)
      : job_(job),
        network_(network),
        memory_(memory),
        congestion_(congestion),
        collectives_(collectives),
        ranks_(job.graph_of_rank.size()),
        calls_(job.groups.size()) {
    for (const graphs::RankGraph& graph : job.graphs) children_.push_back(children_of(graph));
    result_.spans.resize(ranks_.size());
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::vector<GraphNode>& nodes = graph_of(rank).nodes;
      result_.spans[rank].resize(nodes.size());
      ranks_[rank].left = nodes.size();
      ranks_[rank].next_call.resize(job.groups.size());
      for (std::uint32_t node = 0; node < nodes.size(); ++node) {
        ranks_[rank].missing.push_back(static_cast<std::uint32_t>(nodes[node].parents.size()));
        if (nodes[node].parents.empty()) make_ready(rank, node);
      }
    }
  }

  Replay run() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) start_ready(rank);
    std::set<std::uint32_t> changed;
    while (!ends_.empty()) {
      now_ = ends_.top().at;
      if (static_cast<double>(now_) > kLongestNs)
        throw InputError("bandwidth: must be such that a job takes less than 10^15 ns", network_.name);
      for (changed.clear(); !ends_.empty() && ends_.top().at == now_; ends_.pop()) {
        end(ends_.top().rank, ends_.top().node);
        changed.insert(ends_.top().rank);
      }
      for (const std::uint32_t rank : changed) start_ready(rank);
    }
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank)
      if (ranks_[rank].left > 0) fail_waiting();
    result_.longest_ns = now_;
    return std::move(result_);
  }

 private:
  using ById = std::priority_queue<std::pair<std::uint64_t, std::uint32_t>,
                                   std::vector<std::pair<std::uint64_t, std::uint32_t>>, std::greater<>>;
  struct Resource {
    ById ready;
    bool is_busy = false;
  };
  struct Rank {
    std::vector<std::uint32_t> missing;           // parents that have not ended, by node
    std::map<std::uint32_t, Resource> resources;  // kNoResource: as many at once as are ready
    std::vector<std::size_t> next_call;           // by group
    std::size_t left = 0;                         // nodes that have not ended
  };
  struct End {
    std::int64_t at;
    std::uint32_t rank, node;
    bool operator>(const End& other) const {
      return std::tie(at, rank, node) > std::tie(other.at, other.rank, other.node);
    }
  };
  struct Entered {
    std::uint32_t rank, node;
  };
  /// A collective of a group, as far as its members have come.
  struct Collective {
    Call call;
    std::map<std::uint32_t, Entered> by_rank;
  };

  const graphs::RankGraph& graph_of(std::uint32_t rank) const { return job_.graphs[job_.graph_of_rank[rank]]; }
  const GraphNode& node_of(std::uint32_t rank, std::uint32_t node) const { return graph_of(rank).nodes[node]; }

  [[noreturn]] void fail(std::uint32_t rank, std::uint32_t node, const std::string& why) const {
    const GraphNode& refused = node_of(rank, node);
    throw InputError(fmt::format("{} {}", graphs::node_text(refused.id, refused.name), why), graph_of(rank).name);
  }

  void make_ready(std::uint32_t rank, std::uint32_t node) {
    ranks_[rank].resources[node_of(rank, node).resource].ready.emplace(node_of(rank, node).id, node);
  }

  /// Starts what is ready, by id over all resources. What takes no time ends at once, as others may wait for it.
  void start_ready(std::uint32_t rank) {
    Rank& of = ranks_[rank];
    while (true) {
      Resource* next = nullptr;
      for (auto& [number, resource] : of.resources)
        if (!(resource.is_busy && number != kNoResource) && !resource.ready.empty() &&
            (next == nullptr || resource.ready.top() < next->ready.top()))
          next = &resource;
      if (next == nullptr) return;
      const std::uint32_t node = next->ready.top().second;
      next->ready.pop();
      next->is_busy = true;
      result_.spans[rank][node].begin_ns = now_;
      if (std::holds_alternative<std::monostate>(node_of(rank, node).work))
        end(rank, node);
      else
        begin(rank, node);
    }
  }

  void end_at(std::int64_t at, std::uint32_t rank, std::uint32_t node) { ends_.push({at, rank, node}); }

  void end(std::uint32_t rank, std::uint32_t node) {
    Rank& of = ranks_[rank];
    result_.spans[rank][node].end_ns = now_;
    of.resources[node_of(rank, node).resource].is_busy = false;
    --of.left;
    for (const std::uint32_t child : children_[job_.graph_of_rank[rank]][node])
      if (--of.missing[child] == 0) make_ready(rank, child);
  }

  void begin(std::uint32_t rank, std::uint32_t number) {
    const GraphNode& node = node_of(rank, number);
    if (const auto* call = std::get_if<GroupCall>(&node.work)) return enter(rank, number, *call);
    if (const auto* transfer = std::get_if<Transfer>(&node.work)) return move(rank, number, *transfer);
    if (const auto* copy = std::get_if<programs::CopyWork>(&node.work)) return access(rank, number, copy->bytes);
    end_at(now_ + std::llround(node.us * 1e3), rank, number);
  }

  void access(std::uint32_t rank, std::uint32_t node, std::int64_t bytes) {
    if (memory_.type == MemoryType::none)
      fail(rank, node, "loads or stores remote memory, which there is none of (--astra-memory, NO_MEMORY_EXPANSION)");
    const std::int64_t ns = memory_.access_ns(bytes);
    if (memory_.type == MemoryType::per_rank) return end_at(now_ + ns, rank, node);
    const std::int64_t of = memory_.type == MemoryType::per_node ? rank / memory_.ranks_per_node : 0;
    std::int64_t& free_at = memory_free_at_[of];
    free_at = std::max(free_at, now_) + ns;
    end_at(free_at, rank, node);
  }

  void move(std::uint32_t rank, std::uint32_t number, const Transfer& transfer) {
    if (congestion_ == Congestion::aware)
      fail(rank, number, "is a transfer of two ranks: with congestion these are not modelled (--collectives as-astra)");
    if (transfer.peer >= ranks_.size() || transfer.peer == rank)
      fail(rank, number,
           fmt::format("is a transfer of rank {} with rank {} of {}", rank, transfer.peer, ranks_.size()));
    if (collectives_.custom().has_message(transfer.tag, transfer.bytes))
      fail(rank, number,
           "is a transfer with the tag and the size of one of a custom algorithm, from which ASTRA-sim does not "
           "tell it");
    const std::uint32_t from = transfer.receives ? transfer.peer : rank, to = transfer.receives ? rank : transfer.peer;
    if (transfer.receives) {
      if (const auto arrival = messages_.receive({from, to, transfer.tag, transfer.bytes}, {rank, number}))
        end_at(std::max(now_, *arrival), rank, number);
      return;
    }
    const std::int64_t arrival = now_ + network_.message_ns(network_.way(from, to), transfer.bytes);
    end_at(arrival, rank, number);
    if (const auto receiver = messages_.send({from, to, transfer.tag, transfer.bytes}, arrival, {rank, number}))
      end_at(arrival, receiver->rank, receiver->node);
  }

  /// The custom algorithm that carries out a collective. A group that is named asks for one once for every kind
  /// of collective, when a rank comes to its first (CommunicatorGroup::get_collective_plan).
  std::optional<std::uint32_t> custom_of(std::uint32_t rank, const GroupCall& call, std::uint64_t id) {
    const std::optional<std::uint32_t> custom = collectives_.custom().find(call.kind, id);
    if (call.group == 0 || job_.dimensions.count(call.group) > 0) return custom;
    return planned_.try_emplace({rank, call.group, call.kind}, custom).first->second;
  }

  void enter(std::uint32_t rank, std::uint32_t number, const GroupCall& given) {
    const std::vector<std::uint32_t>& group = job_.groups[given.group];
    const auto members = static_cast<std::int64_t>(group.size());
    const std::optional<std::uint32_t> custom = custom_of(rank, given, node_of(rank, number).id);
    if (given.kind == Kind::broadcast || (members == 1 && !custom))
      return end_at(now_ + (members == 1 ? 0 : std::llround(node_of(rank, number).us * 1e3)), rank, number);
    if (given.kind == Kind::reduce) fail(rank, number, "is a reduce, which ASTRA-sim does not have");
    const auto dimensions = job_.dimensions.find(given.group);
    if (custom && dimensions != job_.dimensions.end())
      fail(rank, number,
           "is of some dimensions alone (involved_dim), which ASTRA-sim does not heed in a custom algorithm");
    const Call call{given.kind, given.kind == Kind::all_gather ? given.bytes / members : given.bytes,
                    custom || dimensions == job_.dimensions.end() ? std::vector<bool>() : dimensions->second, custom};
    std::vector<Collective>& calls = calls_[given.group];
    const std::size_t place = ranks_[rank].next_call[given.group]++;
    if (place == calls.size()) calls.push_back({call, {}});
    Collective& collective = calls[place];
    if (collective.call != call)
      fail(rank, number,
           fmt::format("is collective {} of its group, and not the same as that of its other ranks", place));
    if (std::find(group.begin(), group.end(), rank) == group.end())
      fail(rank, number, fmt::format("is a collective of a group that rank {} is not in", rank));
    collective.by_rank.emplace(rank, Entered{rank, number});
    if (collective.by_rank.size() < group.size()) return;
    std::vector<std::int64_t> entries;
    for (const std::uint32_t member : group)
      entries.push_back(result_.spans[member][collective.by_rank.at(member).node].begin_ns);
    const std::vector<std::int64_t> ends = collectives_.ends(call, group, entries);
    for (std::size_t i = 0; i < group.size(); ++i) end_at(ends[i], group[i], collective.by_rank.at(group[i]).node);
    collective.by_rank.clear();
  }

  [[noreturn]] void fail_waiting() const {
    for (std::size_t group = 0; group < calls_.size(); ++group)
      for (const Collective& one : calls_[group]) {
        if (one.by_rank.empty()) continue;
        std::vector<std::uint32_t> missing;
        for (const std::uint32_t rank : job_.groups[group])
          if (one.by_rank.count(rank) == 0 && missing.size() < 8) missing.push_back(rank);
        const Entered& waits = one.by_rank.begin()->second;
        fail(waits.rank, waits.node, fmt::format("waits for ever for ranks {}", fmt::join(missing, ", ")));
      }
    for (const auto& [key, pair] : messages_.pairs())
      if (!pair.asked.empty())
        fail(pair.asked.front().rank, pair.asked.front().node,
             fmt::format("waits for ever: rank {} sends it no {} bytes with tag {}", std::get<0>(key), std::get<3>(key),
                         std::get<2>(key)));
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank)
      for (std::uint32_t node = 0; node < ranks_[rank].missing.size(); ++node)
        if (ranks_[rank].missing[node] > 0) fail(rank, node, "is in a circle of dependencies, or behind one");
    MANYWORLDS_CHECK(false, "nothing is waited for at {} ns", now_);
  }

  const Job& job_;
  const Network& network_;
  const Memory& memory_;
  Congestion congestion_;
  CollectiveTimes& collectives_;
  std::vector<std::vector<std::vector<std::uint32_t>>> children_;  // by graph and node
  std::vector<Rank> ranks_;
  std::vector<std::vector<Collective>> calls_;  // by group
  std::map<std::tuple<std::uint32_t, std::uint32_t, Kind>, std::optional<std::uint32_t>>
      planned_;  // custom algorithms, by rank, group and kind
  MessagePairs<Entered> messages_;
  std::map<std::int64_t, std::int64_t> memory_free_at_;  // by node of memory
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::int64_t now_ = 0;
  Replay result_;
};

}  // namespace

Replay replay(const Job& job, const Network& network, const Memory& memory, Congestion congestion,
              CollectiveTimes& collectives) {
  return Replayer(job, network, memory, congestion, collectives).run();
}

}  // namespace manyworlds::experiments::astra_sim
