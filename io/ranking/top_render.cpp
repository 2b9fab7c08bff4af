// A ranking as aligned text with SI units (memory in GiB, as GPUs are sold), and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "io/ranking/sweep_facts.hpp"
#include "io/ranking/top.hpp"
#include "io/results/figures.hpp"

namespace manyworlds::io {

namespace {

/// Differences from here on are no tie, however wrong predictions may be.
constexpr double kTie = 0.1;

const char* words_of(const Ranking::Row& row) {
  switch (row.apart) {
    case Apart::unknown:
    case Apart::best:
      return "";
    case Apart::not_told:
      return row.behind < kTie ? ", tie" : ", unclear";
    case Apart::overlapping:
      return ", probably slower";
    case Apart::told:
      return ", slower";
  }
  return "";
}

/// A peak this near to what a GPU has is as likely wrong as right: predicted peaks are off by a few percent.
constexpr double kTight = 0.95;
constexpr const char* kTightMark = " !";

bool is_tight(const Table& experiments, std::size_t row) {
  const Column *needs = experiments.find("memory_peak_bytes"), *has = experiments.find("gpu_memory_bytes");
  return needs != nullptr && has != nullptr && needs->number_at(row) > kTight * has->number_at(row);
}

std::string tight_rows(const Results& results, const Ranking& ranking) {
  const bool any = std::any_of(ranking.rows.begin(), ranking.rows.end(),
                               [&](const Ranking::Row& row) { return is_tight(results.experiments, row.row); });
  return any ? "! fills more than 95 % of the memory that it may have: try it before you rely on it\n" : "";
}

/// How many of the rows shown are bounds and no packet results.
std::ptrdiff_t analytic_rows(const Results& results, const Ranking& ranking) {
  const Column* fidelity = results.experiments.find("fidelity");
  const auto* texts = fidelity ? std::get_if<std::vector<std::string>>(&fidelity->values) : nullptr;
  return texts == nullptr ? 0 : std::count_if(ranking.rows.begin(), ranking.rows.end(), [&](const Ranking::Row& row) {
    return (*texts)[row.row] == "analytic";
  });
}

/// What intervals and marks of the rows shown rest on.
std::string basis_of(const Results& results, const Ranking& ranking) {
  const Column *basis = results.experiments.find("step_time_basis"),
               *ratio = results.experiments.find("told_apart_ratio");
  const auto* texts = basis ? std::get_if<std::vector<std::string>>(&basis->values) : nullptr;
  std::map<std::string, double> found;  // and the ratio of each
  if (texts != nullptr && ratio != nullptr)
    for (const Ranking::Row& row : ranking.rows)
      if (!(*texts)[row.row].empty()) found[(*texts)[row.row]] = ratio->number_at(row.row);
  std::string text;
  for (const auto& [words, apart] : found)
    text += fmt::format(
        "80 % intervals from errors on published runs ({}); between layouts of one model, batch and machine "
        "differences "
        "below {:.1f} % are within model error\n",
        words, 100 * (apart - 1));
  return text;
}

/// Of which peaks the MFUs shown are shares.
std::string peaks_of(const Results& results, const Ranking& ranking) {
  std::set<std::string> peaks;
  for (const Ranking::Row& row : ranking.rows)
    if (std::string peak = mfu_peak(results.experiments, row.row); !peak.empty()) peaks.insert(std::move(peak));
  if (peaks.empty()) return "";
  return fmt::format("MFU is of {} a GPU{}\n", fmt::join(peaks, ", or of "),
                     peaks.size() > 1 ? ", as the row's precision is" : "");
}

std::string footer(const Results& results, const Ranking& ranking) {
  std::string text = fmt::format("{} of {} experiments, by {} ({} first)", ranking.rows.size(), ranking.candidates,
                                 ranking.by, ranking.descending ? "largest" : "smallest");
  if (ranking.did_not_run > 0) text += fmt::format("; {} did not run", ranking.did_not_run);
  if (ranking.refused > 0) text += fmt::format("; {} outside the condition", ranking.refused);
  if (ranking.without_value > 0) text += fmt::format("; {} without a value", ranking.without_value);
  if (!ranking.alike.empty()) text = fmt::format("all: {}\n{}", ranking.alike, text);
  if (const auto bounds = analytic_rows(results, ranking); bounds > 0)
    text += fmt::format("; {} shown of analytic fidelity: lower bounds of the step time", bounds);
  return text + "\n" + tight_rows(results, ranking) + peaks_of(results, ranking) + basis_of(results, ranking) +
         told_assumed(assumed_of(results));
}

/// Whether two experiments came out alike to the last digit: what they differ in made no difference.
bool is_same_answer(const Table& experiments, const Column& by, std::size_t a, std::size_t b) {
  const auto equal = [&](const Column* column) {
    return column != nullptr && column->number_at(a) == column->number_at(b);  // NaN equals nothing
  };
  return equal(&by) && equal(experiments.find("step_time_s")) && equal(experiments.find("memory_peak_bytes"));
}

/// Place, ids and layout of ranked rows [begin, end), which came out alike: "1-2", "4, 5", "tp=4 nics=1 or 2".
std::vector<std::string> joined_rows(const Results& results, const Ranking& ranking, std::size_t begin,
                                     std::size_t end) {
  std::vector<std::string> ids;
  for (std::size_t i = begin; i < end; ++i) ids.push_back(results.experiments.text_at("id", ranking.rows[i].row));
  const std::string place = end == begin + 1 ? fmt::format("{}", end) : fmt::format("{}-{}", begin + 1, end);
  std::string layout = ranking.rows[begin].differs;
  if (end > begin + 1) {
    std::vector<std::size_t> all;
    for (const Ranking::Row& row : ranking.rows) all.push_back(row.row);
    std::vector<std::string> parts;
    for (const Axes::Axis& axis : Axes(results).split(all).second) {
      std::vector<std::string> values;
      for (std::size_t i = begin; i < end; ++i)
        if (std::string text = axis.column->text_at(ranking.rows[i].row);
            std::find(values.begin(), values.end(), text) == values.end())
          values.push_back(std::move(text));
      parts.push_back(fmt::format("{}={}", axis.short_name, fmt::join(values, " or ")));
    }
    layout = fmt::format("{}", fmt::join(parts, " "));
  }
  return {place, fmt::format("{}", fmt::join(ids, ", ")), layout.empty() && !ranking.alike.empty() ? "as all" : layout};
}

nlohmann::ordered_json value_at(const Column& column, std::size_t row) {
  return std::visit([row](const auto& values) { return nlohmann::ordered_json(values[row]); }, column.values);
}

}  // namespace

const char* name_of(Apart apart) {
  switch (apart) {
    case Apart::unknown:
      return "unknown";
    case Apart::best:
      return "best";
    case Apart::not_told:
      return "not_told_apart";
    case Apart::overlapping:
      return "told_apart_intervals_overlap";
    case Apart::told:
      return "told_apart";
  }
  return "unknown";
}

std::string behind_best(const Ranking::Row& row) {
  if (row.apart == Apart::best) return "";
  if (!std::isfinite(row.behind)) return kMissing;
  return fmt::format("{:+.1f} %{}", 100 * row.behind, words_of(row));
}

std::string unclear_order(const Ranking& ranking) {
  const auto unclear = std::count_if(ranking.rows.begin(), ranking.rows.end(), [](const Ranking::Row& row) {
    return row.apart == Apart::not_told && row.behind >= kTie;
  });
  if (unclear == 0 || 2 * unclear < static_cast<std::ptrdiff_t>(ranking.rows.size())) return "";
  return "The order of these layouts is not known: most differences are smaller than what predictions of this kind are "
         "off by. ";
}

RankingLines render_lines(const Results& results, const Ranking& ranking) {
  const Table& experiments = results.experiments;
  RankingLines made{{{"#", "id", "layout"}}, {false, false, true}, footer(results, ranking), unclear_order(ranking)};
  auto& lines = made.lines;
  auto& left = made.left;
  std::vector<const Column*> figures;
  const auto figure = [&](const char* name, const char* title) {
    figures.push_back(experiments.find(name));
    lines[0].push_back(title);
    left.push_back(false);
  };
  figure("step_time_s", "step time");
  const Column *low = experiments.find("step_time_low_s"), *high = experiments.find("step_time_high_s");
  const bool sure = low != nullptr && high != nullptr;
  if (sure) {
    lines[0].push_back("80 % interval");
    left.push_back(false);
  }
  figure("tokens_per_s_per_gpu", "tokens/s/GPU");
  figure("mfu", "MFU");
  figure("memory_peak_bytes", "peak memory");
  const Column* by = experiments.find(ranking.by);
  if (std::find(figures.begin(), figures.end(), by) == figures.end()) figure(by->name.c_str(), by->name.c_str());
  lines[0].push_back("largest loss");
  left.push_back(true);
  if (sure) {
    lines[0].push_back("from #1");
    left.push_back(true);
  }
  for (std::size_t begin = 0, end = 0; begin < ranking.rows.size(); begin = end) {
    const Ranking::Row& row = ranking.rows[begin];
    end = begin + 1;
    while (end < ranking.rows.size() && is_same_answer(experiments, *by, row.row, ranking.rows[end].row)) ++end;
    std::vector<std::string> line = joined_rows(results, ranking, begin, end);
    for (const Column* column : figures) {
      line.push_back(shown(column, row.row));
      if (column != nullptr && column->name == "memory_peak_bytes" && is_tight(experiments, row.row))
        line.back() += kTightMark;
      if (sure && column == figures.front()) line.push_back(shown_interval(experiments, row.row));
    }
    line.push_back(row.lost_to.empty() ? kMissing : fmt::format("{} {:.0f} %", row.lost_to, row.lost_share * 100));
    if (sure) line.push_back(behind_best(row));
    lines.push_back(std::move(line));
  }
  return made;
}

std::string render_text(const Results& results, const Ranking& ranking) {
  const RankingLines made = render_lines(results, ranking);
  return (made.lead.empty() ? "" : made.lead + "\n") + aligned(made.lines, made.left) + made.footer;
}

std::string render_json(const Results& results, const Ranking& ranking) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const Ranking::Row& row : ranking.rows) {
    Json object = {{"rank", rows.size() + 1},
                   {"layout", row.layout},
                   {"lost_to", row.lost_to},
                   {"lost_share", row.lost_share},
                   {"from_best", name_of(row.apart)}};
    for (const Column& column : results.experiments.columns) object["columns"][column.name] = value_at(column, row.row);
    rows.push_back(std::move(object));
  }
  const Json all = {{"by", ranking.by},
                    {"descending", ranking.descending},
                    {"candidates", ranking.candidates},
                    {"did_not_run", ranking.did_not_run},
                    {"refused", ranking.refused},
                    {"without_value", ranking.without_value},
                    {"rows", rows}};
  // A label that is no UTF-8 must not keep the ranking from being printed.
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace manyworlds::io
