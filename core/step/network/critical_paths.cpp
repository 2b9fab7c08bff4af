#include "core/step/network/critical_paths.hpp"

#include <algorithm>

namespace manyworlds::core::step {

CriticalPaths::CriticalPaths(std::shared_ptr<const collective::Dag> dag, std::shared_ptr<const Paths> paths)
    : dag_(std::move(dag)),
      paths_(std::move(paths)),
      exit_times_(dag_->members, 0),
      pending_exits_(dag_->members),
      outside_(dag_->members) {
  if (paths_->rounds) {
    ready_at_.assign(paths_->rounds->takes.size(), 0);
    return;
  }
  costs_.resize(dag_->pairs.size());
  waits_ = dag_->wait_count;
  ready_at_.assign(waits_.size(), 0);
  remaining_ = dag_->transfer_count;
}

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
  if (paths_->rounds) return enter_rounds(entering, at, collective, exits);
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

void CriticalPaths::enter_rounds(std::uint32_t entering, Time at, std::uint32_t collective,
                                 std::vector<network::Exit>& exits) {
  const collective::Dag& dag = *dag_;
  const RepeatedRounds& rounds = *paths_->rounds;
  for (std::uint32_t i = dag.entry_begin[entering]; i < dag.entry_begin[entering + 1]; ++i)
    ready_at_[dag.entry[i]] = std::max(ready_at_[dag.entry[i]], at + dag.launch_ps);
  if (--outside_ > 0) return;
  const std::size_t width = rounds.takes.size();
  std::vector<Time> ends = std::move(ready_at_), next(width);
  for (std::size_t i = 0; i < width; ++i) ends[i] += rounds.takes[i];
  for (std::uint32_t round = 1; round < rounds.rounds; ++round) {
    for (std::size_t i = 0; i < width; ++i) {
      Time ready = 0;
      for (std::uint32_t at_before = rounds.begin[i]; at_before < rounds.begin[i + 1]; ++at_before)
        ready = std::max(ready, ends[rounds.before[at_before]]);
      next[i] = ready + rounds.takes[i];
    }
    ends.swap(next);
  }
  link_hops_ = rounds.link_hops;
  // The last transfer on a connection is that of the last round.
  for (std::size_t i = 0; i < width; ++i) {
    const auto& [source, destination] = dag.pairs[dag.transfers[i].pair];
    for (const std::uint32_t member : {source, destination})
      exit_times_[member] = std::max(exit_times_[member], ends[i]);
    last_activity_ = std::max(last_activity_, ends[i]);
  }
  for (std::uint32_t member = 0; member < dag.members; ++member)
    exits.push_back({exit_times_[member], collective, member});
  pending_exits_ = 0;
}

std::optional<RepeatedRounds> repeated_rounds_of(const collective::Dag& dag, const CriticalPaths::Paths& paths,
                                                 const network::Transport& transport) {
  const std::size_t width = dag.pairs.size(), transfers = dag.transfers.size();
  if (width == 0 || transfers % width != 0 || dag.wait_count.size() != transfers || !dag.message.empty() ||
      !dag.switches.empty())
    return std::nullopt;
  RepeatedRounds result;
  result.rounds = static_cast<std::uint32_t>(transfers / width);
  for (std::size_t node = 0; node < transfers; ++node) {
    const collective::Transfer &transfer = dag.transfers[node], &first = dag.transfers[node % width];
    if (transfer.pair != first.pair || transfer.bytes != first.bytes || transfer.delay_ps != first.delay_ps)
      return std::nullopt;
  }
  for (const std::uint32_t node : dag.entry)
    if (node >= width) return std::nullopt;
  std::vector<std::vector<std::uint32_t>> before(width);
  for (std::uint32_t node = 0; node < transfers; ++node) {
    const auto* const begin = dag.successors.data() + dag.successors_begin[node];
    const auto* const end = dag.successors.data() + dag.successors_begin[node + 1];
    const auto next_round = static_cast<std::uint32_t>((node / width + 1) * width);
    if (next_round == transfers ? begin != end : !std::is_sorted(begin, end)) return std::nullopt;
    const std::uint32_t model = node % static_cast<std::uint32_t>(width);  // the same of the first round
    const auto* const expected = dag.successors.data() + dag.successors_begin[model];
    if (next_round < transfers &&
        !std::equal(begin, end, expected, dag.successors.data() + dag.successors_begin[model + 1],
                    [&](std::uint32_t a, std::uint32_t b) { return a - next_round == b - width; }))
      return std::nullopt;
    for (const auto* successor = begin; successor != end && node < width; ++successor) {
      if (*successor < width || *successor >= 2 * width) return std::nullopt;
      before[*successor - width].push_back(node);
    }
  }
  for (std::uint32_t i = 0; i < width; ++i) {
    const collective::Transfer& transfer = dag.transfers[i];
    if (result.rounds > 1 && std::find(before[i].begin(), before[i].end(), i) == before[i].end()) return std::nullopt;
    result.begin.push_back(static_cast<std::uint32_t>(result.before.size()));
    result.before.insert(result.before.end(), before[i].begin(), before[i].end());
    const std::vector<network::LinkSpec>& path = paths[transfer.pair];
    result.takes.push_back(transfer.delay_ps + network::uncontended_ps(transport, path, transfer.bytes));
    result.link_hops += network::packets_of(transport, transfer.bytes) * static_cast<std::int64_t>(path.size()) *
                        static_cast<std::int64_t>(result.rounds);
  }
  result.begin.push_back(static_cast<std::uint32_t>(result.before.size()));
  return result;
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
