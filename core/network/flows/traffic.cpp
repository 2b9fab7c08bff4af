// Execution of collectives: the DAG of each collective starts its flows.
#include "core/network/flows/traffic.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::core::network {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

}  // namespace

Traffic::Traffic(const Traffic& other)
    : flows_(other.flows_->clone()),
      routes_(other.routes_),
      running_(other.running_),
      slot_of_(other.slot_of_),
      free_(other.free_),
      delayed_(other.delayed_) {}

std::uint32_t Traffic::add_routes(const std::vector<Route>& routes) {
  std::vector<std::uint32_t>& numbers = routes_.emplace_back();
  for (const Route& route : routes) numbers.push_back(flows_->add_route(route));
  return static_cast<std::uint32_t>(routes_.size() - 1);
}

std::uint32_t Traffic::add(std::shared_ptr<const collective::Dag> dag, std::uint32_t routes) {
  MANYWORLDS_CHECK(routes_[routes].size() == dag->pairs.size(), "{} routes for {} pairs", routes_[routes].size(),
                   dag->pairs.size());
  RunningCollective& run = open_slot(dag->members, routes);
  run.wait_count = dag->wait_count;
  run.remaining = dag->transfer_count;
  run.dag = std::move(dag);
  return static_cast<std::uint32_t>(slot_of_.size() - 1);
}

std::uint32_t Traffic::add(std::shared_ptr<const collective::TransferGenerator> generator,
                           const std::vector<Route>& routes) {
  MANYWORLDS_CHECK(routes.size() == generator->pairs() && generator->transfers() <= UINT32_MAX,
                   "{} routes, {} transfers", routes.size(), generator->transfers());
  RunningCollective& run = open_slot(generator->width(), add_routes(routes));
  for (std::uint32_t member = 0; member < generator->width(); ++member)
    run.remaining.push_back(generator->transfer_count(member));
  run.generator = std::move(generator);
  return static_cast<std::uint32_t>(slot_of_.size() - 1);
}

Traffic::RunningCollective& Traffic::open_slot(std::uint32_t members, std::uint32_t routes) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(running_.size()));
    running_.emplace_back();
  }
  slot_of_.push_back(free_.back());
  free_.pop_back();
  RunningCollective& run = running_[slot_of_.back()];
  run.routes = routes;
  run.entered.assign(members, false);
  run.members_inside = members;
  return run;
}

void Traffic::enter(std::uint32_t collective, std::uint32_t member) {
  RunningCollective& run = running(collective);
  MANYWORLDS_CHECK(!run.entered[member], "member {} enters collective {} twice", member, collective);
  run.entered[member] = true;
  if (const Time launch_ps = run.generator ? run.generator->launch_ps() : run.dag->launch_ps; launch_ps > 0)
    postpone({now() + launch_ps, true, {collective, member}});
  else
    open({collective, member});
}

void Traffic::open(FlowId member) {
  if (const auto generator = running(member.collective).generator) {
    std::vector<std::uint32_t> entry;
    generator->add_entry(member.transfer, entry);
    for (const std::uint32_t transfer : entry) satisfy_generated(member.collective, transfer);
    return;
  }
  const auto dag = running(member.collective).dag;
  for (std::uint32_t i = dag->entry_begin[member.transfer]; i < dag->entry_begin[member.transfer + 1]; ++i)
    satisfy_dependency(member.collective, dag->entry[i]);
}

void Traffic::satisfy_dependency(std::uint32_t collective, std::uint32_t node) {
  RunningCollective& run = running(collective);
  if (--run.wait_count[node] > 0) return;
  const collective::Dag& dag = *run.dag;
  if (node >= dag.transfers.size()) {  // a join node without a transfer
    for (std::uint32_t i = dag.successors_begin[node]; i < dag.successors_begin[node + 1]; ++i)
      satisfy_dependency(collective, dag.successors[i]);
  } else {
    start_after(dag.transfers[node].delay_ps, {collective, node});
  }
}

void Traffic::satisfy_generated(std::uint32_t collective, std::uint32_t transfer) {
  RunningCollective& run = running(collective);
  const auto waiting = run.waiting.find(transfer);
  const std::uint32_t missing =
      (waiting == run.waiting.end() ? run.generator->wait_count(transfer) : waiting->second) - 1;
  if (missing > 0) {
    run.waiting.insert_or_assign(transfer, missing);
    return;
  }
  if (waiting != run.waiting.end()) run.waiting.erase(waiting);
  start_after(run.generator->transfer(transfer).delay_ps, {collective, transfer});
}

void Traffic::start_after(std::uint32_t delay_ps, FlowId id) {
  if (delay_ps > 0)
    postpone({now() + delay_ps, false, id});
  else
    start(id);
}

void Traffic::start(FlowId id) {
  const RunningCollective& run = running(id.collective);
  const collective::Transfer item =
      run.generator ? run.generator->transfer(id.transfer) : run.dag->transfers[id.transfer];
  flows_->start(id, routes_[run.routes][item.pair], item.bytes);
}

void Traffic::postpone(const DelayedStart& item) {
  delayed_.push_back(item);
  std::push_heap(delayed_.begin(), delayed_.end(), std::greater<>());
}

void Traffic::start_delayed() {
  while (!delayed_.empty() && delayed_.front().at <= now()) {
    std::pop_heap(delayed_.begin(), delayed_.end(), std::greater<>());
    const DelayedStart due = delayed_.back();
    delayed_.pop_back();
    due.is_entry ? open(due.item) : start(due.item);
  }
}

void Traffic::finish(FlowId id, std::vector<Exit>& exits) {
  if (running(id.collective).generator) return finish_generated(id, exits);
  const auto dag = running(id.collective).dag;
  for (std::uint32_t i = dag->successors_begin[id.transfer]; i < dag->successors_begin[id.transfer + 1]; ++i)
    satisfy_dependency(id.collective, dag->successors[i]);
  leave(id.collective, dag->pairs[dag->transfers[id.transfer].pair], exits);
}

void Traffic::finish_generated(FlowId id, std::vector<Exit>& exits) {
  const collective::TransferGenerator& generator = *running(id.collective).generator;
  successors_.clear();
  generator.add_successors(id.transfer, successors_);
  for (const std::uint32_t successor : successors_) satisfy_generated(id.collective, successor);
  leave(id.collective, generator.ends(generator.transfer(id.transfer).pair), exits);
}

/// Counts a finished transfer between two members; those leave for which it was the last.
void Traffic::leave(std::uint32_t collective, std::pair<std::uint32_t, std::uint32_t> members,
                    std::vector<Exit>& exits) {
  RunningCollective& run = running(collective);
  for (const std::uint32_t member : {members.first, members.second}) {
    if (member >= run.remaining.size() || --run.remaining[member] > 0) continue;  // switches are not members
    exits.push_back({flows_->now(), collective, member});
    if (--run.members_inside > 0) continue;
    run = RunningCollective{};
    free_.push_back(std::exchange(slot_of_[collective], kNone));
    return;
  }
}

void Traffic::advance(Time limit, std::vector<Exit>& exits) {
  const std::size_t before = exits.size();
  Time until = limit;
  do {
    until = delayed_.empty() ? limit : std::min(limit, delayed_.front().at);
    finished_.clear();
    flows_->advance(until, finished_);
    for (const FlowId id : finished_) finish(id, exits);
    start_delayed();
  } while (exits.size() == before && (!finished_.empty() || until < limit));
  std::sort(exits.begin() + static_cast<std::ptrdiff_t>(before), exits.end());
}

void Traffic::absorb(Traffic other, Time shift) {
  MANYWORLDS_CHECK(other.now() + shift == now(), "traffic at {} absorbs traffic at {}", now(), other.now() + shift);
  const auto first_collective = static_cast<std::uint32_t>(slot_of_.size());
  const auto first_routes = static_cast<std::uint32_t>(routes_.size());
  std::uint32_t first_route = 0;  // flows number routes in the order in which they are added
  for (const std::vector<std::uint32_t>& routes : routes_) first_route += static_cast<std::uint32_t>(routes.size());
  for (std::vector<std::uint32_t>& routes : other.routes_) {
    for (std::uint32_t& route : routes) route += first_route;
    routes_.push_back(std::move(routes));
  }
  for (const std::uint32_t slot : other.slot_of_) {
    if (slot == kNone) {
      slot_of_.push_back(kNone);
      continue;
    }
    RunningCollective& taken = other.running_[slot];
    taken.routes += first_routes;
    open_slot(0, 0) = std::move(taken);
  }
  for (DelayedStart item : other.delayed_) {
    item.at += shift;
    item.item.collective += first_collective;
    postpone(item);
  }
  flows_->absorb(*other.flows_, shift);
}

}  // namespace manyworlds::core::network
