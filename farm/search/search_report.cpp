#include "farm/search/search_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.hpp"
#include "io/ranking/sweep_analysis.hpp"
#include "io/ranking/top.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kGain = "tokens_per_s_per_gpu";
constexpr const char* kMemory = "memory_peak_bytes";

const io::Column& column(const io::Results& results, const char* name) {
  const io::Column* found = results.experiments.find(name);
  MANYWORLDS_CHECK(found, "no column '{}'", name);
  return *found;
}

/// Returns the best `k` rows that ran, ranked as by `top`; 0: all.
io::Ranking ranked(const io::Results& results, std::int64_t k = 0) {
  const auto rows = static_cast<std::int64_t>(std::max<std::size_t>(results.experiments.rows(), 1));
  return io::rank_experiments(results, {k > 0 ? k : rows, kGain, ""});
}

io::Ranking front_of(const io::Results& results, io::Ranking ranking) {
  const auto front = io::pareto_front(results, column(results, kMemory), column(results, kGain));
  std::erase_if(ranking.rows, [&](const io::Ranking::Row& row) {
    return std::find(front.begin(), front.end(), row.row) == front.end();
  });
  io::fill_differences(results, ranking);
  return ranking;
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
  }
  return ranks;
}

}  // namespace

std::vector<std::size_t> by_throughput(const io::Results& results) {
  std::vector<std::size_t> rows;
  for (const io::Ranking::Row& row : ranked(results).rows) rows.push_back(row.row);
  return rows;
}

std::vector<double> throughputs(const io::Results& results, const std::vector<std::size_t>& rows) {
  const io::Column& gain = column(results, kGain);
  std::vector<double> result;
  for (const std::size_t row : rows) result.push_back(gain.number_at(row));
  return result;
}

std::vector<double> throughputs(const io::Results& results) {
  std::vector<std::size_t> rows(results.experiments.rows());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return throughputs(results, rows);
}

experiments::Sweep part_of(const experiments::Sweep& sweep, const std::vector<std::size_t>& rows) {
  experiments::Sweep result;
  result.name = sweep.name;
  result.assumed = sweep.assumed;
  result.objective = sweep.objective;
  result.text = sweep.text;
  result.overrides = sweep.overrides;
  result.where = sweep.where;
  result.columns = sweep.columns;
  result.inputs = sweep.inputs;
  for (const std::size_t row : rows) {
    experiments::Experiment& one = result.experiments.emplace_back(sweep.experiments.at(row));
    one.id = static_cast<std::uint32_t>(result.experiments.size() - 1);
  }
  return result;
}

experiments::Sweep packet_sweep(const experiments::Sweep& sweep, const std::vector<std::size_t>& rows) {
  experiments::Sweep result = part_of(sweep, rows);
  for (experiments::Experiment& one : result.experiments) one.settings["fidelity"] = std::string("packet");
  return result;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  MANYWORLDS_CHECK(a.size() == b.size(), "{} and {} figures", a.size(), b.size());
  if (a.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xy / std::sqrt(xx * yy);
}

namespace {

/// Returns Spearman's coefficient between the screening and the packet simulation, over the layouts that ran in both;
/// NaN for fewer than two.
double agreement(const SearchFindings& findings) {
  const std::vector<double> bounds = throughputs(findings.screened, by_throughput(findings.screened));
  const std::vector<double> exact = throughputs(*findings.packets);
  std::vector<double> before, after;
  for (std::size_t row = 0; row < exact.size(); ++row)
    if (!std::isnan(exact[row])) before.push_back(bounds.at(row)), after.push_back(exact[row]);
  return rank_correlation(before, after);
}

std::string layouts(std::size_t count) {
  return fmt::format("{} layout{}", io::group_digits(static_cast<double>(count)), count == 1 ? "" : "s");
}

/// Returns a sentence on how many layouts were screened and simulated, and whether the winner is certain.
std::string status_text(const SearchFindings& findings) {
  const std::size_t ran = by_throughput(findings.screened).size(), screened = findings.screened.experiments.rows();
  if (!findings.packets)
    return fmt::format("{} ranked by analytic step times, which ignore contention; no packets were simulated\n",
                       layouts(ran));
  const SearchStatus& settled = findings.search_status;
  const auto number = [](std::size_t count) { return io::group_digits(static_cast<double>(count)); };
  std::string text = fmt::format("{} of {} fit", number(findings.fitting), layouts(findings.layouts));
  text += screened < findings.fitting
              ? fmt::format("; lower bounds exclude {}, {}", number(findings.fitting - screened), number(screened))
              : " and";
  text += fmt::format(" were screened analytically (run {}), the best {} simulated packet by packet\n",
                      findings.screening, settled.simulated);
  if (ran < screened)
    text += fmt::format("{} of those screened did not run, and are in no comparison: too large, or as their run says\n",
                        number(screened - ran));
  if (settled.settled())
    return text + fmt::format(
                      "proven optimal within the model{}: no other layout's lower bound, by sums or by analytic "
                      "simulation, is below the step time of #1\n",
                      ran < screened ? ", of those that ran" : "");
  return text +
         fmt::format("not proven: {} more may be faster than #1, by at most {:.1f} %; --packet {} simulates them\n",
                     settled.open, 100 * settled.max_gain, settled.simulated + settled.open);
}

std::string agreement_text(const SearchFindings& findings) {
  const double rank = agreement(findings);
  if (std::isnan(rank)) return "";
  const char* meaning = rank < 0.5 ? ": they disagree, trust the packets" : "";
  return fmt::format("analytic and packet rankings of these: Spearman {:.2f}{}\n", rank, meaning);
}

const io::Results& final_results(const SearchFindings& findings) {
  return findings.packets ? *findings.packets : findings.screened;
}

}  // namespace

std::string search_text(const SearchFindings& findings, std::int64_t k) {
  const io::Results& results = final_results(findings);
  const io::RankingTable best = io::render_table(results, ranked(results, k));
  std::string text = status_text(findings) + "\n" + (best.note.empty() ? "" : best.note + "\n") +
                     io::align_columns(best.lines, best.left_aligned) + best.footer;
  if (findings.packets) text += agreement_text(findings);
  const io::Ranking front = front_of(results, ranked(results));
  const io::RankingTable lines = io::render_table(results, front);
  return text + fmt::format("\nPareto front of these (throughput against memory), {}\n{}", layouts(front.rows.size()),
                            io::align_columns(lines.lines, lines.left_aligned));
}

Json search_json(const SearchFindings& findings, std::int64_t k) {
  const auto json_of = [](const io::Results& results, const io::Ranking& ranking) {
    return Json::parse(io::render_json(results, ranking));
  };
  const io::Results& results = final_results(findings);
  Json result{{"fidelity", findings.packets ? "packet" : "analytic"},
              {"top", json_of(results, ranked(results, k))},
              {"pareto", json_of(results, front_of(results, ranked(results))).at("rows")}};
  if (!findings.packets) return result;
  const double rank = agreement(findings);
  result["screening"] = {{"run", findings.screening},
                         {"layouts", by_throughput(findings.screened).size()},
                         {"fitting", findings.fitting},
                         {"spearman", std::isnan(rank) ? Json(nullptr) : Json(rank)},
                         {"top", json_of(findings.screened, ranked(findings.screened, k))}};
  result["settled"] = findings.search_status.settled();
  result["simulated"] = findings.search_status.simulated;
  result["open"] = {{"layouts", findings.search_status.open}, {"faster_at_most", findings.search_status.max_gain}};
  return result;
}

}  // namespace manyworlds::farm
