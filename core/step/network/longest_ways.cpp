#include "core/step/network/longest_ways.hpp"

#include <algorithm>

namespace manyworlds::core::step {

LongestWays::LongestWays(std::shared_ptr<const collective::Dag> dag, std::shared_ptr<const Paths> paths)
    : dag_(std::move(dag)),
      paths_(std::move(paths)),
      costs_(dag_->pairs.size()),
      waits_(dag_->waits),
      ready_(waits_.size(), 0),
      remaining_(dag_->uses),
      leaves_(dag_->members, 0),
      inside_(dag_->members) {}

const LongestWays::Cost& LongestWays::cost_of(const network::Transport& transport, const collective::Transfer& what) {
  Cost& cost = costs_[what.pair];
  if (cost.bytes == what.bytes) return cost;
  const std::vector<network::LinkSpec>& path = (*paths_)[what.pair];
  cost.bytes = what.bytes;
  cost.takes = network::uncontended_ps(transport, path, what.bytes);
  cost.link_hops = network::packets_of(transport, what.bytes) * static_cast<std::int64_t>(path.size());
  return cost;
}

void LongestWays::enter(const network::Transport& transport, std::uint32_t entering, Time at, std::uint32_t collective,
                        std::vector<network::Exit>& exits) {
  const collective::Dag& dag = *dag_;
  for (std::uint32_t i = dag.entry_begin[entering]; i < dag.entry_begin[entering + 1]; ++i)
    satisfy(dag.entry[i], at + dag.launch_ps);
  // First come, first gone on with: DAGs are numbered round by round, and so memory is passed through in order.
  for (std::size_t next = 0; next < open_.size(); ++next) {
    const std::uint32_t node = open_[next];
    Time end = ready_[node];
    if (node < dag.transfers.size()) {
      const collective::Transfer& what = dag.transfers[node];
      const Cost& cost = cost_of(transport, what);
      end += what.delay_ps + cost.takes;
      link_hops_ += cost.link_hops;
      quiet_since_ = std::max(quiet_since_, end);
      const auto& [source, destination] = dag.pairs[what.pair];
      for (const std::uint32_t member : {source, destination}) {
        if (member >= dag.members) continue;  // a switch is no member
        leaves_[member] = std::max(leaves_[member], end);
        if (--remaining_[member] > 0) continue;
        exits.push_back({leaves_[member], collective, member});
        --inside_;
      }
    }
    for (std::uint32_t i = dag.successors_begin[node]; i < dag.successors_begin[node + 1]; ++i)
      satisfy(dag.successors[i], end);
  }
  open_.clear();
  if (inside_ == 0) costs_ = {}, waits_ = {}, ready_ = {}, open_ = {};  // nobody asks again
}

}  // namespace manyworlds::core::step
