#include "core/step/network/critical_paths.hpp"

#include <algorithm>

namespace manyworlds::core::step {

CriticalPaths::CriticalPaths(std::shared_ptr<const collective::Dag> dag, std::shared_ptr<const Paths> paths)
    : dag_(std::move(dag)),
      paths_(std::move(paths)),
      costs_(dag_->pairs.size()),
      waits_(dag_->wait_count),
      ready_at_(waits_.size(), 0),
      remaining_(dag_->transfer_count),
      exit_times_(dag_->members, 0),
      pending_exits_(dag_->members) {}

const CriticalPaths::Cost& CriticalPaths::cost_of(const network::Transport& transport,
                                                  const collective::Transfer& transfer) {
  Cost& cost = costs_[transfer.pair];
  if (cost.bytes == transfer.bytes) return cost;
  const std::vector<network::LinkSpec>& path = (*paths_)[transfer.pair];
  cost.bytes = transfer.bytes;
  cost.duration = network::uncontended_ps(transport, path, transfer.bytes);
  cost.link_hops = network::packets_of(transport, transfer.bytes) * static_cast<std::int64_t>(path.size());
  return cost;
}

void CriticalPaths::enter(const network::Transport& transport, std::uint32_t entering, Time at,
                          std::uint32_t collective, std::vector<network::Exit>& exits) {
  const collective::Dag& dag = *dag_;
  for (std::uint32_t i = dag.entry_begin[entering]; i < dag.entry_begin[entering + 1]; ++i)
    satisfy(dag.entry[i], at + dag.launch_ps);
  // First in, first out: DAGs are numbered round by round, so this visits memory nearly in order.
  for (std::size_t next = 0; next < ready_nodes_.size(); ++next) {
    const std::uint32_t node = ready_nodes_[next];
    Time end = ready_at_[node];
    if (node < dag.transfers.size()) {
      const collective::Transfer& transfer = dag.transfers[node];
      const Cost& cost = cost_of(transport, transfer);
      end += transfer.delay_ps + cost.duration;
      link_hops_ += cost.link_hops;
      last_activity_ = std::max(last_activity_, end);
      const auto& [source, destination] = dag.pairs[transfer.pair];
      for (const std::uint32_t member : {source, destination}) {
        if (member >= dag.members) continue;  // a switch is not a member
        exit_times_[member] = std::max(exit_times_[member], end);
        if (--remaining_[member] > 0) continue;
        exits.push_back({exit_times_[member], collective, member});
        --pending_exits_;
      }
    }
    for (std::uint32_t i = dag.successors_begin[node]; i < dag.successors_begin[node + 1]; ++i)
      satisfy(dag.successors[i], end);
  }
  ready_nodes_.clear();
  if (pending_exits_ == 0) costs_ = {}, waits_ = {}, ready_at_ = {}, ready_nodes_ = {};  // no longer needed
}

CriticalPaths::Paths paths_of(const std::vector<network::Route>& routes, const network::Graph& graph) {
  CriticalPaths::Paths paths;
  for (const network::Route& route : routes) {
    auto& path = paths.emplace_back();
    for (const std::uint32_t link : route) path.push_back(network::spec_of(graph, link));
  }
  return paths;
}

}  // namespace manyworlds::core::step
