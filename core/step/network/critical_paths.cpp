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

const CriticalPaths::Cost& CriticalPaths::cost_of(const network::Transport& transport, std::uint32_t node) {
  const collective::Transfer& transfer = dag_->transfers[node];
  Cost& cost = costs_[transfer.pair];
  std::uint32_t end = node + 1;  // of its message
  std::int64_t beside = 0;
  if (!dag_->message.empty()) {
    while (end < dag_->message.size() && dag_->message[end] == dag_->message[node]) ++end;
    for (std::uint32_t part = dag_->message[node]; part < end; ++part) beside += dag_->transfers[part].bytes;
  }
  if (cost.bytes == transfer.bytes && cost.beside == beside) return cost;
  const std::vector<network::LinkSpec>& path = (*paths_)[transfer.pair];
  cost.bytes = transfer.bytes;
  cost.beside = beside;
  cost.duration = network::uncontended_ps(transport, path, transfer.bytes);
  if (beside > transfer.bytes) cost.duration = std::max(cost.duration, message_ps(transport, node, end));
  cost.link_hops = network::packets_of(transport, transfer.bytes) * static_cast<std::int64_t>(path.size());
  return cost;
}

/// Returns when the parts of a message that share links with this one have ended at the earliest: when one such link
/// has sent the packets of all, from the first arrival of one of them on, and one of them has gone on from there.
Time CriticalPaths::message_ps(const network::Transport& transport, std::uint32_t node, std::uint32_t end) const {
  const network::Route& route = paths_->routes[dag_->transfers[node].pair];
  Time latest = 0;
  for (const std::uint32_t link : route) {
    Time earliest_before = kNever, earliest_after = kNever, sending = 0;
    for (std::uint32_t part = dag_->message[node]; part < end; ++part) {
      const collective::Transfer& other = dag_->transfers[part];
      const network::Route& way = paths_->routes[other.pair];
      const auto at = std::find(way.begin(), way.end(), link);
      if (at == way.end()) continue;
      const std::int64_t packets = network::packets_of(transport, other.bytes);
      const std::int64_t full = transport.payload_bytes + transport.header_bytes;
      const std::int64_t last = other.bytes - (packets - 1) * transport.payload_bytes + transport.header_bytes;
      Time before = 0, after = 0;
      for (auto hop = way.begin(); hop != way.end(); ++hop) {
        const network::LinkSpec& spec = (*paths_)[other.pair][static_cast<std::size_t>(hop - way.begin())];
        if (hop < at) before += serialization_ps(packets > 1 ? full : last, spec.bits_per_second) + spec.latency_ps;
        if (hop == at)
          sending += (packets - 1) * serialization_ps(full, spec.bits_per_second) +
                     serialization_ps(last, spec.bits_per_second),
              after += spec.latency_ps;
        if (hop > at) after += serialization_ps(last, spec.bits_per_second) + spec.latency_ps;
      }
      earliest_before = std::min(earliest_before, before), earliest_after = std::min(earliest_after, after);
    }
    latest = std::max(latest, earliest_before + sending + earliest_after);
  }
  return latest;
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
      const Cost& cost = cost_of(transport, node);
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

CriticalPaths::Paths paths_of(const collective::Dag& dag, const std::vector<network::Route>& routes,
                              const network::Graph& graph) {
  CriticalPaths::Paths paths;
  if (!dag.message.empty()) paths.routes = routes;
  for (const network::Route& route : routes) {
    auto& path = paths.emplace_back();
    for (const std::uint32_t link : route) path.push_back(network::spec_of(graph, link));
  }
  return paths;
}

CriticalPaths::Paths paths_of(const collective::Dag& dag, const Connections& connections, const network::Graph& graph) {
  CriticalPaths::Paths paths = paths_of(dag, connections.routes, graph);
  for (std::size_t pair = 0; pair < connections.rates.size(); ++pair)
    for (std::size_t hop = 0; hop < connections.rates[pair].size(); ++hop)
      paths[pair][hop].bits_per_second = connections.rates[pair][hop];
  return paths;
}

}  // namespace manyworlds::core::step
