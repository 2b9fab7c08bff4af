// The best experiments of a run: ranked by a column, filtered by a condition, as a table for people or as JSON.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/results/results.hpp"

namespace manyworlds::io {

/// The columns that add up to the step time, as far as a run has them.
inline constexpr std::array<std::string_view, 14> kBreakdown{
    "forward_s",    "backward_s",        "recompute_s",  "optimizer_s",  "host_s",
    "slowed_s",     "exposed_tp_s",      "exposed_dp_s", "exposed_pp_s", "exposed_cp_s",
    "exposed_ep_s", "exposed_offload_s", "bubble_s",     "stall_s"};

/// "forward" for "forward_s".
inline std::string part_name(std::string_view column) {
  return std::string(column.substr(0, column.size() - 2));
}

struct TopOptions {
  std::int64_t k = 10;
  std::string by = "tokens_per_s_per_gpu";  // may end in " asc" or " desc"; else less is better of seconds and bytes
  std::string where;                        // see Condition
};

/// What can be said of a row and the best one, as far as step times are known.
enum class Apart {
  unknown,   // no interval, or ranked by something that is no speed
  best,      // it is that one
  not_told,  // layouts of one choice in a ratio within what pairs of measured ones were off; others: intervals overlap
  overlapping,  // layouts of one choice that are told apart, though their intervals overlap
  told          // their intervals do not overlap
};

struct Ranking {
  struct Row {
    std::size_t row = 0;  // of /experiments
    std::string layout;   // "tp=8 pp=2 …"
    std::string differs;  // what of it is not alike in all rows listed: "pp=2 …"
    std::string lost_to;  // its largest part beside forward and backward kernels: "exposed_dp"; "" where there is none
    double lost_share = 0;  // of the step time
    Apart apart = Apart::unknown;
    double behind = 0;  // how much worse than the best it is, a share of the best: 0.2 takes a fifth longer
  };
  std::string by;
  bool descending = true;
  std::vector<Row> rows;          // at most k, best first; ties in the order of ids
  std::string alike;              // what is: "tp=8"; empty of a single row
  std::size_t candidates = 0;     // rows that could be ranked
  std::size_t did_not_run = 0;    // left out, unless the condition names `status`
  std::size_t refused = 0;        // left out by the condition
  std::size_t without_value = 0;  // left out as the column has no value there
};

/// "best", "told_apart", …: as JSON has it.
const char* name_of(Apart apart);

/// How much worse than the best a row is, and whether that is sure: "+3.1 %, tie", "+15.4 %, probably slower". Empty
/// for the best. A tie is a difference of less than a tenth that is within what predictions are off by; a larger one
/// that is within it is unclear.
std::string behind_best(const Ranking::Row& row);
/// A sentence for a ranking whose order means little, since most of its rows behind the best are unclear; else empty.
std::string unclear_order(const Ranking& ranking);

/// Fills in Ranking::alike and Row::differs for the rows that are listed.
void tell_differences(const Results& results, Ranking& ranking);

/// Throws InputError: no such column (with the nearest), a column of text, a condition that cannot be read, k < 1.
Ranking rank_experiments(const Results& results, const TopOptions& options);

/// A ranking as cells of text; the first line has the titles.
struct RankingLines {
  std::vector<std::vector<std::string>> lines;
  std::vector<bool> left;  // columns that read from the left
  std::string footer;      // what was ranked, what was left out, and what intervals rest on; whole lines
  std::string lead = {};   // unclear_order()
};
RankingLines render_lines(const Results& results, const Ranking& ranking);
std::string render_text(const Results& results, const Ranking& ranking);
/// One object; every row with all its columns, missing values as null.
std::string render_json(const Results& results, const Ranking& ranking);

}  // namespace manyworlds::io
