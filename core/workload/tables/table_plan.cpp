#include "core/workload/tables/table_plan.hpp"

#include <algorithm>
#include <tuple>

#include "core/base/error.hpp"

namespace manyworlds::core::workload {
namespace {

constexpr std::int64_t kFewestColumns = 16;  // of a shard: a sector of 32 bytes in 16 bits

struct Sized {
  TableShard shard;
  double load = 0;
  std::int64_t weights() const { return shard.rows * shard.columns; }
};

double load_of(const Table& table, const TableSharing& sharing, std::int64_t columns) {
  return (static_cast<double>(table.lookups) + sharing.memory_ratio) * static_cast<double>(columns);
}

/// Returns into how many shards of columns a table is divided, so that none has more than the mean load of a rank.
std::int64_t divided_into(const Table& table, const TableSharing& sharing, std::int64_t width, double mean,
                          std::int64_t ranks) {
  std::int64_t shards = 1;
  while (load_of(table, sharing, width / shards) > mean && 2 * shards <= ranks && width % (2 * shards) == 0 &&
         width / (2 * shards) >= kFewestColumns)
    shards *= 2;
  return shards;
}

/// Places shards in the order of their load, each on the rank with the least so far.
void place(std::vector<Sized> shards, std::vector<std::vector<TableShard>>& ranks) {
  std::stable_sort(shards.begin(), shards.end(), [](const Sized& a, const Sized& b) {
    return std::tuple(a.load, a.weights()) > std::tuple(b.load, b.weights());
  });
  std::vector<std::pair<double, std::int64_t>> held(ranks.size());  // load and weights, by rank
  for (const Sized& one : shards) {
    const auto least = std::min_element(held.begin(), held.end());
    least->first += one.load, least->second += one.weights();
    ranks[static_cast<std::size_t>(least - held.begin())].push_back(one.shard);
  }
}

}  // namespace

bool is_replicated(const Table& table, const TableSharing& sharing) {
  return sharing.sharding == TableSharding::replicated || table.rows <= sharing.replicated_rows;
}

TablePlan plan_tables(std::span<const Table> tables, std::int64_t width, const TableSharing& sharing,
                      std::int64_t ranks) {
  TablePlan plan;
  plan.placed.resize(static_cast<std::size_t>(ranks));
  double mean = 0;
  for (const Table& table : tables)
    if (!is_replicated(table, sharing)) mean += load_of(table, sharing, width) / static_cast<double>(ranks);
  std::vector<Sized> shards;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const Table& table = tables[i];
    if (is_replicated(table, sharing)) {
      plan.replicated.push_back(i);
    } else if (sharing.sharding == TableSharding::row) {
      plan.by_row.push_back({i, (table.rows + ranks - 1) / ranks, width});
    } else if (sharing.sharding == TableSharding::column) {
      MANYWORLDS_CHECK(width % ranks == 0, "{} columns over {} ranks", width, ranks);
      for (auto& rank : plan.placed) rank.push_back({i, table.rows, width / ranks});
    } else {
      const std::int64_t parts =
          sharing.sharding == TableSharding::mixed ? divided_into(table, sharing, width, mean, ranks) : 1;
      for (std::int64_t part = 0; part < parts; ++part)
        shards.push_back({{i, table.rows, width / parts}, load_of(table, sharing, width / parts)});
    }
  }
  place(std::move(shards), plan.placed);
  return plan;
}

}  // namespace manyworlds::core::workload
