// Flows as clusters that share links. A cluster is a canonical state and the names behind its numbers; between two
// instants at which something starts or completes, it is a pure function that the memo has to compute only once.
// Equal clusters anywhere in the fabric, at any time, in any experiment, are one computation.
//
// Remembering has a price: a state is saved, looked up and loaded at each completion. A cluster that keeps paying it
// without meeting a known state goes on undivided for a while (undivided.hpp), then for longer and longer.
#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "core/base/error.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/flows/memo.hpp"
#include "core/network/flows/undivided.hpp"
#include "core/sharing/union_find.hpp"

namespace manyworlds::core::network {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

// What things cost, in nanoseconds, on the machine this was written on; only their proportions matter.
constexpr std::int64_t kLinkHop = 55;
constexpr std::int64_t kHit = 500;                       // a look-up that finds something
constexpr std::int64_t kMiss = 6'000, kWordOfMiss = 40;  // one that does not: load, save, hash, keep
constexpr std::int64_t kJoin = 3'000, kWordOfJoin = 28;  // flows start in a cluster
constexpr std::int64_t kMissShare = 20;                  // a miss may cost this part of what it simulated
constexpr std::int64_t kPatience = 500'000;              // what a cluster may cost beyond what it saved
constexpr std::int64_t kMostSaved = 20'000'000;          // what savings count against later costs, at most
constexpr std::int64_t kLeastStretch = 4;    // link-hops for each word before what is undivided is looked at again
constexpr std::uint32_t kMostDoublings = 6;  // of that, each time nothing known is met then

void append_spec(Words& words, const LinkSpec& spec) {
  words.insert(words.end(),
               {static_cast<std::uint64_t>(spec.bits_per_second), static_cast<std::uint64_t>(spec.latency_ps),
                static_cast<std::uint64_t>(spec.leaves_gpu + 2 * spec.enters_gpu + 4 * spec.scale_up)});
}

struct Cluster {
  Time since = 0;  // when it was in `state`
  std::shared_ptr<const State> state;
  std::shared_ptr<const Outcome> next;  // of `state` with no limit; null until it is known
  std::vector<FlowId> flows;            // by number
  std::vector<std::uint32_t> links;     // by number
  std::int64_t credit = 0;              // what memory saved it less what that cost, at most kPatience
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
  explicit DividedFlows(Memo& memo) : memo_(&memo), undivided_(memo) {}

  std::uint32_t add_link(const LinkSpec& spec) override {
    specs_.push_back(spec);
    owner_.push_back(kNone);
    return static_cast<std::uint32_t>(specs_.size() - 1);
  }

  std::uint32_t add_route(const Route& route) override {
    // Routes of one shape share their fresh states.
    Words shape;
    for (const std::uint32_t link : route) append_spec(shape, specs_[link]);
    const auto [found, is_new] = shapes_.try_emplace(std::move(shape), static_cast<std::uint32_t>(fresh_.size()));
    if (is_new) fresh_.emplace_back();
    routes_.push_back({route, found->second});
    return static_cast<std::uint32_t>(routes_.size() - 1);
  }

  void set_ranks(const std::vector<std::uint32_t>& ranks) override {
    ranks_ = ranks;
    undivided_.rank([&](FlowId id) { return order(id); });
  }
  void add_rank(std::uint32_t rank) override { ranks_.push_back(rank); }

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
    for (;;) {
      while (!boundaries_.empty() && !is_current(boundaries_.top())) boundaries_.pop();
      const bool over = finished.size() > before;
      Time until = over ? now_ : std::min(limit, boundaries_.empty() ? kNever : boundaries_.top().at);
      if (undivided_.running()) until = run_undivided(until, finished);
      if (boundaries_.empty() || boundaries_.top().at > until || boundaries_.top().at > limit) break;
      const Boundary top = boundaries_.top();
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
    PauseWaits waits = undivided_.standstill();
    for (const Cluster& cluster : clusters_) {
      if (!cluster.live || !cluster.next) continue;
      const PauseWaits more = renamed(cluster.next->standstill, cluster.links);
      waits.insert(waits.end(), more.begin(), more.end());
    }
    return waits;
  }
  Time now() const override { return now_; }
  bool drained() const override { return live_ == 0 && undivided_.drained(); }
  Time quiet_since() const override {
    return undivided_.running() ? std::max(quiet_since_, undivided_.quiet_since()) : quiet_since_;
  }
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
    cluster.credit = first_credit();
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

  bool is_current(const Boundary& boundary) const {
    return clusters_[boundary.cluster].live && clusters_[boundary.cluster].life == boundary.life;
  }

  /// Finds out when a cluster's next completion is, unless it has cost too much already.
  void schedule(std::uint32_t slot) {
    if (clusters_[slot].credit < -kPatience && may_undivide()) return undivide(slot);
    Cluster& cluster = clusters_[slot];
    cluster.next = look_up(cluster, kNever);
    if (cluster.next->standstill.empty())  // else it stands still unless somebody joins, and then too
      boundaries_.push({cluster.since + cluster.next->elapsed, slot, cluster.life});
  }

  std::shared_ptr<const Outcome> look_up(Cluster& cluster, Time limit) {
    Memo::Found found = memo_->outcome(*cluster.state, limit);
    const std::int64_t worth = found.outcome->counters.link_hops * kLinkHop;
    if (found.known) {
      if (cluster.credit <= -kPatience) doublings_ = 0;
      book(cluster, worth - kHit);
    } else {
      book(cluster, worth / kMissShare - kMiss - kWordOfMiss * static_cast<std::int64_t>(cluster.state->words.size()));
    }
    return std::move(found.outcome);
  }

  void book(Cluster& cluster, std::int64_t saved) {
    cluster.credit = std::min(cluster.credit + saved, kPatience);
    memo_->balance = std::min(memo_->balance + saved, kMostSaved);
  }
  /// What is undivided is simulated whole. That is the same only if what is remembered is exact; what it costs, which
  /// depends on all that was met before, must not decide about rate skipping.
  bool may_undivide() const { return memo_->transport().rate_tolerance_ppm == 0; }
  /// Of a cluster without history: where memory does not pay, it may miss once.
  std::int64_t first_credit() const { return memo_->balance < 0 ? -kPatience : 0; }

  /// A cluster that is at now() goes on with what is undivided.
  void undivide(std::uint32_t slot) {
    if (!undivided_.running()) {
      undivided_slot_ = open_cluster();
      --live_;  // it says itself whether anything is left of it
    }
    const Cluster& cluster = clusters_[slot];
    orders_.clear();
    for (const FlowId id : cluster.flows) orders_.push_back(order(id));
    undivided_.adopt(now_, *cluster.state, cluster.flows, cluster.links, orders_);
    for (const std::uint32_t link : cluster.links) owner_[link] = undivided_slot_;
    close_cluster(slot);
  }

  /// Returns the instant it came to: `until`, or that of a completion before it.
  Time run_undivided(Time until, std::vector<FlowId>& finished) {
    const std::size_t before = finished.size();
    const auto [now, counters] = undivided_.run(until, finished);
    counters_ += counters;
    memo_->balance = std::min(memo_->balance + counters.link_hops * kLinkHop / kMissShare, kMostSaved);
    const bool completes = finished.size() > before;
    if (completes) now_ = quiet_since_ = until = now;
    if (undivided_.drained() || (completes && undivided_.due(kLeastStretch << doublings_))) divide();
    return until;
  }

  /// What is undivided becomes clusters again, each of which may cost one miss.
  void divide() {
    quiet_since_ = quiet_since();
    for (const std::uint32_t link : undivided_.links()) owner_[link] = kNone;
    ++live_;
    close_cluster(std::exchange(undivided_slot_, kNone));
    doublings_ = std::min(doublings_ + 1, kMostDoublings);
    Undivided::Divided divided = undivided_.divide();
    counters_ += divided.counters;
    for (Undivided::Part& part : divided.parts) {
      const std::uint32_t made = open_cluster();
      Cluster& cluster = clusters_[made];
      cluster.state = std::move(part.state);
      cluster.flows = std::move(part.flows);
      cluster.links = std::move(part.links);
      cluster.credit = -kPatience;
      for (const std::uint32_t link : cluster.links) owner_[link] = made;
      unscheduled_.push_back(made);
    }
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
      cluster.credit = ended.credit;
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
      if (clusters_[slot].live && clusters_[slot].state && !clusters_[slot].next) schedule(slot);
    unscheduled_.clear();
    if (undivided_.running()) group_.detach(undivided_slot_);  // it keeps its slot; all it was joined with are closed
  }

  using Touched = std::vector<std::pair<std::uint32_t, std::uint32_t>>::const_iterator;

  void begin_group(std::span<const Start> starts, std::pair<Touched, Touched> old) {
    if (undivided_.running() && group_.root(undivided_slot_) == group_.root(starts.front().group))
      return join_undivided(starts, old);
    if (starts.size() == 1 && old.first == old.second) {
      const Start& start = starts.front();
      Cluster& cluster = clusters_[start.group];
      cluster.state = fresh(start.route, start.bytes);
      cluster.flows = {start.id};
      cluster.links = routes_[start.route].links;
      unscheduled_.push_back(start.group);
      return;
    }
    const Joining joining = put_together(starts, old);
    const auto load = [&](Engine& engine) {
      std::vector<std::uint32_t> flow_slots, link_slots;
      std::size_t first = 0;
      for (const auto& state : joining.states) {
        const std::size_t flows = state->words[1];
        engine.load(state->words, {joining.orders.data() + first, flows}, flow_slots, link_slots);
        first += flows;
      }
      for (const LinkSpec& spec : joining.fresh) engine.add_link(spec);
      for (std::size_t i = 0; i < starts.size(); ++i)
        engine.start(joining.routes[i], starts[i].bytes, joining.orders[first + i]);
    };
    const Memo::Joined joined = memo_->join(joining.words, load);
    for (const Outcome::Part& part : *joined.parts) {
      const std::uint32_t made = open_cluster();
      Cluster& cluster = clusters_[made];
      cluster.state = part.state;
      cluster.credit = joining.credit;
      const auto words = static_cast<std::int64_t>(cluster.state->words.size());
      book(cluster, joined.known ? -kHit : -kJoin - kWordOfJoin * words);
      for (const std::uint32_t slot : part.flows) cluster.flows.push_back(joining.ids[slot]);
      for (const std::uint32_t slot : part.links) {
        cluster.links.push_back(joining.links[slot]);
        owner_[joining.links[slot]] = made;
      }
      unscheduled_.push_back(made);
    }
  }

  /// States at now() and what starts in them; flows and links by their slot in an engine that loads all in this order.
  struct Joining {
    std::vector<std::shared_ptr<const State>> states;
    std::vector<Route> routes;    // of what starts
    std::vector<LinkSpec> fresh;  // links that no state has
    std::vector<FlowId> ids;
    std::vector<std::uint32_t> links;
    std::vector<std::uint64_t> orders;
    std::int64_t credit = 0;
    Words words;  // all that matters of it
  };

  Joining put_together(std::span<const Start> starts, std::pair<Touched, Touched> old) {
    Joining made;
    made.credit = first_credit();
    made.words = {static_cast<std::uint64_t>(old.second - old.first), starts.size()};
    for (auto it = old.first; it != old.second; ++it) {
      bring_to_now(it->second);
      const Cluster& cluster = clusters_[it->second];
      made.credit = std::min(made.credit, cluster.credit);
      made.states.push_back(cluster.state);
      made.words.insert(made.words.end(), cluster.state->digest.begin(), cluster.state->digest.end());
      made.ids.insert(made.ids.end(), cluster.flows.begin(), cluster.flows.end());
      made.links.insert(made.links.end(), cluster.links.begin(), cluster.links.end());
      close_cluster(it->second);
    }
    slot_of_link_.resize(specs_.size(), kNone);
    for (std::uint32_t slot = 0; slot < made.links.size(); ++slot) slot_of_link_[made.links[slot]] = slot;
    for (const Start& start : starts) {
      Route& route = made.routes.emplace_back();
      made.words.push_back(static_cast<std::uint64_t>(start.bytes));
      made.words.push_back(routes_[start.route].links.size());
      for (const std::uint32_t link : routes_[start.route].links) {
        if (slot_of_link_[link] == kNone) {
          slot_of_link_[link] = static_cast<std::uint32_t>(made.links.size());
          made.links.push_back(link);
          made.fresh.push_back(specs_[link]);
          append_spec(made.words, specs_[link]);
        }
        route.push_back(slot_of_link_[link]);
        made.words.push_back(route.back());
      }
      made.ids.push_back(start.id);
      close_cluster(start.group);
    }
    for (const std::uint32_t link : made.links) slot_of_link_[link] = kNone, owner_[link] = kNone;
    for (const FlowId id : made.ids) made.orders.push_back(order(id));
    std::vector<std::uint64_t> ranked(made.ids.size());
    std::iota(ranked.begin(), ranked.end(), 0u);
    std::sort(ranked.begin(), ranked.end(), [&](auto a, auto b) { return made.orders[a] < made.orders[b]; });
    made.words.insert(made.words.end(), ranked.begin(), ranked.end());
    return made;
  }

  void join_undivided(std::span<const Start> starts, std::pair<Touched, Touched> old) {
    for (auto it = old.first; it != old.second; ++it) {
      bring_to_now(it->second);
      undivide(it->second);
    }
    for (const Start& start : starts) {
      const Route& links = routes_[start.route].links;
      undivided_.start(start.id, links, specs_, start.bytes, order(start.id));
      for (const std::uint32_t link : links) owner_[link] = undivided_slot_;
      close_cluster(start.group);
    }
  }

  /// Replaces the state of a cluster by the one it has at now().
  void bring_to_now(std::uint32_t slot) {
    Cluster& cluster = clusters_[slot];
    if (now_ == cluster.since) return;
    const auto outcome = look_up(cluster, now_ - cluster.since);
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
  Undivided undivided_;
  std::uint32_t undivided_slot_ = kNone;  // stands for it among the clusters while it runs
  std::uint32_t doublings_ = 0;
  Time now_ = 0, quiet_since_ = 0;
  std::vector<LinkSpec> specs_;
  std::vector<std::uint32_t> owner_;  // of each link: a cluster, or none
  std::vector<RoutedShape> routes_;
  std::map<Words, std::uint32_t> shapes_;
  std::vector<std::vector<std::pair<std::int64_t, std::shared_ptr<const State>>>> fresh_;  // by shape: (bytes, state)
  std::vector<std::uint32_t> ranks_;
  std::vector<Cluster> clusters_;
  sharing::UnionFind group_;  // of cluster slots, while starts are gathered
  std::vector<std::uint32_t> free_, unscheduled_;
  std::vector<std::uint32_t> slot_of_link_;
  std::vector<std::uint64_t> orders_;
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
