#include "core/step/fluid/failing_links.hpp"

#include <algorithm>
#include <utility>

namespace manyworlds::core::step {

FailingLinks::FailingLinks(const CompiledStep& compiled)
    : compiled_(compiled),
      cables_(compiled.configuration().failures, compiled.configuration().graph,
              network::path_choice_of(compiled.transport())) {}

void FailingLinks::change() {
  std::vector<std::uint32_t> failed;
  const std::uint32_t before = epoch();
  cables_.change(failed);
  blocked_.clear();
  if (epoch() != before) routes_.clear();
}

const std::shared_ptr<const Connections>& FailingLinks::routes(CollectiveOpId id) {
  const CollectiveOp& op = compiled_.collective_ops()[id];
  if (epoch() == 0) return op.connections;
  std::shared_ptr<const Connections>& slot = routes_[id];
  if (slot) return slot;
  Connections result;
  for (std::uint32_t pair = 0; pair < op.dag->pairs.size(); ++pair) {
    network::Route route = compiled_.route_by(cables_.router(), id, pair);
    cables_.rename(route);
    result.links.insert(result.links.end(), route.begin(), route.end());
    result.routes.push_back(std::move(route));
  }
  std::sort(result.links.begin(), result.links.end());
  result.links.erase(std::unique(result.links.begin(), result.links.end()), result.links.end());
  return slot = std::make_shared<const Connections>(std::move(result));
}

bool FailingLinks::blocks(CollectiveOpId id) {
  if (!cables_.waits_for_routes()) return false;
  const auto [known, is_new] = blocked_.try_emplace(id, false);
  if (!is_new) return known->second;
  const std::vector<std::uint32_t>& links = routes(id)->links;
  return known->second =
             std::any_of(links.begin(), links.end(), [&](std::uint32_t link) { return cables_.is_dead(link); });
}

Time FailingLinks::resumption(Time lost, Time now) const {
  const Time timeout = compiled_.configuration().failures.retransmit_ps;
  if (timeout == 0) return now;
  return lost + std::max<Time>(1, (now - lost + timeout - 1) / timeout) * timeout;
}

}  // namespace manyworlds::core::step
