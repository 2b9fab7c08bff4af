// Collectives that all members enter at once and nobody meets: every instance of a use goes as the first one did.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/step/network/network_side.hpp"

namespace manyworlds::core::step {

/// An isolated collective as every instance of its use goes.
struct Alone {
  std::shared_ptr<const IsolatedResult> result;       // null while its key is missing
  std::vector<std::pair<Time, std::uint32_t>> exits;  // (after its origin, member), ascending
  std::int64_t times = 0;

  void look_up(const Use& use, const IsolatedResults& results) {
    if (result) return;
    const auto found = results.find(use.key);
    MANYWORLDS_CHECK(found != results.end(), "next() is asked with keys missing");
    result = found->second;
    for (std::uint32_t member = 0; member < use.dag->members; ++member)
      exits.emplace_back(result->exits[member], member);
    std::sort(exits.begin(), exits.end());
  }
};

/// Of `uses`, in any order and as often as may be, those whose results are missing, as NetworkSide::missing() has them.
inline std::vector<std::uint32_t> lacking(const World& world, const std::vector<Alone>& by_use,
                                          const IsolatedResults& results, std::vector<std::uint32_t> uses) {
  std::erase_if(uses,
                [&](std::uint32_t use) { return by_use[use].result || results.count(world.uses()[use].key) > 0; });
  std::sort(uses.begin(), uses.end());
  uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
  return uses;
}

}  // namespace manyworlds::core::step
