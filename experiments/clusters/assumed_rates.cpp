// What a tree without rates and numbers of cables becomes, by what its user says of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "experiments/clusters/fabric.hpp"

namespace manyworlds::experiments::clusters {
namespace {

/// Repeats the cables of each switch to the one above. In such a fabric `a` of a cable is the lower end.
void multiply_cables(Fabric& fabric, std::int64_t nics_per_host, double oversubscription) {
  std::vector<std::vector<std::uint32_t>> above(fabric.switches.size());
  for (const Cable& cable : fabric.cables) above[cable.a].push_back(cable.b);
  std::vector<double> nics(fabric.switches.size(), 0);
  for (const Host& host : fabric.hosts) {
    std::uint32_t at = host.nics.front().attached_to;
    nics[at] += static_cast<double>(nics_per_host);
    for (std::size_t steps = 0; above[at].size() == 1 && steps < fabric.switches.size(); ++steps) {
      at = above[at].front();
      nics[at] += static_cast<double>(nics_per_host);
    }
  }
  std::vector<Cable> cables;
  for (const Cable& cable : fabric.cables) {
    const double share = nics[cable.a] / oversubscription / static_cast<double>(above[cable.a].size());
    const auto count = static_cast<std::size_t>(std::max(1.0, std::ceil(share)));
    if (cables.size() + count > kMaxLinks) throw core::InputError("the tree would have more cables than any cluster");
    cables.insert(cables.end(), count, cable);
  }
  fabric.cables = std::move(cables);
}

}  // namespace

std::int64_t assume_rates(Fabric& fabric, double gbps, std::int64_t nics_per_host, double oversubscription) {
  if (!fabric.counts_cables) {
    multiply_cables(fabric, nics_per_host, oversubscription);
    for (Host& host : fabric.hosts) host.nics.resize(static_cast<std::size_t>(nics_per_host), host.nics.front());
    fabric.nics_per_host = nics_per_host;
    fabric.counts_cables = true;
    fabric.notes.push_back(fmt::format(
        "the file tells neither rates nor numbers of cables: {} NICs a host on its leaf, and as many cables up "
        "as NICs below over {}",
        nics_per_host, oversubscription));
  }
  std::int64_t set = 0;
  for (Host& host : fabric.hosts)
    for (Nic& nic : host.nics)
      if (nic.gbps == 0) nic.gbps = gbps, ++set;
  for (Cable& cable : fabric.cables)
    if (cable.gbps == 0) cable.gbps = gbps, ++set;
  if (set > 0)
    fabric.notes.push_back(fmt::format("{} NICs and cables have no rate in the file: {} Gb/s is taken", set, gbps));
  return set;
}

}  // namespace manyworlds::experiments::clusters
