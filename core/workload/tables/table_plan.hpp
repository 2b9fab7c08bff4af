// How ranks share out a set of embedding tables: whole tables, rows or columns of each, or copies of all; and a greedy
// placement of whole tables and columns (Graham 1969, longest processing time first; as TorchRec's planner does).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace manyworlds::core::workload {

/// An embedding table: a sample looks up some of its rows, whose sum is the sample's feature.
struct Table {
  std::int64_t rows = 0, lookups = 1;
};

/// table: whole tables are placed on ranks. row, column: every rank has as many rows, or columns, of each table.
/// replicated: every rank has all tables. mixed: tables with more than a rank's mean load are divided by columns into
/// 2, 4, 8, ... shards, which are placed as whole tables are.
enum class TableSharding : std::uint8_t { table, row, column, replicated, mixed };

/// What a rank holds of a table.
struct TableShard {
  std::size_t table = 0;
  std::int64_t rows = 0, columns = 0;
};

struct TablePlan {
  std::vector<std::vector<TableShard>> placed;  // by rank: tables and columns of tables
  std::vector<TableShard> by_row;               // what each rank has of the tables that are divided by rows
  std::vector<std::size_t> replicated;          // tables that every rank has
};

struct TableSharing {
  TableSharding sharding = TableSharding::table;
  std::int64_t replicated_rows = 0;  // tables with at most so many rows are replicated
  double memory_ratio = 7;           // look-ups that take as long as it takes to send their sum
};

/// Returns whether every rank has the table.
bool is_replicated(const Table& table, const TableSharing& sharing);

/// Returns what each of `ranks` has of tables of `width` columns. Tables and shards are placed in the order of their
/// load, the largest first, each on the rank with the least load so far; equal loads are decided by weights. The load
/// of a sample is its look-ups and `memory_ratio` for their sum, times columns (HugeCTR's planner does so, with a
/// mem_comm_bw_ratio of 7 inside a node of H100 and 67 across nodes: docs/facts/steps.md, section 2). By columns,
/// `ranks` must divide `width`.
TablePlan plan_tables(std::span<const Table> tables, std::int64_t width, const TableSharing& sharing,
                      std::int64_t ranks);

}  // namespace manyworlds::core::workload
