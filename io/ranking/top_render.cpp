// A ranking as aligned text with SI units (memory in GiB, as GPUs are sold), and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/plural.hpp"
#include "io/ranking/sweep_analysis.hpp"
#include "io/ranking/top.hpp"
#include "io/results/known_value.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::io {

namespace {

/// Differences from here on are not called a tie, whatever the prediction error.
constexpr double kTieThreshold = 0.1;

const char* gap_qualifier(const Ranking::Row& row) {
  switch (row.distinction) {
    case Distinction::unknown:
    case Distinction::best:
      return "";
    case Distinction::indistinguishable:
      return row.relative_gap < kTieThreshold ? ", tie" : ", unclear";
    case Distinction::overlapping:
      return ", probably slower";
    case Distinction::distinguishable:
      return ", slower";
  }
  return "";
}

/// Predicted peaks are off by a few percent: above this share of the available memory, a layout may well not fit.
constexpr double kTightMemoryShare = 0.95;
constexpr const char* kTightMark = " !";

bool is_tight(const Table& experiments, std::size_t row) {
  const Column *needs = experiments.find("memory_peak_bytes"), *has = experiments.find("gpu_memory_bytes");
  return needs != nullptr && has != nullptr && needs->number_at(row) > kTightMemoryShare * has->number_at(row);
}

std::string tight_rows(const Results& results, const Ranking& ranking) {
  const bool any = std::any_of(ranking.rows.begin(), ranking.rows.end(),
                               [&](const Ranking::Row& row) { return is_tight(results.experiments, row.row); });
  return any ? "! needs more than 95 % of the available memory: verify that it fits\n" : "";
}

/// Returns how many of the listed rows are analytic lower bounds rather than packet simulations.
std::ptrdiff_t analytic_rows(const Results& results, const Ranking& ranking) {
  const Column* fidelity = results.experiments.find("fidelity");
  const auto* texts = fidelity ? std::get_if<std::vector<std::string>>(&fidelity->values) : nullptr;
  return texts == nullptr ? 0 : std::count_if(ranking.rows.begin(), ranking.rows.end(), [&](const Ranking::Row& row) {
    return (*texts)[row.row] == "analytic";
  });
}

/// Returns the basis of the intervals and marks of the listed rows.
std::string basis_of(const Results& results, const Ranking& ranking) {
  const Column *basis = results.experiments.find("step_time_basis"),
               *ratio = results.experiments.find("distinguishable_ratio");
  const auto* texts = basis ? std::get_if<std::vector<std::string>>(&basis->values) : nullptr;
  std::map<std::string, double> found;  // the distinguishable ratio of each basis
  if (texts != nullptr && ratio != nullptr)
    for (const Ranking::Row& row : ranking.rows)
      if (!(*texts)[row.row].empty()) found[(*texts)[row.row]] = ratio->number_at(row.row);
  std::string text;
  for (const auto& [basis_name, min_ratio] : found)
    text += fmt::format(
        "80 % intervals from errors on published runs ({}); between layouts of one model, batch and machine "
        "differences "
        "below {:.1f} % are within model error\n",
        basis_name, 100 * (min_ratio - 1));
  return text;
}

/// Returns by how much the waits of steps for their networks must differ, where rows on several networks are compared.
std::string network_basis_of(const Results& results, const Ranking& ranking) {
  const Column* ratio = results.experiments.find("network_ratio");
  const bool compared =
      std::any_of(ranking.rows.begin(), ranking.rows.end(), [](const Ranking::Row& row) { return row.other_network; });
  if (!compared || ratio == nullptr || std::isnan(ratio->number_at(ranking.rows.front().row))) return "";
  return fmt::format(
      "between networks the kernels' errors cancel: a row is slower if it waits {:.2f} times as long as #1 for what "
      "they "
      "differ in, or longer; less is within model error\n",
      ratio->number_at(ranking.rows.front().row));
}

/// Returns the guessed figures in the intervals of the listed rows, and what they are worth.
std::string guesses_in(const Results& results, const Ranking& ranking) {
  const Column* figures = results.experiments.find("step_time_guesses");
  if (figures == nullptr) return "";
  std::map<std::string, std::vector<std::size_t>> rows;
  for (const Ranking::Row& row : ranking.rows)
    if (std::string text = figures->text_at(row.row); !text.empty()) rows[std::move(text)].push_back(row.row);
  std::string text;
  for (const auto& [named, with_them] : rows) {
    const std::string widens = format_guesses(results.experiments, with_them);
    text += fmt::format("guessed, {}{}\n", widens.empty() ? "" : "and in these intervals " + widens + ": ", named);
  }
  return text;
}

/// Returns the peaks to which the listed MFUs refer.
std::string peaks_of(const Results& results, const Ranking& ranking) {
  std::set<std::string> peaks;
  for (const Ranking::Row& row : ranking.rows)
    if (std::string peak = mfu_peak_text(results.experiments, row.row); !peak.empty()) peaks.insert(std::move(peak));
  if (peaks.empty()) return "";
  return fmt::format("MFU is of {} a GPU{}\n", fmt::join(peaks, ", or of "),
                     peaks.size() > 1 ? ", as the row's precision is" : "");
}

std::string footer(const Results& results, const Ranking& ranking) {
  std::string text = fmt::format("{} of {} {}, by {} ({} first)", ranking.rows.size(), ranking.candidates,
                                 core::plural(ranking.candidates, "experiment"), ranking.by,
                                 ranking.descending ? "largest" : "smallest");
  if (!ranking.instead_of.empty()) text += fmt::format(", as none has a value of {}", ranking.instead_of);
  if (ranking.did_not_run > 0) text += fmt::format("; {} did not run", ranking.did_not_run);
  if (ranking.filtered_out > 0) text += fmt::format("; {} outside the condition", ranking.filtered_out);
  if (ranking.without_value > 0) text += fmt::format("; {} without a value", ranking.without_value);
  if (const double best = provenance_number(results, "best"); best > 0)
    text += fmt::format(
        "; the best {} by the sweep's objective are proven, and those that were left out by their bounds may be "
        "better than what stands below",
        best);
  if (!ranking.common_settings.empty()) text = fmt::format("all: {}\n{}", ranking.common_settings, text);
  if (const auto bounds = analytic_rows(results, ranking); bounds > 0)
    text += fmt::format("; {} shown of analytic fidelity: lower bounds of the step time", bounds);
  std::vector<std::size_t> rows;
  for (const Ranking::Row& row : ranking.rows) rows.push_back(row.row);
  if (const std::string fluids = fluid_error_text(results.experiments, rows); !fluids.empty()) text += "\n" + fluids;
  return text + "\n" + tight_rows(results, ranking) + peaks_of(results, ranking) + basis_of(results, ranking) +
         network_basis_of(results, ranking) + guesses_in(results, ranking) + assumed_text(assumed_defaults(results));
}

/// Returns whether two experiments have identical results: the settings in which they differ had no effect.
bool has_same_results(const Table& experiments, const Column& by, std::size_t a, std::size_t b) {
  const auto equal = [&](const Column* column) {
    return column != nullptr && column->number_at(a) == column->number_at(b);  // NaN equals nothing
  };
  return equal(&by) && equal(experiments.find("step_time_s")) && equal(experiments.find("memory_peak_bytes"));
}

/// Returns rank, ids and layout of the ranked rows [begin, end), which have identical results: "1-2", "4, 5", "tp=4
/// nics=1 or 2".
std::vector<std::string> joined_rows(const Results& results, const Ranking& ranking, std::size_t begin,
                                     std::size_t end) {
  std::vector<std::string> ids;
  for (std::size_t i = begin; i < end; ++i) ids.push_back(results.experiments.text_at("id", ranking.rows[i].row));
  const std::string place = end == begin + 1 ? fmt::format("{}", end) : fmt::format("{}-{}", begin + 1, end);
  std::string layout = ranking.rows[begin].distinct_settings;
  if (end > begin + 1) {
    std::vector<std::size_t> all;
    for (const Ranking::Row& row : ranking.rows) all.push_back(row.row);
    std::vector<std::string> parts;
    for (const Axes::Axis& axis : Axes(results).split(all).second) {
      std::vector<std::string> values;
      for (std::size_t i = begin; i < end; ++i)
        if (std::string text = axis.value(ranking.rows[i].row);
            std::find(values.begin(), values.end(), text) == values.end())
          values.push_back(std::move(text));
      parts.push_back(fmt::format("{}={}", axis.short_name, fmt::join(values, " or ")));
    }
    layout = fmt::format("{}", fmt::join(parts, " "));
  }
  return {place, fmt::format("{}", fmt::join(ids, ", ")),
          layout.empty() && !ranking.common_settings.empty() ? "(common settings)" : layout};
}

nlohmann::ordered_json value_at(const Column& column, std::size_t row) {
  if (!column.is_text() && !is_known(column, row)) return nullptr;
  return std::visit([row](const auto& values) { return nlohmann::ordered_json(values[row]); }, column.values);
}

}  // namespace

const char* name_of(Distinction distinction) {
  switch (distinction) {
    case Distinction::unknown:
      return "unknown";
    case Distinction::best:
      return "best";
    case Distinction::indistinguishable:
      return "indistinguishable";
    case Distinction::overlapping:
      return "distinguishable_intervals_overlap";
    case Distinction::distinguishable:
      return "distinguishable";
  }
  return "unknown";
}

std::string gap_text(const Ranking::Row& row) {
  if (row.distinction == Distinction::best) return "";
  if (!std::isfinite(row.relative_gap)) return kMissing;
  return fmt::format("{:+.1f} %{}", 100 * row.relative_gap, gap_qualifier(row));
}

std::string unclear_order_note(const Ranking& ranking) {
  const auto unclear = std::count_if(ranking.rows.begin(), ranking.rows.end(), [](const Ranking::Row& row) {
    return row.distinction == Distinction::indistinguishable && row.relative_gap >= kTieThreshold;
  });
  if (unclear == 0 || 2 * unclear < static_cast<std::ptrdiff_t>(ranking.rows.size())) return "";
  return "The order of these layouts is uncertain: most differences are smaller than the prediction error. ";
}

RankingTable render_table(const Results& results, const Ranking& ranking) {
  const Table& experiments = results.experiments;
  RankingTable result{
      {{"#", "id", "layout"}}, {false, false, true}, footer(results, ranking), unclear_order_note(ranking)};
  auto& lines = result.lines;
  auto& left_aligned = result.left_aligned;
  std::vector<const Column*> columns;
  const auto add_column = [&](const char* name, const char* title) {
    columns.push_back(experiments.find(name));
    lines[0].push_back(title);
    left_aligned.push_back(false);
  };
  add_column("step_time_s", "step time");
  const Column *low = experiments.find("step_time_low_s"), *high = experiments.find("step_time_high_s");
  const bool has_interval = low != nullptr && high != nullptr;
  if (has_interval) {
    lines[0].push_back("80 % interval");
    left_aligned.push_back(false);
  }
  add_column("tokens_per_s_per_gpu", "tokens/s/GPU");
  add_column("mfu", "MFU");
  add_column("memory_peak_bytes", "peak memory");
  const Column* by = experiments.find(ranking.by);
  if (std::find(columns.begin(), columns.end(), by) == columns.end()) add_column(by->name.c_str(), by->name.c_str());
  lines[0].push_back("largest loss");
  left_aligned.push_back(true);
  if (has_interval) {
    lines[0].push_back("from #1");
    left_aligned.push_back(true);
  }
  for (std::size_t begin = 0, end = 0; begin < ranking.rows.size(); begin = end) {
    const Ranking::Row& row = ranking.rows[begin];
    end = begin + 1;
    while (end < ranking.rows.size() && has_same_results(experiments, *by, row.row, ranking.rows[end].row)) ++end;
    std::vector<std::string> line = joined_rows(results, ranking, begin, end);
    for (const Column* column : columns) {
      line.push_back(format_cell(column, row.row));
      if (column != nullptr && column->name == "memory_peak_bytes" && is_tight(experiments, row.row))
        line.back() += kTightMark;
      if (has_interval && column == columns.front()) line.push_back(format_interval(experiments, row.row));
    }
    line.push_back(row.largest_loss.empty()
                       ? kMissing
                       : fmt::format("{} {:.0f} %", row.largest_loss, row.largest_loss_share * 100));
    if (has_interval) line.push_back(begin == 0 ? "" : gap_text(row));
    lines.push_back(std::move(line));
  }
  return result;
}

std::string render_text(const Results& results, const Ranking& ranking) {
  const RankingTable result = render_table(results, ranking);
  return (result.note.empty() ? "" : result.note + "\n") + align_columns(result.lines, result.left_aligned) +
         result.footer;
}

std::string render_json(const Results& results, const Ranking& ranking) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const Ranking::Row& row : ranking.rows) {
    Json object = {{"rank", rows.size() + 1},
                   {"layout", row.layout},
                   {"largest_loss", row.largest_loss},
                   {"largest_loss_share", row.largest_loss_share},
                   {"from_best", name_of(row.distinction)}};
    for (const Column& column : results.experiments.columns) object["columns"][column.name] = value_at(column, row.row);
    rows.push_back(std::move(object));
  }
  Json all = {{"by", ranking.by},
              {"descending", ranking.descending},
              {"candidates", ranking.candidates},
              {"did_not_run", ranking.did_not_run},
              {"filtered_out", ranking.filtered_out},
              {"without_value", ranking.without_value}};
  if (!ranking.instead_of.empty()) all["instead_of"] = ranking.instead_of;
  all["rows"] = std::move(rows);
  // A label that is not valid UTF-8 must not prevent the output.
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace manyworlds::io
