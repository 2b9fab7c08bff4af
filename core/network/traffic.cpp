#include "core/network/traffic.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace manyworlds::core::network {

Traffic::Traffic(const Traffic& other) : flows_(other.flows_->clone()), running_(other.running_) {}

std::uint32_t Traffic::add(std::shared_ptr<const collective::Dag> dag, const std::vector<Route>& routes) {
  MANYWORLDS_CHECK(routes.size() == dag->pairs.size(), "{} routes for {} pairs", routes.size(), dag->pairs.size());
  Running made;
  for (const Route& route : routes) made.routes.push_back(flows_->add_route(route));
  made.waits = dag->waits;
  made.remaining = dag->uses;
  made.entered.assign(dag->members, false);
  made.inside = dag->members;
  made.dag = std::move(dag);
  running_.push_back(std::move(made));
  return static_cast<std::uint32_t>(running_.size() - 1);
}

void Traffic::enter(std::uint32_t collective, std::uint32_t member) {
  Running& run = running_[collective];
  MANYWORLDS_CHECK(!run.entered[member], "member {} enters collective {} twice", member, collective);
  run.entered[member] = true;
  const auto dag = run.dag;
  for (std::uint32_t i = dag->entry_begin[member]; i < dag->entry_begin[member + 1]; ++i)
    satisfy(collective, dag->entry[i]);
}

void Traffic::satisfy(std::uint32_t collective, std::uint32_t transfer) {
  Running& run = running_[collective];
  if (--run.waits[transfer] > 0) return;
  const collective::Transfer& what = run.dag->transfers[transfer];
  flows_->start({collective, transfer}, run.routes[what.pair], what.bytes);
}

void Traffic::finish(FlowId id, std::vector<Exit>& exits) {
  const auto dag = running_[id.collective].dag;
  for (std::uint32_t i = dag->successors_begin[id.transfer]; i < dag->successors_begin[id.transfer + 1]; ++i)
    satisfy(id.collective, dag->successors[i]);
  const auto& [source, destination] = dag->pairs[dag->transfers[id.transfer].pair];
  Running& run = running_[id.collective];
  for (const std::uint32_t member : {source, destination}) {
    if (--run.remaining[member] > 0) continue;
    exits.push_back({flows_->now(), id.collective, member});
    if (--run.inside == 0) run = Running{};  // over: copies of this traffic need not carry it
  }
}

void Traffic::advance(Time limit, std::vector<Exit>& exits) {
  const std::size_t before = exits.size();
  do {
    finished_.clear();
    flows_->advance(limit, finished_);
    for (const FlowId id : finished_) finish(id, exits);
  } while (!finished_.empty() && exits.size() == before);
  std::sort(exits.begin() + static_cast<std::ptrdiff_t>(before), exits.end());
}

}  // namespace manyworlds::core::network
