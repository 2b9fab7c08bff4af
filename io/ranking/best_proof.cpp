#include "io/ranking/best_proof.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "io/ranking/top.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::io {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Returns the name in "gpus asc", and whether more is better; an empty name if the attribute has none.
std::pair<std::string, bool> ordered_name(const Attribute& attribute) {
  const auto* text = std::get_if<std::string>(&attribute.value);
  const std::size_t space = text == nullptr ? std::string::npos : text->rfind(' ');
  if (space == std::string::npos) return {"", false};
  return {text->substr(0, space), text->substr(space + 1) == "desc"};
}

/// A column as one of which more, or less, is better.
Column oriented(const Column& column, bool negative) {
  std::vector<double> values;
  for (std::size_t row = 0; row < column.rows(); ++row)
    values.push_back(negative ? -column.number_at(row) : column.number_at(row));
  return {column.name, column.unit, column.description, std::move(values)};
}

/// Reads the rows of a proof; less is better in what it returns.
class ProofReader {
 public:
  explicit ProofReader(const Results& results) : results_(results), table_(results.experiments), axes_(results) {}

  std::optional<BestProof> read() {
    read_provenance();
    if (proof_.best == 0 || !find_columns()) return std::nullopt;
    for (std::size_t row = 0; row < table_.rows(); ++row)
      if (is("status", row, "ran") && !std::isnan(result(row))) ranked_.push_back(row);
    if (ranked_.empty()) return std::nullopt;
    std::stable_sort(ranked_.begin(), ranked_.end(), [&](auto a, auto b) { return result(a) < result(b); });
    proof_.rows.assign(ranked_.begin(),
                       ranked_.begin() + static_cast<std::ptrdiff_t>(std::min(proof_.best, ranked_.size())));
    proof_.last = proof_.objective.column->number_at(proof_.rows.back());
    add_rungs();
    for (const Axes::Axis& axis : axes_.all()) add_values(axis);
    close();
    return std::move(proof_);
  }

 private:
  void read_provenance() {
    for (const Attribute& one : results_.provenance) {
      if (one.name == "best" && number(one) > 0) proof_.best = static_cast<std::size_t>(std::min(number(one), 1e6));
      if (one.name == "best_gap") proof_.gap = number(one);
      if (one.name == "space_bound") unlisted_ = number(one);
      if (one.name == "front_column") front_column_ = ordered_name(one).first;
    }
  }
  double number(const Attribute& one) const { return provenance_number(results_, one.name); }

  /// The objective is what has a bound of its own, beside the column of a front, and the step time if nothing has.
  bool find_columns() {
    const Column* by = table_.find("bounded_by");
    if (by == nullptr || !by->is_text()) return false;
    std::string name = "step_time_s";
    const Column* bound = table_.find("step_time_bound_s");
    for (const Column& column : table_.columns)
      if (column.name.ends_with(kBoundSuffix))
        if (const std::string of = column.name.substr(0, column.name.size() - kBoundSuffix.size());
            table_.find(of) != nullptr && of != front_column_)
          name = of, bound = &column;
    proof_.objective.column = table_.find(name);
    proof_.bound = bound;
    if (proof_.objective.column == nullptr || bound == nullptr) return false;
    if (proof_.objective.column->is_text() || bound->is_text()) return false;
    proof_.objective.descending = rank_experiments(results_, {1, name, ""}).descending;
    return true;
  }

  bool is(const char* column, std::size_t row, const char* text) const { return table_.text_at(column, row) == text; }
  double minimised(double value) const { return proof_.objective.descending ? -value : value; }
  double result(std::size_t row) const { return minimised(proof_.objective.column->number_at(row)); }
  double bound(std::size_t row) const { return minimised(proof_.bound->number_at(row)); }
  bool has_bound(std::size_t row) const { return !std::isnan(bound(row)); }
  double margin(double value) const {
    const double last = minimised(proof_.last);
    return (value - last) / std::abs(last);
  }

  Margins margins_of(std::vector<double> values) const {
    if (values.empty()) return no_margins();
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    return {margin(values.front()), margin(median), margin(values.back())};
  }

  void add_rungs() {
    ProofRung sums{ProofRung::Kind::sums, 0, 0, {}}, analytic{ProofRung::Kind::analytic, 0, 0, {}};
    std::vector<double> by_sums, by_analytic, others;
    for (std::size_t row = 0; row < table_.rows(); ++row) {
      if (!has_bound(row)) continue;
      const bool is_analytic = is("bounded_by", row, "analytic");
      ++sums.looked_at;
      analytic.looked_at += is_analytic ? 1 : 0;
      if (is("status", row, "bounded")) (is_analytic ? by_analytic : by_sums).push_back(bound(row));
    }
    for (std::size_t i = proof_.rows.size(); i < ranked_.size(); ++i) others.push_back(result(ranked_[i]));
    sums.left_behind = by_sums.size(), sums.margins = margins_of(std::move(by_sums));
    analytic.left_behind = by_analytic.size(), analytic.margins = margins_of(std::move(by_analytic));
    const std::size_t left = others.size();
    proof_.rungs = {sums, analytic, {ProofRung::Kind::simulated, ranked_.size(), left, margins_of(std::move(others))}};
  }

  void add_values(const Axes::Axis& axis) {
    std::vector<ProvenValue> values;
    std::map<std::string, std::size_t> places;
    for (std::size_t row = 0; row < table_.rows(); ++row) {
      if (!has_bound(row)) continue;
      const auto [place, is_new] = places.try_emplace(axis.column->text_at(row), values.size());
      if (is_new) values.push_back({axis.short_name, place->first, 0, 0, kNaN, 0});
      ProvenValue& value = values[place->second];
      ++value.fitting;
      value.simulated += is("status", row, "ran") ? 1 : 0;
      if (!(minimised(value.bound) <= bound(row))) value.bound = minimised(bound(row));
    }
    if (values.size() < 2) return;
    for (ProvenValue& value : values) {
      if (minimised(unlisted_) < minimised(value.bound))
        value.bound = unlisted_;  // points that the sweep does not list
      value.margin = margin(minimised(value.bound));
    }
    proof_.values.insert(proof_.values.end(), values.begin(), values.end());
  }

  /// Simulates what ran again, in the order of the bounds, as one rank does (farm/best/best_selection.hpp).
  void close() {
    std::vector<std::size_t> order;
    double behind = minimised(unlisted_);  // the best bound of those that were left out
    for (std::size_t row = 0; row < table_.rows(); ++row) {
      if (!has_bound(row)) continue;
      if (is("status", row, "bounded")) behind = std::fmin(behind, bound(row));
      if (is("status", row, "ran") && !std::isnan(result(row))) order.push_back(row);
    }
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return bound(a) < bound(b); });
    std::vector<double> best;  // ascending
    for (std::size_t simulated = 0; simulated <= order.size(); ++simulated) {
      if (simulated > 0) {
        const double next = result(order[simulated - 1]);
        best.insert(std::upper_bound(best.begin(), best.end(), next), next);
        if (best.size() > proof_.best) best.pop_back();
      }
      const double open = simulated < order.size() ? std::fmin(behind, bound(order[simulated])) : behind;
      proof_.closing.push_back({simulated, best.size() < proof_.best ? kNaN : minimised(best.back()), minimised(open)});
    }
  }

  const Results& results_;
  const Table& table_;
  Axes axes_;
  BestProof proof_;
  std::vector<std::size_t> ranked_;  // rows that ran, best first
  double unlisted_ = kNaN;           // the best that points can be which the sweep does not list
  std::string front_column_;         // empty: no front is asked for
};

}  // namespace

std::optional<BestProof> best_proof(const Results& results) {
  // An analytic step is needed to prove anything, so that none means that nobody asked, or that it has not ended.
  if (provenance_number(results, "best_analytic") == 0) return std::nullopt;
  return ProofReader(results).read();
}

std::optional<ProvenFront> proven_front(const Results& results) {
  if (!(provenance_number(results, "best_analytic") > 0)) return std::nullopt;
  ProvenFront front;
  bool more_objective = true, more_column = false;
  for (const Attribute& one : results.provenance)
    if (const auto [name, more] = ordered_name(one); one.name == "front_objective")
      front.objective = results.experiments.find(name), more_objective = more;
    else if (one.name == "front_column")
      front.column = results.experiments.find(name), more_column = more;
  if (front.objective == nullptr || front.column == nullptr) return std::nullopt;
  if (front.objective->is_text() || front.column->is_text()) return std::nullopt;
  front.best = static_cast<std::size_t>(std::clamp(provenance_number(results, "best"), 1.0, 1e6));
  front.gap = provenance_number(results, "front_gap");
  front.rows = pareto_front(results, oriented(*front.column, more_column), oriented(*front.objective, !more_objective));
  if (front.rows.empty()) return std::nullopt;
  std::reverse(front.rows.begin(), front.rows.end());
  return front;
}

std::string front_text(const Results& results, const ProvenFront& front) {
  const auto counts = results.experiments.counts_of("status");
  const auto count_of = [&](const char* status) { return counts.count(status) > 0 ? counts.at(status) : 0; };
  std::string text = fmt::format(
      "the Pareto front of {} against {} is proven{}: {} on it, {} were simulated, and the lower bounds of {} others "
      "are "
      "behind them",
      front.objective->name, front.column->name, count_of("failed") > 0 ? " but for those that failed" : "",
      front.rows.size(), count_of("ran"), count_of("bounded"));
  if (front.best > 1) text += fmt::format("; so is all that fewer than {} others dominate", front.best);
  if (front.gap > 0)
    text += fmt::format("; something else may be better than what is no worse in {} by {:.2g} % at most",
                        front.column->name, 100 * front.gap);
  return text;
}

ValuesLeftBehind values_left_behind(const BestProof& proof) {
  constexpr std::size_t kMaxOfAxis = 6;
  std::vector<ProvenValue> behind;
  for (const ProvenValue& value : proof.values)
    if (value.simulated == 0) behind.push_back(value);
  ValuesLeftBehind result;
  for (auto begin = behind.begin(); begin != behind.end();) {
    const auto end =
        std::find_if(begin, behind.end(), [&](const ProvenValue& value) { return value.axis != begin->axis; });
    std::stable_sort(begin, end, [](const auto& a, const auto& b) { return a.margin > b.margin; });
    const auto count = std::min<std::ptrdiff_t>(end - begin, kMaxOfAxis);
    result.values.insert(result.values.end(), begin, begin + count);
    result.more += static_cast<std::size_t>(end - begin - count);
    begin = end;
  }
  return result;
}

Margins no_margins() {
  return {kNaN, kNaN, kNaN};
}

const char* name_of(ProofRung::Kind kind) {
  switch (kind) {
    case ProofRung::Kind::sums:
      return "sums over a micro-batch";
    case ProofRung::Kind::analytic:
      return "analytic steps";
    case ProofRung::Kind::simulated:
      return "simulated";
  }
  return "";
}

std::string margin_text(double margin) {
  return std::isnan(margin) ? kMissing : fmt::format("{:+.1f} %", 100 * margin);
}

}  // namespace manyworlds::io
