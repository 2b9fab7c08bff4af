// Isolated collectives, which all members enter at once and which share no link with others: all instances of a
// collective operation have the same relative exits.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/step/network/network_model.hpp"

namespace manyworlds::core::step {

/// The result that all isolated instances of a collective operation have in common, and how many there were.
struct IsolatedCollectives {
  std::shared_ptr<const IsolatedResult> result;       // null until the result is looked up
  std::vector<std::pair<Time, std::uint32_t>> exits;  // (time after the common entry, member), ascending
  std::int64_t times = 0;

  void look_up(const CollectiveOp& collective_op, const IsolatedResults& results) {
    if (result) return;
    const auto found = results.find(collective_op.key);
    MANYWORLDS_CHECK(found != results.end(), "next() is asked with keys missing");
    result = found->second;
    for (std::uint32_t member = 0; member < collective_op.dag->members; ++member)
      exits.emplace_back(result->exits[member], member);
    std::sort(exits.begin(), exits.end());
  }
};

/// Returns the operations in `collective_ops` whose results are missing, ascending without duplicates, as
/// NetworkModel::missing() does. `collective_ops` may be in any order and may contain duplicates.
inline std::vector<CollectiveOpId> missing_results(const CompiledStep& compiled,
                                                   const IdVector<CollectiveOpId, IsolatedCollectives>& by_op,
                                                   const IsolatedResults& results,
                                                   std::vector<CollectiveOpId> collective_ops) {
  std::erase_if(collective_ops, [&](CollectiveOpId collective_op) {
    return by_op[collective_op].result || results.count(compiled.collective_ops()[collective_op].key) > 0;
  });
  std::sort(collective_ops.begin(), collective_ops.end());
  collective_ops.erase(std::unique(collective_ops.begin(), collective_ops.end()), collective_ops.end());
  return collective_ops;
}

/// Returns the uses of isolated results of a step, for all equal groups.
inline UsageCounts isolated_usage_of(const CompiledStep& compiled,
                                     const IdVector<CollectiveOpId, IsolatedCollectives>& by_op) {
  UsageCounts all;
  for (const CollectiveOpId collective_op : by_op.ids()) {
    if (by_op[collective_op].times == 0) continue;
    for (const auto& [key, groups] : compiled.collective_ops()[collective_op].keys) {
      UsageCount& used = all[key];
      used = {compiled.collective_ops()[collective_op].shape.text(), by_op[collective_op].exits.back().first,
              used.times + by_op[collective_op].times * groups};
    }
  }
  return all;
}

}  // namespace manyworlds::core::step
