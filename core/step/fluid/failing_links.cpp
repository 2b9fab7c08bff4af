#include "core/step/fluid/failing_links.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::core::step {

FailingLinks::FailingLinks(const CompiledStep& compiled)
    : compiled_(compiled),
      order_(failures().cables.size()),
      is_dead_(failures().cables.empty() ? 0 : compiled.layout().graph().links.size(), false) {
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](auto a, auto b) { return failures().cables[a].at < failures().cables[b].at; });
}

Time FailingLinks::next_change() const {
  const auto at = [&](std::uint32_t number) { return failures().cables[order_[number]].at; };
  const Time fails = failed_ < order_.size() ? at(failed_) : kNever;
  const Time avoided = epoch_ < failed_ ? at(epoch_) + failures().reconvergence_ps : kNever;
  return std::min(fails, avoided);
}

void FailingLinks::change() {
  const Time now = next_change();
  const auto at = [&](std::uint32_t number) { return failures().cables[order_[number]].at; };
  for (; failed_ < order_.size() && at(failed_) == now; ++failed_) {
    const std::uint32_t link = failures().cables[order_[failed_]].link;
    is_dead_[link] = is_dead_[link ^ 1] = true;
  }
  blocked_.clear();
  const std::uint32_t before = epoch_;
  while (epoch_ < failed_ && at(epoch_) + failures().reconvergence_ps == now) ++epoch_;
  if (epoch_ == before) return;
  routes_.clear();
  router_ = nullptr;
}

network::Router& FailingLinks::router() {
  if (router_) return *router_;
  std::vector<bool> is_avoided(is_dead_.size(), false);
  for (std::uint32_t i = 0; i < epoch_; ++i) {
    const std::uint32_t link = failures().cables[order_[i]].link;
    is_avoided[link] = is_avoided[link ^ 1] = true;
  }
  network::Graph left = compiled_.layout().graph();
  const std::vector<network::Link> all = std::exchange(left.links, {});
  links_.clear();
  for (std::uint32_t link = 0; link < all.size(); ++link)
    if (!is_avoided[link]) left.links.push_back(all[link]), links_.push_back(link);
  router_ = std::make_shared<network::Router>(std::make_shared<const network::Graph>(std::move(left)),
                                              network::path_choice_of(compiled_.transport()));
  return *router_;
}

const std::shared_ptr<const Connections>& FailingLinks::routes(CollectiveOpId id) {
  const CollectiveOp& op = compiled_.collective_ops()[id];
  if (epoch_ == 0) return op.connections;
  std::shared_ptr<const Connections>& slot = routes_[id];
  if (slot) return slot;
  std::vector<std::uint32_t> gpus;
  for (const RankId rank : compiled_.layout().groups()[op.group].ranks)
    gpus.push_back(compiled_.layout().gpu_of(rank).value());
  if (!op.dag->switches.empty())
    throw InputError("faults.fails: a collective that switches reduce goes by one switch, and has no other routes");
  Connections result;
  for (std::uint32_t pair = 0; pair < op.dag->pairs.size(); ++pair) {
    network::Route route =
        route_of(router(), {op.dag->pairs, op.dag->switches}, gpus, pair, std::uint64_t{op.group.value()} << 32 | pair);
    for (std::uint32_t& link : route) link = links_[link];
    result.links.insert(result.links.end(), route.begin(), route.end());
    result.routes.push_back(std::move(route));
  }
  std::sort(result.links.begin(), result.links.end());
  result.links.erase(std::unique(result.links.begin(), result.links.end()), result.links.end());
  return slot = std::make_shared<const Connections>(std::move(result));
}

bool FailingLinks::blocks(CollectiveOpId id) {
  if (failed_ == epoch_) return false;
  const auto [known, is_new] = blocked_.try_emplace(id, false);
  if (!is_new) return known->second;
  const std::vector<std::uint32_t>& links = routes(id)->links;
  return known->second = std::any_of(links.begin(), links.end(), [&](std::uint32_t link) { return is_dead_[link]; });
}

Time FailingLinks::resumption(Time lost, Time now) const {
  const Time timeout = failures().retransmit_ps;
  if (timeout == 0) return now;
  return lost + std::max<Time>(1, (now - lost + timeout - 1) / timeout) * timeout;
}

}  // namespace manyworlds::core::step
