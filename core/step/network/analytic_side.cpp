// The composed side under fidelity analytic: collectives do not touch each other, so each goes by itself. One that all
// members enter at once goes as every such instance of its use; of any other the longest ways give the exits.
#include <algorithm>
#include <queue>
#include <span>
#include <utility>

#include "core/step/network/alone.hpp"
#include "core/step/network/longest_ways.hpp"

namespace manyworlds::core::step {
namespace {

class AnalyticSide final : public Composed {
 public:
  AnalyticSide(const World& world, const IsolatedResults& results)
      : world_(world),
        results_(results),
        alone_(world.uses().size()),
        paths_(world.uses().size()),
        under_way_(world.instances()) {}

  void enter(Time at, const std::vector<Member>& members) override {
    for (auto first = members.begin(), next = first; first != members.end(); first = next) {
      next = std::find_if(first, members.end(), [&](const Member& one) { return one.instance != first->instance; });
      enter_some(at, {&*first, static_cast<std::size_t>(next - first)});
    }
  }

  Time next(Time limit) override {
    for (const std::uint32_t instance : unresolved_) begin_alone(instance);
    unresolved_.clear();
    return due_.empty() || due_.top().at > limit ? kNever : due_.top().at;
  }

  void take(Time at, std::vector<Member>& exits) override {
    while (!due_.empty() && due_.top().at == at) {
      const Due due = due_.top();
      due_.pop();
      if (due.member != kAll) {
        exits.push_back({due.instance, due.member});
        continue;
      }
      UnderWay& of = under_way_[due.instance];
      const auto& leaving = alone_[world_.use_number(due.instance)].exits;
      for (; of.taken < leaving.size() && of.origin + leaving[of.taken].first == at; ++of.taken)
        exits.push_back({due.instance, leaving[of.taken].second});
      if (of.taken < leaving.size()) due_.push({of.origin + leaving[of.taken].first, due.instance, kAll});
    }
  }

  void close(Time) override {
    MANYWORLDS_CHECK(due_.empty() && open_ == 0 && unresolved_.empty(), "{} collectives outlive the step", open_);
  }
  network::PauseWaits standstill() const override { return {}; }
  network::Counters counters() const override { return counters_; }
  const Usages& episodes_used() const override { return no_episodes_; }

  std::vector<std::uint32_t> missing() const override {
    std::vector<std::uint32_t> uses;
    for (const std::uint32_t instance : unresolved_) uses.push_back(world_.use_number(instance));
    return lacking(world_, alone_, results_, std::move(uses));
  }

  Usages isolated_used() const override {
    Usages all;
    for (std::size_t use = 0; use < alone_.size(); ++use) {
      if (alone_[use].times == 0) continue;
      for (const auto& [key, groups] : world_.uses()[use].keys) {
        Usage& used = all[key];
        used = {world_.uses()[use].shape.text(), alone_[use].exits.back().first,
                used.times + alone_[use].times * groups};
      }
    }
    return all;
  }

 private:
  static constexpr std::uint32_t kAll = UINT32_MAX;  // of an instance that goes alone
  struct Due {
    Time at;
    std::uint32_t instance, member;
    bool operator>(const Due& other) const { return at > other.at; }
  };
  struct UnderWay {
    bool waits = false;                 // one member has entered, which can do nothing by itself
    std::uint32_t waiting = 0;          // that one
    std::unique_ptr<LongestWays> ways;  // while some member's exit is not known
    Time origin = 0;                    // of one that goes alone, as is
    std::uint32_t taken = 0;            // how many have left
  };

  /// Members of one instance. A first one by itself has no say in when anything happens, since a transfer begins when
  /// both its ends have entered; a switch, and members it stands for, are ends too.
  void enter_some(Time at, std::span<const Member> members) {
    const Use& use = world_.use_of(members[0].instance);
    UnderWay& of = under_way_[members[0].instance];
    if (!of.ways && !of.waits && members.size() == 1 && use.dag->members > 1 && use.dag->switches.empty() &&
        use.turns() == 1) {
      of.waits = true;
      of.waiting = members[0].member;
      return;
    }
    const bool waited = std::exchange(of.waits, false);
    if (!of.ways && members.size() + waited == use.dag->members) {
      of.origin = at;
      unresolved_.push_back(members[0].instance);
      return;
    }
    if (waited) enter_one(at, {members[0].instance, of.waiting});
    for (const Member& member : members) enter_one(at, member);
  }

  void begin_alone(std::uint32_t instance) {
    const Use& use = world_.use_of(instance);
    Alone& alone = alone_[world_.use_number(instance)];
    alone.look_up(use, results_);
    ++alone.times;
    counters_ += alone.result->counters * use.groups;
    due_.push({under_way_[instance].origin + alone.exits[0].first, instance, kAll});
  }

  void enter_one(Time at, const Member& member) {
    std::unique_ptr<LongestWays>& ways = under_way_[member.instance].ways;
    const Use& use = world_.use_of(member.instance);
    if (!ways) ways = std::make_unique<LongestWays>(use.dag, paths_of(world_.use_number(member.instance))), ++open_;
    exits_.clear();
    ways->enter(world_.transport(), member.member, at, 0, exits_);
    for (const network::Exit& exit : exits_) due_.push({exit.at, member.instance, exit.member});
    if (!ways->over()) return;
    counters_.link_hops += ways->link_hops() * use.groups * use.turns();
    ways = nullptr, --open_;
  }

  const std::shared_ptr<const LongestWays::Paths>& paths_of(std::uint32_t number) {
    std::shared_ptr<const LongestWays::Paths>& slot = paths_[number];
    if (slot) return slot;
    auto made = std::make_shared<LongestWays::Paths>();
    for (const network::Route& route : world_.uses()[number].connections->routes) {
      auto& path = made->emplace_back();
      for (const std::uint32_t link : route) path.push_back(network::spec_of(world_.layout().graph(), link));
    }
    return slot = std::move(made);
  }

  const World& world_;
  const IsolatedResults& results_;
  std::vector<Alone> alone_;                                      // by use
  std::vector<std::shared_ptr<const LongestWays::Paths>> paths_;  // by use
  std::vector<UnderWay> under_way_;                               // by instance
  std::vector<std::uint32_t> unresolved_;                         // that go alone and have not begun
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::vector<network::Exit> exits_;  // while members enter
  std::size_t open_ = 0;              // instances with ways
  network::Counters counters_;
  const Usages no_episodes_;
};

}  // namespace

std::unique_ptr<Composed> make_analytic(const World& world, const IsolatedResults& results) {
  return std::make_unique<AnalyticSide>(world, results);
}

}  // namespace manyworlds::core::step
