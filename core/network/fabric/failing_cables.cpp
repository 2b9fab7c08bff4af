#include "core/network/fabric/failing_cables.hpp"

#include <algorithm>
#include <utility>

namespace manyworlds::core::network {

FailingCables::FailingCables(const LinkFailures& failures, std::shared_ptr<const Graph> graph, const PathChoice& choice)
    : graph_(std::move(graph)),
      choice_(choice),
      cables_(failures.cables),
      reconvergence_ps_(failures.reconvergence_ps),
      is_dead_(cables_.empty() ? 0 : graph_->links.size(), false) {
  std::stable_sort(cables_.begin(), cables_.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
}

Time FailingCables::next_change() const {
  const Time fails = failed_ < cables_.size() ? cables_[failed_].at : kNever;
  const Time avoided = epoch_ < failed_ ? cables_[epoch_].at + reconvergence_ps_ : kNever;
  return std::min(fails, avoided);
}

void FailingCables::change(std::vector<std::uint32_t>& failed) {
  const Time now = next_change();
  for (; failed_ < cables_.size() && cables_[failed_].at == now; ++failed_)
    for (const std::uint32_t link : {cables_[failed_].link, cables_[failed_].link ^ 1}) {
      is_dead_[link] = true;
      failed.push_back(link);
    }
  const std::uint32_t before = epoch_;
  while (epoch_ < failed_ && cables_[epoch_].at + reconvergence_ps_ == now) ++epoch_;
  if (epoch_ == before) return;
  left_ = {};
  router_ = nullptr;
}

const RemainingFabric& FailingCables::left() {
  if (left_.graph) return left_;
  std::vector<bool> is_avoided(graph_->links.size(), false);
  for (std::uint32_t i = 0; i < epoch_; ++i) is_avoided[cables_[i].link] = is_avoided[cables_[i].link ^ 1] = true;
  Graph graph = *graph_;
  graph.links.clear();
  for (std::uint32_t link = 0; link < is_avoided.size(); ++link)
    if (!is_avoided[link]) graph.links.push_back(graph_->links[link]), left_.links.push_back(link);
  left_.graph = std::make_shared<const Graph>(std::move(graph));
  return left_;
}

Router& FailingCables::router() {
  if (!router_) router_ = std::make_shared<Router>(left().graph, choice_);
  return *router_;
}

void FailingCables::rename(Route& route) {
  for (std::uint32_t& link : route) link = left().links[link];
}

}  // namespace manyworlds::core::network
