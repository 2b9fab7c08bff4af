// The best experiments of a run: ranked by a column, filtered by a condition, as a table for people or as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/results/results.hpp"

namespace manyworlds::io {

struct TopOptions {
  std::int64_t k = 10;
  /// May end in " asc" or " desc"; less of s, bytes, J/token, USD or nats is better.
  std::optional<std::string> by = {};  // without it, by objective_of() the results
  std::string where = {};              // see Condition
};

/// How a row compares with the best row, given the uncertainty of the predicted step times.
enum class Distinction {
  unknown,            // no interval, or the ranked column is not a measure of speed
  best,               // the best row itself
  indistinguishable,  // other layouts or networks alone: the ratio is within the error that is not common to both;
                      // otherwise: the intervals overlap
  overlapping,        // other layouts or networks alone that are distinguishable, though their intervals overlap
  distinguishable     // the intervals do not overlap
};

struct Ranking {
  struct Row {
    std::size_t row = 0;            // in /experiments
    std::string layout;             // "tp=8 pp=2 …"
    std::string distinct_settings;  // the settings that are not equal in all listed rows: "pp=2 …"
    std::string largest_loss;  // largest part of the step besides forward and backward kernels: "exposed_dp", or ""
    double largest_loss_share = 0;  // share of the step time
    Distinction distinction = Distinction::unknown;
    bool other_network = false;  // than the best, and the model, batch and machine are the same
    double relative_gap = 0;     // how much worse than the best, as a share of the best: 0.2 takes a fifth longer
  };
  std::string by;
  bool descending = true;
  std::string instead_of;         // the column that was asked for, where no row has a value in it: then by step_time_s
  std::vector<Row> rows;          // at most k, best first; ties in the order of ids
  std::string common_settings;    // the settings that are equal in all listed rows: "tp=8"; empty for a single row
  std::size_t candidates = 0;     // rows that could be ranked
  std::size_t did_not_run = 0;    // left out, unless the condition mentions `status`
  std::size_t filtered_out = 0;   // left out by the condition
  std::size_t without_value = 0;  // left out because the column has no value there
};

/// Returns the name used in JSON: "best", "distinguishable", ….
const char* name_of(Distinction distinction);

/// Returns how much worse than the best a row is, and how certain that is: "+3.1 %, tie", "+15.4 %, probably slower".
/// Empty for the best row. A difference within prediction error is a tie below a tenth, and unclear above.
std::string gap_text(const Ranking::Row& row);
/// Returns a sentence for a ranking whose order means little because most rows behind the best are unclear; otherwise
/// "".
std::string unclear_order_note(const Ranking& ranking);

/// Fills in Ranking::common_settings and Row::distinct_settings for the listed rows.
void fill_differences(const Results& results, Ranking& ranking);

/// Ranks by the step time where no row that could be ranked has a value in the column. Throws InputError for an unknown
/// column (naming the nearest), a text column, an invalid condition, or k < 1.
Ranking rank_experiments(const Results& results, const TopOptions& options);

/// A ranking as cells of text; the first line holds the titles.
struct RankingTable {
  std::vector<std::vector<std::string>> lines;
  std::vector<bool> left_aligned;  // columns aligned to the left
  std::string footer;              // whole lines: what was ranked and left out, and what the intervals rest on
  std::string note = {};           // unclear_order_note()
};
RankingTable render_table(const Results& results, const Ranking& ranking);
std::string render_text(const Results& results, const Ranking& ranking);
/// Returns one JSON object; every row has all its columns, with null for missing values.
std::string render_json(const Results& results, const Ranking& ranking);

}  // namespace manyworlds::io
