#include "core/step/fluid/transport_efficiency.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/network/flows/flows.hpp"

namespace manyworlds::core::step {

std::int64_t TransportEfficiency::ppm(const Shared& shared, std::int64_t transfers) {
  auto known = std::find_if(known_.begin(), known_.end(), [&](const Known& one) { return one.shared == shared; });
  if (known == known_.end()) known = known_.insert(known_.end(), {shared, {}});
  const auto [result, is_new] = known->by_transfers.try_emplace(transfers, 0);
  if (is_new) result->second = measure(shared, transfers);
  return result->second;
}

/// Every transfer has links of its own but for the shared one.
std::int64_t TransportEfficiency::measure(const Shared& shared, std::int64_t transfers) {
  const std::unique_ptr<network::Flows> flows = network::make_flows(packets_);
  const std::uint32_t common = flows->add_link(shared.path[shared.hop]);
  flows->set_tie_order({0});
  for (std::int64_t i = 0; i < transfers; ++i) {
    network::Route route;
    for (std::size_t hop = 0; hop < shared.path.size(); ++hop)
      route.push_back(hop == shared.hop ? common : flows->add_link(shared.path[hop]));
    flows->start({0, static_cast<std::uint32_t>(i)}, flows->add_route(route), shared.bytes);
  }
  Int128 sum = 0;
  std::vector<network::FlowId> finished;
  for (std::int64_t open = transfers; open > 0; open -= static_cast<std::int64_t>(finished.size())) {
    finished.clear();
    flows->advance(kNever, finished);
    MANYWORLDS_CHECK(!finished.empty(), "{} of {} transfers over one link wait for ever", open, transfers);
    sum += Int128{flows->now()} * static_cast<std::int64_t>(finished.size());
  }
  const Time alone = network::uncontended_ps(packets_.transport(), shared.path, shared.bytes);
  const Int128 fair = Int128{alone} * transfers * transfers;  // all of them, each as long as its share would take
  return static_cast<std::int64_t>(std::min<Int128>(1'000'000, fair * 1'000'000 / sum));
}

}  // namespace manyworlds::core::step
