// Flows as clusters that share links. A cluster is a canonical state and the names behind its numbers; between two
// instants at which something starts or completes, it is a pure function that the memo has to compute only once.
// Equal clusters anywhere in the fabric, at any time, in any experiment, are one computation.
#include <algorithm>
#include <queue>

#include "core/error.hpp"
#include "core/network/flows.hpp"
#include "core/network/memo.hpp"
#include "core/sharing/union_find.hpp"

namespace manyworlds::core::network {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

struct Cluster {
  Time since = 0;  // when it was in `state`
  std::shared_ptr<const State> state;
  std::shared_ptr<const Outcome> next;  // of `state` with no limit; null until it is known
  std::vector<FlowId> flows;            // by number
  std::vector<std::uint32_t> links;     // by number
  std::uint32_t life = 0;               // counts uses of this slot, so that old boundaries are recognised
  bool live = false;
};

struct Boundary {
  Time at;
  std::uint32_t cluster, life;
  bool operator>(const Boundary& other) const { return at != other.at ? at > other.at : cluster > other.cluster; }
};

struct Start {
  FlowId id;
  std::uint32_t route;
  std::int64_t bytes;
  std::uint32_t group;  // a cluster slot; its root in `group_` says with whom it starts
};

class DividedFlows final : public Flows {
 public:
  explicit DividedFlows(Memo& memo) : memo_(&memo) {}

  std::uint32_t add_link(const LinkSpec& spec) override {
    specs_.push_back(spec);
    owner_.push_back(kNone);
    return static_cast<std::uint32_t>(specs_.size() - 1);
  }

  std::uint32_t add_route(const Route& route) override {
    // Routes of one shape share their fresh states.
    std::vector<std::uint64_t> shape;
    for (const std::uint32_t link : route) {
      const LinkSpec& spec = specs_[link];
      shape.insert(shape.end(),
                   {static_cast<std::uint64_t>(spec.bits_per_second), static_cast<std::uint64_t>(spec.latency_ps),
                    static_cast<std::uint64_t>(spec.leaves_gpu + 2 * spec.enters_gpu + 4 * spec.scale_up)});
    }
    const auto [found, is_new] = shapes_.try_emplace(std::move(shape), static_cast<std::uint32_t>(fresh_.size()));
    if (is_new) fresh_.emplace_back();
    routes_.push_back({route, found->second});
    return static_cast<std::uint32_t>(routes_.size() - 1);
  }

  void set_ranks(const std::vector<std::uint32_t>& ranks) override { ranks_ = ranks; }

  void start(FlowId id, std::uint32_t route, std::int64_t bytes) override {
    const std::uint32_t cluster = open_cluster();
    for (const std::uint32_t link : routes_[route].links) {
      if (owner_[link] == kNone)
        owner_[link] = cluster;
      else
        group_.join(owner_[link], cluster);
    }
    starts_.push_back({id, route, bytes, cluster});
  }

  void advance(Time limit, std::vector<FlowId>& finished) override {
    settle();
    const std::size_t before = finished.size();
    while (!boundaries_.empty()) {
      const Boundary top = boundaries_.top();
      if (!clusters_[top.cluster].live || clusters_[top.cluster].life != top.life) {
        boundaries_.pop();
        continue;
      }
      if (finished.size() > before && top.at > now_) break;
      if (top.at > limit) break;
      boundaries_.pop();
      now_ = quiet_since_ = top.at;
      reach_boundary(top.cluster, finished);
    }
    if (finished.size() > before)
      std::sort(finished.begin() + static_cast<std::ptrdiff_t>(before), finished.end());
    else if (limit != kNever)
      now_ = limit;
  }

  PauseWaits standstill() const override {
    PauseWaits waits;
    for (const Cluster& cluster : clusters_) {
      if (!cluster.live || !cluster.next) continue;
      const PauseWaits more = renamed(cluster.next->standstill, cluster.links);
      waits.insert(waits.end(), more.begin(), more.end());
    }
    return waits;
  }
  Time now() const override { return now_; }
  bool drained() const override { return live_ == 0; }
  Time quiet_since() const override { return quiet_since_; }
  const Counters& counters() const override { return counters_; }
  std::unique_ptr<Flows> clone() const override { return std::make_unique<DividedFlows>(*this); }

 private:
  struct RoutedShape {
    Route links;
    std::uint32_t shape;
  };

  std::uint32_t open_cluster() {
    std::uint32_t slot = static_cast<std::uint32_t>(clusters_.size());
    if (free_.empty()) {
      clusters_.emplace_back();
      group_.add();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    group_.detach(slot);
    Cluster& cluster = clusters_[slot];
    cluster.live = true;
    cluster.since = now_;
    cluster.state = nullptr;
    cluster.next = nullptr;
    cluster.flows.clear();
    cluster.links.clear();
    ++live_;
    return slot;
  }

  void close_cluster(std::uint32_t slot) {
    Cluster& cluster = clusters_[slot];
    cluster.live = false;
    ++cluster.life;
    cluster.state = nullptr;
    cluster.next = nullptr;
    free_.push_back(slot);
    --live_;
  }

  std::uint64_t order(FlowId id) const { return static_cast<std::uint64_t>(ranks_[id.collective]) << 32 | id.transfer; }

  /// Finds out when a cluster's next completion is.
  void schedule(std::uint32_t slot) {
    Cluster& cluster = clusters_[slot];
    cluster.next = memo_->outcome(*cluster.state, kNever);
    if (cluster.next->standstill.empty())  // else it stands still unless somebody joins, and then too
      boundaries_.push({cluster.since + cluster.next->elapsed, slot, cluster.life});
  }

  void reach_boundary(std::uint32_t slot, std::vector<FlowId>& finished) {
    const Cluster ended = std::move(clusters_[slot]);
    clusters_[slot].life = ended.life;
    close_cluster(slot);
    counters_ += ended.next->counters;
    for (const std::uint32_t link : ended.links) owner_[link] = kNone;
    for (const std::uint32_t number : ended.next->completed) finished.push_back(ended.flows[number]);
    for (const Outcome::Part& part : ended.next->parts) {
      const std::uint32_t made = open_cluster();
      Cluster& cluster = clusters_[made];
      cluster.state = part.state;
      for (const std::uint32_t number : part.flows) cluster.flows.push_back(ended.flows[number]);
      for (const std::uint32_t number : part.links) {
        cluster.links.push_back(ended.links[number]);
        owner_[ended.links[number]] = made;
      }
      unscheduled_.push_back(made);
    }
  }

  /// Everything that started at this instant joins the clusters whose links it uses.
  void settle() {
    if (!starts_.empty()) {
      std::sort(starts_.begin(), starts_.end(), [&](const Start& a, const Start& b) {
        const std::uint32_t ra = group_.root(a.group), rb = group_.root(b.group);
        return ra != rb ? ra < rb : order(a.id) < order(b.id);
      });
      // Old clusters that a start touched, by the group they are in now.
      std::vector<std::pair<std::uint32_t, std::uint32_t>> touched;
      for (const Start& start : starts_)
        for (const std::uint32_t link : routes_[start.route].links) {
          const std::uint32_t owner = owner_[link];
          if (clusters_[owner].state) touched.emplace_back(group_.root(owner), owner);
        }
      std::sort(touched.begin(), touched.end());
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      auto old = touched.begin();
      for (std::size_t begin = 0, end = 0; begin < starts_.size(); begin = end) {
        const std::uint32_t group = group_.root(starts_[begin].group);
        while (end < starts_.size() && group_.root(starts_[end].group) == group) ++end;
        auto old_end = old;
        while (old_end != touched.end() && old_end->first == group) ++old_end;
        begin_group({starts_.data() + begin, end - begin}, {old, old_end});
        old = old_end;
      }
      starts_.clear();
    }
    for (const std::uint32_t slot : unscheduled_)
      if (clusters_[slot].live && !clusters_[slot].next) schedule(slot);
    unscheduled_.clear();
  }

  using Touched = std::vector<std::pair<std::uint32_t, std::uint32_t>>::const_iterator;

  void begin_group(std::span<const Start> starts, std::pair<Touched, Touched> old) {
    if (starts.size() == 1 && old.first == old.second) {
      const Start& start = starts.front();
      Cluster& cluster = clusters_[start.group];
      cluster.state = fresh(start.route, start.bytes);
      cluster.flows = {start.id};
      cluster.links = routes_[start.route].links;
      unscheduled_.push_back(start.group);
      return;
    }
    for (auto it = old.first; it != old.second; ++it) bring_to_now(it->second);
    Engine& engine = memo_->scratch();
    std::vector<FlowId> ids;           // by slot of the engine
    std::vector<std::uint32_t> links;  // by slot of the engine
    std::vector<std::uint32_t> numbers;
    std::vector<std::uint64_t> orders;
    for (auto it = old.first; it != old.second; ++it) {
      const Cluster& cluster = clusters_[it->second];
      orders.clear();
      for (const FlowId id : cluster.flows) orders.push_back(order(id));
      engine.load(cluster.state->words, orders, numbers);
      ids.insert(ids.end(), cluster.flows.begin(), cluster.flows.end());
      links.insert(links.end(), cluster.links.begin(), cluster.links.end());
      close_cluster(it->second);
    }
    slot_of_link_.resize(specs_.size(), kNone);
    for (std::uint32_t slot = 0; slot < links.size(); ++slot) slot_of_link_[links[slot]] = slot;
    for (const Start& start : starts) {
      Route route;
      for (const std::uint32_t link : routes_[start.route].links) {
        if (slot_of_link_[link] == kNone) {
          slot_of_link_[link] = engine.add_link(specs_[link]);
          links.push_back(link);
        }
        route.push_back(slot_of_link_[link]);
      }
      engine.start(route, start.bytes, order(start.id));
      ids.push_back(start.id);
      close_cluster(start.group);
    }
    for (const std::uint32_t link : links) slot_of_link_[link] = kNone, owner_[link] = kNone;
    for (SavedPart& part : engine.save()) {
      const std::uint32_t made = open_cluster();
      Cluster& cluster = clusters_[made];
      cluster.state = make_state(std::move(part.words));
      for (const std::uint32_t slot : part.flows) cluster.flows.push_back(ids[slot]);
      for (const std::uint32_t slot : part.links) {
        cluster.links.push_back(links[slot]);
        owner_[links[slot]] = made;
      }
      unscheduled_.push_back(made);
    }
  }

  /// Replaces the state of a cluster by the one it has at now().
  void bring_to_now(std::uint32_t slot) {
    Cluster& cluster = clusters_[slot];
    if (now_ == cluster.since) return;
    const auto outcome = memo_->outcome(*cluster.state, now_ - cluster.since);
    MANYWORLDS_CHECK(outcome->completed.empty() && outcome->parts.size() == 1, "a cluster of {} flows came to {} parts",
                     cluster.flows.size(), outcome->parts.size());
    counters_ += outcome->counters;
    const Outcome::Part& part = outcome->parts.front();
    std::vector<FlowId> flows;
    std::vector<std::uint32_t> links;
    for (const std::uint32_t number : part.flows) flows.push_back(cluster.flows[number]);
    for (const std::uint32_t number : part.links) links.push_back(cluster.links[number]);
    for (const std::uint32_t link : cluster.links) owner_[link] = kNone;
    cluster.state = part.state;
    cluster.flows = std::move(flows);
    cluster.links = std::move(links);
    cluster.since = now_;
  }

  std::shared_ptr<const State> fresh(std::uint32_t route, std::int64_t bytes) {
    auto& known = fresh_[routes_[route].shape];
    for (const auto& [size, state] : known)
      if (size == bytes) return state;
    std::vector<LinkSpec> path;
    for (const std::uint32_t link : routes_[route].links) path.push_back(specs_[link]);
    return known.emplace_back(bytes, memo_->fresh(path, bytes)).second;
  }

  Memo* memo_;
  Time now_ = 0, quiet_since_ = 0;
  std::vector<LinkSpec> specs_;
  std::vector<std::uint32_t> owner_;  // of each link: a cluster, or none
  std::vector<RoutedShape> routes_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> shapes_;
  std::vector<std::vector<std::pair<std::int64_t, std::shared_ptr<const State>>>> fresh_;  // by shape: (bytes, state)
  std::vector<std::uint32_t> ranks_;
  std::vector<Cluster> clusters_;
  sharing::UnionFind group_;  // of cluster slots, while starts are gathered
  std::vector<std::uint32_t> free_, unscheduled_;
  std::vector<std::uint32_t> slot_of_link_;
  std::priority_queue<Boundary, std::vector<Boundary>, std::greater<>> boundaries_;
  std::vector<Start> starts_;
  std::size_t live_ = 0;
  Counters counters_;
};

}  // namespace

std::unique_ptr<Flows> make_divided_flows(const Transport& transport, Memo& memo) {
  MANYWORLDS_CHECK(memo.transport() == transport, "a memo serves one transport");
  return std::make_unique<DividedFlows>(memo);
}

}  // namespace manyworlds::core::network
