// Joint simulation of components in one engine.
#include "core/network/flows/joint_simulation.hpp"

#include <utility>

namespace manyworlds::core::network {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::int64_t kWordsPerFlow = 40;  // approximate size of a saved flow

}  // namespace

JointSimulation::JointSimulation(const JointSimulation& other)
    : cache_(other.cache_),
      engine_(other.engine_ ? other.engine_->clone() : nullptr),
      origin_(other.origin_),
      ids_(other.ids_),
      live_(other.live_),
      link_of_slot_(other.link_of_slot_),
      slot_of_link_(other.slot_of_link_),
      links_(other.links_),
      state_words_(other.state_words_),
      simulated_link_hops_(other.simulated_link_hops_),
      reported_(other.reported_) {}

JointSimulation::~JointSimulation() {
  if (engine_) cache_->return_engine(std::move(engine_));
}

void JointSimulation::begin(Time now) {
  if (engine_) return;
  engine_ = cache_->borrow_engine();
  origin_ = now;
  ids_.clear();
  live_.clear();
  link_of_slot_.clear();
  state_words_ = simulated_link_hops_ = 0;
  reported_ = {};
}

void JointSimulation::add_component(Time now, const State& state, const std::vector<FlowId>& flows,
                                    const std::vector<std::uint32_t>& links, const std::vector<std::uint64_t>& orders) {
  begin(now);
  engine_->load(state.words, orders, flow_slots_, link_slots_);
  for (std::size_t number = 0; number < flows.size(); ++number) {
    const std::uint32_t slot = flow_slots_[number];
    if (slot >= ids_.size()) ids_.resize(slot + 1), live_.resize(slot + 1);
    ids_[slot] = flows[number];
    live_[slot] = true;
  }
  for (std::size_t number = 0; number < links.size(); ++number) {
    const std::uint32_t link = links[number], slot = link_slots_[number];
    if (slot >= link_of_slot_.size()) link_of_slot_.resize(slot + 1, kNone);
    link_of_slot_[slot] = link;
    if (link >= slot_of_link_.size()) slot_of_link_.resize(link + 1, kNone);
    slot_of_link_[link] = slot;
    links_.push_back(link);
  }
  state_words_ += static_cast<std::int64_t>(state.words.size());
}

std::uint32_t JointSimulation::slot_of(std::uint32_t link, const LinkSpec& spec) {
  if (link >= slot_of_link_.size()) slot_of_link_.resize(link + 1, kNone);
  if (slot_of_link_[link] == kNone) {
    const std::uint32_t slot = slot_of_link_[link] = engine_->add_link(spec);
    if (slot >= link_of_slot_.size()) link_of_slot_.resize(slot + 1, kNone);
    link_of_slot_[slot] = link;
    links_.push_back(link);
  }
  return slot_of_link_[link];
}

void JointSimulation::start(FlowId id, const Route& route, const std::vector<LinkSpec>& specs, std::int64_t bytes,
                            std::uint64_t order) {
  Route slots;
  for (const std::uint32_t link : route) slots.push_back(slot_of(link, specs[link]));
  const std::uint32_t slot = engine_->start(slots, bytes, order);
  if (slot >= ids_.size()) ids_.resize(slot + 1), live_.resize(slot + 1), state_words_ += kWordsPerFlow;
  ids_[slot] = id;
  live_[slot] = true;
}

JointSimulation::RunResult JointSimulation::run(Time limit, std::vector<FlowId>& finished) {
  completed_.clear();
  engine_->run(limit == kNever ? kNever : limit - origin_, completed_);
  for (const std::uint32_t slot : completed_) {
    finished.push_back(ids_[slot]);
    live_[slot] = false;
  }
  const Counters counters = take_new_counters();
  return {origin_ + engine_->now(), counters};
}

Counters JointSimulation::take_new_counters() {
  const Counters counters = engine_->counters() - std::exchange(reported_, engine_->counters());
  simulated_link_hops_ += counters.link_hops;
  cache_->count_simulated(counters);
  return counters;
}

JointSimulation::Decomposition JointSimulation::decompose() {
  Decomposition decomposition;
  for (ComponentState& saved : engine_->save()) {
    Part& part = decomposition.parts.emplace_back();
    for (const std::uint32_t slot : saved.flows) part.flows.push_back(ids_[slot]);
    for (const std::uint32_t slot : saved.links) part.links.push_back(link_of_slot_[slot]);
    part.state = make_state(std::move(saved));
  }
  decomposition.counters = take_new_counters();
  cache_->return_engine(std::move(engine_));
  for (const std::uint32_t link : links_) slot_of_link_[link] = kNone;
  links_.clear();
  return decomposition;
}

}  // namespace manyworlds::core::network
