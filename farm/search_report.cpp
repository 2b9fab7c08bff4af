#include "farm/search_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "io/figures.hpp"
#include "io/sweep_facts.hpp"
#include "io/top.hpp"

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

/// All rows that ran, as `top` ranks them.
io::Ranking ranked(const io::Results& results) {
  const auto rows = static_cast<std::int64_t>(std::max<std::size_t>(results.experiments.rows(), 1));
  return io::rank_experiments(results, {rows, kGain, ""});
}

io::Ranking first_of(io::Ranking ranking, std::int64_t k) {
  if (ranking.rows.size() > static_cast<std::size_t>(k)) ranking.rows.resize(static_cast<std::size_t>(k));
  return ranking;
}

io::Ranking front_of(const io::Results& results, io::Ranking ranking) {
  const auto front = io::pareto_front(results, column(results, kMemory), column(results, kGain));
  std::erase_if(ranking.rows, [&](const io::Ranking::Row& row) {
    return std::find(front.begin(), front.end(), row.row) == front.end();
  });
  return ranking;
}

std::string lines_text(const io::Results& results, const io::Ranking& ranking) {
  const io::RankingLines made = io::render_lines(results, ranking);
  return io::aligned(made.lines, made.left);
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

experiments::Sweep packet_sweep(const experiments::Sweep& sweep, const std::vector<std::size_t>& rows) {
  experiments::Sweep made;
  made.name = sweep.name + "-packets";
  made.objective = sweep.objective;
  made.text = sweep.text;
  made.overrides = sweep.overrides;
  made.where = sweep.where;
  made.columns = sweep.columns;
  made.inputs = sweep.inputs;
  for (const std::size_t row : rows) {
    experiments::Experiment& one = made.experiments.emplace_back(sweep.experiments.at(row));
    one.id = static_cast<std::uint32_t>(made.experiments.size() - 1);
    one.settings["fidelity"] = std::string("packet");
  }
  return made;
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

/// How packets order what the screening ordered: nothing where fewer than two of them ran.
std::string agreement_text(const SearchFindings& findings) {
  const auto screened = by_throughput(findings.screened);
  const io::Column& exact = column(*findings.exact, kGain);
  std::vector<double> before, after;
  for (std::size_t row = 0; row < exact.rows(); ++row)
    if (!std::isnan(exact.number_at(row))) {
      before.push_back(column(findings.screened, kGain).number_at(screened.at(row)));
      after.push_back(exact.number_at(row));
    }
  if (after.size() < 2) return "";
  return fmt::format("rank correlation of the two fidelities over these: {:.2f}\n", rank_correlation(before, after));
}

}  // namespace

std::string search_text(const SearchFindings& findings, std::int64_t k) {
  const io::Ranking all = ranked(findings.screened);
  const io::RankingLines best = io::render_lines(findings.screened, first_of(all, k));
  std::string text = io::aligned(best.lines, best.left) + best.footer;
  const io::Ranking front = front_of(findings.screened, all);
  text += fmt::format("\nnothing has more tokens/s/GPU in less memory than these {} (the Pareto front)\n{}",
                      front.rows.size(), lines_text(findings.screened, front));
  if (!findings.exact) return text;
  text += fmt::format("\nthe best {}, packet by packet; ids are places in the ranking above, from 0\n{}",
                      findings.exact->experiments.rows(), lines_text(*findings.exact, ranked(*findings.exact)));
  return text + agreement_text(findings);
}

Json search_json(const SearchFindings& findings, std::int64_t k) {
  const io::Ranking all = ranked(findings.screened);
  const auto json_of = [](const io::Results& results, const io::Ranking& ranking) {
    return Json::parse(io::render_json(results, ranking));
  };
  Json made{{"top", json_of(findings.screened, first_of(all, k))},
            {"pareto", json_of(findings.screened, front_of(findings.screened, all)).at("rows")}};
  if (findings.exact) made["packet"] = json_of(*findings.exact, ranked(*findings.exact));
  return made;
}

}  // namespace manyworlds::farm
