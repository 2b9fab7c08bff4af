#include "core/workload/tables/table_traffic.hpp"

#include <algorithm>

namespace manyworlds::core::workload {
namespace {

/// Global memory is read and written in sectors of 32 bytes (NVIDIA, CUDA C++ Best Practices Guide, coalesced access).
constexpr std::int64_t kSectorBytes = 32;

std::int64_t in_sectors(std::int64_t bytes) {
  return (bytes + kSectorBytes - 1) / kSectorBytes * kSectorBytes;
}

std::int64_t state_bytes_of_row(TableOptimizer optimizer, std::int64_t columns) {
  switch (optimizer) {
    case TableOptimizer::sgd:
      return 0;
    case TableOptimizer::rowwise_adagrad:
      return 4;
    case TableOptimizer::adagrad:
      return 4 * columns;
    case TableOptimizer::adam:
      return 8 * columns;
  }
  return 0;
}

/// Adds what look-ups of `samples` samples read and write in a shard.
void add_shard(TableTraffic& to, const TableShard& shard, std::int64_t lookups, std::int64_t samples,
               std::int64_t weight_bytes, TableOptimizer optimizer) {
  const std::int64_t distinct = std::min(lookups, shard.rows);
  to.lookups += lookups;
  to.rows += shard.rows;
  to.pooled += samples * shard.columns;
  to.weights_read += distinct * in_sectors(weight_bytes * shard.columns);
  to.state_read += distinct * in_sectors(state_bytes_of_row(optimizer, shard.columns));
  to.gradients_read += lookups * in_sectors(2 * shard.columns);
}

bool all_equal(const std::vector<std::int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t one) { return one == values.front(); });
}

}  // namespace

std::int64_t TableSet::state_bytes(const TableShard& shard) const {
  return shard.rows * state_bytes_of_row(optimizer, shard.columns);
}

std::int64_t TableTraffic::sort_bytes() const {
  std::int64_t passes = 0;
  for (std::int64_t left = rows; left > 0; left /= 256) ++passes;
  return lookups * (kIndexBytes + passes * 2 * (kIndexBytes + kSampleBytes));
}

TableTraffic shared_traffic(const TableSet& set, const TablePlan& plan, std::int64_t rank, std::int64_t samples) {
  TableTraffic result;
  const auto ranks = static_cast<std::int64_t>(plan.placed.size());
  const std::int64_t all_samples = ranks * samples;
  for (const TableShard& shard : plan.placed[static_cast<std::size_t>(rank)])
    add_shard(result, shard, all_samples * set.tables[shard.table].lookups, all_samples, set.weight_bytes,
              set.optimizer);
  for (const TableShard& shard : plan.by_row)
    add_shard(result, shard, samples * set.tables[shard.table].lookups, all_samples, set.weight_bytes, set.optimizer);
  return result;
}

TableTraffic replicated_traffic(const TableSet& set, const TablePlan& plan, std::int64_t samples) {
  TableTraffic result;
  for (const std::size_t table : plan.replicated)
    add_shard(result, {table, set.tables[table].rows, set.width}, samples * set.tables[table].lookups, samples, 2,
              TableOptimizer::sgd);
  return result;
}

TableExchange table_exchange(const TableSet& set, const TablePlan& plan, std::int64_t samples,
                             std::int64_t index_bytes) {
  TableExchange result;
  for (const auto& shards : plan.placed) {
    std::int64_t columns = 0, lookups = 0;
    for (const TableShard& shard : shards) columns += shard.columns, lookups += set.tables[shard.table].lookups;
    result.by_rank.push_back(2 * samples * columns);
    result.to_ranks.push_back(index_bytes * samples * lookups);
    result.sums += result.by_rank.back(), result.indices += result.to_ranks.back();
  }
  if (all_equal(result.by_rank)) result.by_rank.clear();
  if (all_equal(result.to_ranks)) result.to_ranks.clear();
  const auto ranks = static_cast<std::int64_t>(plan.placed.size());
  for (const TableShard& shard : plan.by_row) {
    result.by_row += 2 * ranks * samples * shard.columns;
    result.indices += index_bytes * samples * set.tables[shard.table].lookups;
  }
  return result;
}

TableBytes held_bytes(const TableSet& set, const TablePlan& plan, std::int64_t rank) {
  TableBytes result;
  for (const auto* shards : {&plan.placed[static_cast<std::size_t>(rank)], &plan.by_row})
    for (const TableShard& shard : *shards) {
      result.weights += set.weight_bytes * shard.rows * shard.columns;
      result.optimizer += set.state_bytes(shard);
    }
  return result;
}

}  // namespace manyworlds::core::workload
