#include "experiments/astra_sim/collectives/custom_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "core/base/error.hpp"
#include "experiments/astra_sim/collectives/message_pairs.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

using core::InputError;

/// Runs the nodes of all members.
class CustomRun {
 public:
  CustomRun(const CustomAlgorithm& algorithm, const std::vector<std::uint32_t>& group, const Network& network)
      : algorithm_(algorithm), group_(group), network_(network), members_(group.size()) {
    if (group.size() > algorithm.places.size())
      throw InputError(fmt::format("must have traces of {} ranks, as a group of its collectives has, not of {}",
                                   group.size(), algorithm.places.size()),
                       algorithm.key);
    for (std::uint32_t member = 0; member < group.size(); ++member) {
      Member& one = members_[member];
      one.place = static_cast<std::size_t>(
          std::count_if(group.begin(), group.end(), [&](std::uint32_t rank) { return rank < group[member]; }));
      const std::vector<CustomNode>& nodes = nodes_of(member);
      one.children.resize(nodes.size());
      for (std::uint32_t node = 0; node < nodes.size(); ++node) {
        one.missing.push_back(nodes[node].parents.size());
        for (const std::uint32_t parent : nodes[node].parents) one.children[parent].push_back(node);
        if (nodes[node].step == CustomStep::compute) continue;
        if (nodes[node].peer >= group.size() || nodes[node].peer == member)
          fail(member, node,
               fmt::format("is a transfer with place {} of a group of {}{}", nodes[node].peer, group.size(),
                           nodes[node].peer == member ? ", which is its own" : ""));
      }
    }
  }

  std::vector<std::int64_t> run(const std::vector<std::int64_t>& entries) {
    for (std::uint32_t member = 0; member < entries.size(); ++member) {
      members_[member].end = entries[member];
      schedule(entries[member], {member, kEntry});
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      if (event.of.node == kEntry)
        enter(event.of.member);
      else
        end(event.of);
    }
    check_done();
    std::vector<std::int64_t> ends;
    for (const Member& member : members_) ends.push_back(member.end);
    return ends;
  }

 private:
  static constexpr std::uint32_t kEntry = 0xffffffff;  // no node, but the member's coming
  struct Of {
    std::uint32_t member, node;
  };
  struct Event {
    std::int64_t at;
    std::int64_t number;  // in the order in which they were scheduled
    Of of;
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };
  struct Member {
    std::size_t place = 0;
    std::vector<std::size_t> missing;  // parents that have not ended, by node
    std::vector<std::vector<std::uint32_t>> children;
    std::size_t ended = 0;
    std::int64_t end = 0;
  };

  const std::vector<CustomNode>& nodes_of(std::uint32_t member) const {
    return algorithm_.places[members_[member].place];
  }
  const CustomNode& node_of(Of of) const { return nodes_of(of.member)[of.node]; }

  [[noreturn]] void fail(std::uint32_t member, std::uint32_t node, const std::string& why) const {
    throw InputError(fmt::format("node {} {}", nodes_of(member)[node].id, why),
                     algorithm_.names[members_[member].place]);
  }

  void schedule(std::int64_t at, Of of) {
    if (static_cast<double>(at) > 2 * kLongestNs)
      throw InputError("bandwidth: must be such that a collective takes less than 10^15 ns", network_.name);
    events_.push({at, number_++, of});
  }

  void enter(std::uint32_t member) {
    for (std::uint32_t node = 0; node < nodes_of(member).size(); ++node)
      if (nodes_of(member)[node].parents.empty()) begin({member, node});
  }

  void end(Of of) {
    Member& member = members_[of.member];
    ++member.ended;
    member.end = now_;
    for (const std::uint32_t child : member.children[of.node])
      if (--member.missing[child] == 0) begin({of.member, child});
  }

  void begin(Of of) {
    const CustomNode& node = node_of(of);
    if (node.step == CustomStep::compute) return schedule(now_ + node.ns, of);
    const bool sends = node.step == CustomStep::send;
    const std::uint32_t from = sends ? of.member : node.peer, to = sends ? node.peer : of.member;
    if (!sends) {
      if (const auto arrival = messages_.receive({from, to, node.tag, node.bytes}, of))
        schedule(std::max(now_, *arrival), of);
      return;
    }
    const std::int64_t arrival = now_ + network_.message_ns(network_.way(group_[from], group_[to]), node.bytes);
    schedule(arrival, of);
    if (const auto receiver = messages_.send({from, to, node.tag, node.bytes}, arrival, of))
      schedule(arrival, *receiver);
  }

  void check_done() const {
    for (const auto& [key, pair] : messages_.pairs()) {
      const auto& [from, to, tag, bytes] = key;
      if (!pair.asked.empty())
        fail(pair.asked.front().member, pair.asked.front().node,
             fmt::format("waits for ever: place {} sends it no {} bytes with tag {}", from, bytes, tag));
      if (!pair.arrivals.empty())
        fail(pair.arrivals.front().second.member, pair.arrivals.front().second.node,
             fmt::format("sends {} bytes with tag {} that place {} does not receive", bytes, tag, to));
    }
    for (std::uint32_t member = 0; member < members_.size(); ++member)
      MANYWORLDS_CHECK(members_[member].ended == nodes_of(member).size(), "member {} waits for nothing", member);
  }

  const CustomAlgorithm& algorithm_;
  const std::vector<std::uint32_t>& group_;
  const Network& network_;
  std::vector<Member> members_;
  MessagePairs<Of> messages_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t now_ = 0, number_ = 0;
};

}  // namespace

std::vector<std::int64_t> custom_ends(const CustomAlgorithm& algorithm, const std::vector<std::uint32_t>& group,
                                      const Network& network, const std::vector<std::int64_t>& entries) {
  return CustomRun(algorithm, group, network).run(entries);
}

}  // namespace manyworlds::experiments::astra_sim
