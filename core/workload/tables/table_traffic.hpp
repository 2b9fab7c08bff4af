// What one rank reads, writes, sends and holds of embedding tables in a micro-batch, as a plan shares them out.
#pragma once

#include <cstdint>
#include <vector>

#include "core/collective/dag/split.hpp"
#include "core/workload/model/layer_part.hpp"
#include "core/workload/tables/table_plan.hpp"

namespace manyworlds::core::workload {

/// State that the optimizer of a table has: nothing; a number for each row (row-wise Adagrad, FBGEMM); one, or two, for
/// each weight.
enum class TableOptimizer : std::uint8_t { sgd, rowwise_adagrad, adagrad, adam };

struct TableSet {
  std::vector<Table> tables;
  std::int64_t width = 0;
  TableSharing sharing;
  std::int64_t weight_bytes = 4;  // of an element of a table that is not replicated
  TableOptimizer optimizer = TableOptimizer::rowwise_adagrad;

  TablePlan plan(std::int64_t ranks) const { return plan_tables(tables, width, sharing, ranks); }
  std::int64_t state_bytes(const TableShard& shard) const;  // of all its rows
};

/// Look-ups of a rank in tables of one kind. Rows are anywhere in memory, so each is read in whole sectors. A row that
/// a micro-batch looks up again comes from a cache: no table is read more than once. That is a bound; indices that
/// repeat more than they must read less.
struct TableTraffic {
  std::int64_t lookups = 0;         // of all samples
  std::int64_t rows = 0;            // of the tables
  std::int64_t pooled = 0;          // elements of the sums
  std::int64_t weights_read = 0;    // bytes
  std::int64_t state_read = 0;      // bytes of the optimizer's state of the same rows
  std::int64_t gradients_read = 0;  // bytes of the sums' gradients, once for each look-up

  /// Returns the bytes of the forward kernel: rows, their indices, and the sums in 16 bits.
  std::int64_t forward_bytes() const { return weights_read + kIndexBytes * lookups + 2 * pooled; }
  /// Returns the bytes of sorting indices with the number of the sum that each belongs to: 8 bits of the rows' numbers
  /// in a pass, which reads and writes, and a histogram (Adinets and Merrill 2022, Onesweep).
  std::int64_t sort_bytes() const;
  /// Returns the bytes of the kernel that sums gradients by row and updates the rows (FBGEMM's fused backward pass).
  std::int64_t update_bytes() const {
    return gradients_read + (kIndexBytes + kSampleBytes) * lookups + 2 * (weights_read + state_read);
  }

  static constexpr std::int64_t kIndexBytes = 8, kSampleBytes = 4;
};

/// What rank `rank` of `ranks`, each with `samples` samples, looks up in the tables that they share out, and in those
/// that it has of its own.
TableTraffic shared_traffic(const TableSet& set, const TablePlan& plan, std::int64_t rank, std::int64_t samples);
TableTraffic replicated_traffic(const TableSet& set, const TablePlan& plan, std::int64_t samples);

/// Bytes between ranks.
struct TableExchange {
  std::int64_t sums = 0;               // of sums that ranks with placed tables send to all ranks, in 16 bits
  std::vector<std::int64_t> by_rank;   // that each sends to every rank; empty: all send as many
  std::int64_t indices = 0;            // that a rank sends to the ranks with placed tables
  std::vector<std::int64_t> to_ranks;  // to each; empty: all get as many
  std::int64_t by_row = 0;             // of a rank's shares of the sums of tables that are divided by rows
};
TableExchange table_exchange(const TableSet& set, const TablePlan& plan, std::int64_t samples,
                             std::int64_t index_bytes);

/// Returns what a rank holds of the tables that ranks share out.
TableBytes held_bytes(const TableSet& set, const TablePlan& plan, std::int64_t rank);

}  // namespace manyworlds::core::workload
