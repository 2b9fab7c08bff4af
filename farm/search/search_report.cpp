#include "farm/search/search_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/plural.hpp"
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

const char* words_of(Simulation simulation) {
  return simulation == Simulation::packets ? "packet by packet" : "as fluids";
}

experiments::Sweep simulated_part(const experiments::Sweep& sweep, const std::vector<std::size_t>& rows,
                                  Simulation simulation) {
  const std::string fidelity = simulation == Simulation::packets ? "packet" : "fluid";
  experiments::Sweep result = part_of(sweep, rows);
  for (experiments::Experiment& one : result.experiments) one.settings["fidelity"] = fidelity;
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

/// Returns Spearman's coefficient between the screening and the simulation, over the layouts that ran in both;
/// NaN for fewer than two.
double agreement(const SearchFindings& findings) {
  const std::vector<double> bounds = throughputs(findings.screened, by_throughput(findings.screened));
  const std::vector<double> exact = throughputs(*findings.simulated);
  std::vector<double> before, after;
  for (std::size_t row = 0; row < exact.size(); ++row)
    if (!std::isnan(exact[row])) before.push_back(bounds.at(row)), after.push_back(exact[row]);
  return rank_correlation(before, after);
}

std::string layouts(std::size_t count) {
  return fmt::format("{} {}", io::group_digits(static_cast<double>(count)), core::plural(count, "layout"));
}

std::string number(std::size_t count) {
  return io::group_digits(static_cast<double>(count));
}

/// Returns what ended the search before its answer was certain, and what continues it.
std::string why_open(const SearchFindings& findings) {
  const SearchStatus& status = findings.search_status;
  if (status.end == SearchEnd::budget)
    return "its time was over; the same line with a longer --budget continues (0: as long as it takes)";
  if (status.end == SearchEnd::stopped) return "as it was stopped; the same line continues";
  return fmt::format("--packet {} simulates them", status.simulated + status.open);
}

/// Returns what there was no time to look at, as the end of a sentence; empty if there is nothing.
std::string unknown_text(const SearchStatus& status) {
  std::string text;
  if (status.unknown > 0) text += fmt::format("; {} were not looked at", layouts(status.unknown));
  if (status.unlisted > 0)
    text += fmt::format("; {} combinations were not checked", io::group_digits(static_cast<double>(status.unlisted)));
  return text;
}

double best_step_s(const io::Results& results) {
  return column(results, "step_time_s").number_at(by_throughput(results).front());
}

/// Returns a sentence on whether the winner is certain, or on what may still be better, and by how much.
std::string certainty_text(const SearchFindings& findings, bool all_ran) {
  const SearchStatus& status = findings.search_status;
  if (!findings.simulated || status.simulated == 0)
    return fmt::format(
        "lower bounds only: no layout was simulated{}{}; {}\n",
        by_throughput(findings.screened).empty()
            ? ""
            : fmt::format(", so that #1 takes at least {:.4g} s a step, and longer with contention on links",
                          best_step_s(findings.screened)),
        unknown_text(status), why_open(findings));
  if (status.settled())
    return fmt::format(
        "proven optimal within the model{}{}: no other layout's lower bound, by sums or by analytic "
        "simulation, is below the step time of #1\n",
        all_ran ? "" : ", of those that ran",
        findings.simulation == Simulation::fluids ? " and the error of fluids" : "");
  const std::string open = status.open > 0 ? fmt::format("{} more may be faster than #1, by at most {:.1f} %",
                                                         number(status.open), 100 * status.max_gain)
                                           : "none that was looked at can be faster than #1";
  return fmt::format("not proven: {}{}; {}\n", open, unknown_text(status), why_open(findings));
}

/// Returns sentences on how many layouts were screened and simulated, and whether the winner is certain.
std::string status_text(const SearchFindings& findings) {
  const auto counts = findings.screened.experiments.counts_of("status");
  const auto pending = counts.find("pending");
  const std::size_t ran = by_throughput(findings.screened).size(), rows = findings.screened.experiments.rows();
  const std::size_t screened = rows - (pending == counts.end() ? 0 : pending->second);
  const SearchStatus& status = findings.search_status;
  if (!findings.simulated && status.end == SearchEnd::limit)
    return fmt::format(
        "{} ranked by analytic step times, lower bounds that ignore contention; no packets were simulated\n",
        layouts(ran));
  std::string text =
      status.unknown == 0
          ? fmt::format("{} of {} fit", number(findings.fitting), layouts(findings.layouts))
          : fmt::format("{} of the {} that there was time to look at fit, of {}", number(findings.fitting),
                        layouts(findings.layouts - status.unknown), number(findings.layouts));
  if (screened == findings.fitting)
    text += " and";
  else if (status.end == SearchEnd::limit)
    text += fmt::format("; lower bounds exclude {}, {}", number(findings.fitting - screened), number(screened));
  else
    text += fmt::format("; the {} with the best lower bounds", number(screened));
  text += fmt::format(" were screened analytically (run {})", findings.screening);
  if (status.simulated > 0)
    text += fmt::format(", the best {} simulated {}", status.simulated, words_of(findings.simulation));
  if (status.simulated > 0 && findings.simulation == Simulation::fluids)
    text += ", as packets took longer than there was time for";
  if (status.end != SearchEnd::limit && status.simulated > 0) text += fmt::format(" (run {})", findings.simulated_run);
  text += "\n";
  if (ran < screened)
    text += fmt::format("{} of those screened did not run, and are in no comparison: too large, or as their run says\n",
                        number(screened - ran));
  return text + certainty_text(findings, ran == screened);
}

/// Returns what the tokens of a training run take with the best layout, or what its budget trains; "" if neither is
/// given.
std::string training_text(const io::Results& results) {
  const std::vector<std::size_t> best = by_throughput(results);
  const io::Column *time = results.experiments.find("train_time_s"), *price = results.experiments.find("train_usd");
  if (time == nullptr || best.empty()) return "";
  constexpr double kSecondsPerDay = 86'400;
  const io::Column* tokens = results.experiments.find("budget_tokens");
  const std::string trained = tokens == nullptr ? "the tokens"
                                                : fmt::format("the {} tokens of the budget",
                                                              io::with_si_prefix(tokens->number_at(best.front()), ""));
  std::string text =
      fmt::format("#1 trains {} in {:.1f} days", trained, time->number_at(best.front()) / kSecondsPerDay);
  if (price != nullptr && price->number_at(best.front()) > 0)
    text += fmt::format(", for {} USD", io::group_digits(std::round(price->number_at(best.front()))));
  return text + "\n";
}

std::string agreement_text(const SearchFindings& findings) {
  const double rank = agreement(findings);
  if (std::isnan(rank)) return "";
  const bool packets = findings.simulation == Simulation::packets;
  const std::string meaning =
      rank < 0.5 ? fmt::format(": they disagree, trust the {}", packets ? "packets" : "fluids") : "";
  return fmt::format("analytic and {} rankings of these: Spearman {:.2f}{}\n", packets ? "packet" : "fluid", rank,
                     meaning);
}

/// Returns the settings that all rows of a further table have in common, as a line; empty if `above` has said them.
std::string common_text(const io::Ranking& ranking, const std::string& above) {
  const std::string& common = ranking.common_settings;
  return common.empty() || common == above ? "" : fmt::format("all: {}\n", common);
}

/// Returns the best of the screening that were not simulated, as far as the `k` best that are listed lack some; empty
/// if there are none. `above` are the settings that the table before has in common.
std::string screened_text(const SearchFindings& findings, std::int64_t k, const std::string& above) {
  const auto listed = static_cast<std::int64_t>(by_throughput(*findings.simulated).size());
  if (listed >= k) return "";
  io::Ranking others = ranked(findings.screened);
  const std::vector<double> simulated = throughputs(*findings.simulated);
  for (std::size_t row = simulated.size(); row-- > 0;)
    if (!std::isnan(simulated[row])) others.rows.erase(others.rows.begin() + static_cast<std::ptrdiff_t>(row));
  if (others.rows.empty()) return "";
  const io::Column& step_s = column(findings.screened, "step_time_s");
  const double best = step_s.number_at(others.rows.front().row);
  for (io::Ranking::Row& row : others.rows) row.relative_gap = step_s.number_at(row.row) / best - 1;
  others.rows.resize(std::min(others.rows.size(), static_cast<std::size_t>(k - listed)));
  io::fill_differences(findings.screened, others);
  const io::RankingTable lines = io::render_table(findings.screened, others);
  return fmt::format("\nnot simulated, by their analytic step times, which are lower bounds\n{}{}",
                     io::align_columns(lines.lines, lines.left_aligned), common_text(others, above));
}

}  // namespace

const io::Results& final_results(const SearchFindings& findings) {
  return findings.simulated && findings.search_status.simulated > 0 ? *findings.simulated : findings.screened;
}

std::string found_title(const SearchFindings& findings, const std::string& name) {
  const io::Results& results = final_results(findings);
  const double rate = best_of(throughputs(results)), step_s = best_step_s(results);
  if (results.experiments.text_at("fidelity", by_throughput(results).front()) == "analytic")
    return fmt::format(
        "{}: no layout was simulated; the best of {} layouts that fit by its lower bound, which takes at "
        "least {:.4g} s a step and longer with contention on links, at most {:.1f} tokens/s/GPU",
        name, findings.fitting, step_s, rate);
  const char* found =
      findings.search_status.settled() ? "the fastest of" : "the best that was found, and not proven the fastest, of";
  return fmt::format("{}: {} {} layouts that fit, {:.4g} s a step, {:.1f} tokens/s/GPU", name, found, findings.fitting,
                     step_s, rate);
}

std::string search_text(const SearchFindings& findings, std::int64_t k) {
  const io::Results& results = final_results(findings);
  const io::Ranking ranking = ranked(results, k);
  const io::RankingTable best = io::render_table(results, ranking);
  std::string text = status_text(findings) + "\n" + (best.note.empty() ? "" : best.note + "\n") +
                     io::align_columns(best.lines, best.left_aligned) + best.footer;
  if (&results != &findings.screened)
    text += agreement_text(findings) + screened_text(findings, k, ranking.common_settings);
  text += training_text(results);
  const io::Ranking front = front_of(results, ranked(results));
  const io::RankingTable lines = io::render_table(results, front);
  return text + fmt::format("\nPareto front of these (throughput against memory), {}\n{}{}", layouts(front.rows.size()),
                            io::align_columns(lines.lines, lines.left_aligned),
                            common_text(front, ranking.common_settings));
}

Json search_json(const SearchFindings& findings, std::int64_t k) {
  const auto json_of = [](const io::Results& results, const io::Ranking& ranking) {
    return Json::parse(io::render_json(results, ranking));
  };
  const io::Results& results = final_results(findings);
  const bool is_simulated = &results != &findings.screened;
  constexpr const char* kEnds[] = {"limit", "budget", "stopped"};
  const char* simulation = findings.simulation == Simulation::packets ? "packet" : "fluid";
  Json result{{"fidelity", is_simulated ? simulation : "analytic"},
              {"assumed", io::assumed_defaults(results)},
              {"fitting", findings.fitting},
              {"ended", kEnds[static_cast<std::size_t>(findings.search_status.end)]},
              {"top", json_of(results, ranked(results, k))},
              {"pareto", json_of(results, front_of(results, ranked(results))).at("rows")}};
  if (!is_simulated) return result;
  const double rank = agreement(findings);
  result["screening"] = {{"run", findings.screening},
                         {"layouts", by_throughput(findings.screened).size()},
                         {"fitting", findings.fitting},
                         {"spearman", std::isnan(rank) ? Json(nullptr) : Json(rank)},
                         {"top", json_of(findings.screened, ranked(findings.screened, k))}};
  result["settled"] = findings.search_status.settled();
  result["simulated"] = findings.search_status.simulated;
  result["open"] = {{"layouts", findings.search_status.open},
                    {"faster_at_most", findings.search_status.max_gain},
                    {"not_looked_at", findings.search_status.unknown},
                    {"combinations_not_checked", findings.search_status.unlisted}};
  return result;
}

}  // namespace manyworlds::farm
