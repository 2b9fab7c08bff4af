#include "io/report/proof_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/results/number_format.hpp"

namespace manyworlds::io {
namespace {

std::string count(std::size_t number) {
  return group_digits(static_cast<double>(number));
}

const char* description_of(ProofRung::Kind kind) {
  switch (kind) {
    case ProofRung::Kind::sums:
      return "passes in their order, transfers without contention";
    case ProofRung::Kind::analytic:
      return "every kernel and transfer in its order, without contention";
    case ProofRung::Kind::simulated:
      return "the steps that are ranked; left behind are those that are not among the best";
  }
  return "";
}

/// Returns a number of others' results as a count of at most `most`.
std::size_t count_of_at_most(double number, std::size_t most) {
  return number > 0 ? static_cast<std::size_t>(std::min(number, static_cast<double>(most))) : 0;
}

/// Of results that do not tell what bounds an experiment.
std::vector<ProofRung> rungs_without_margins(const Results& results) {
  const auto counts = results.experiments.counts_of("status");
  const auto count_of = [&](const char* status) {
    const auto found = counts.find(status);
    return found == counts.end() ? std::size_t{0} : found->second;
  };
  const double best = provenance_number(results, "best"), analytic = provenance_number(results, "best_analytic");
  const std::size_t ran = count_of("ran"), fitting = ran + count_of("bounded") + count_of("failed"),
                    compiled = count_of_at_most(analytic, fitting);
  const std::size_t others = ran - count_of_at_most(best, ran);
  const Margins unknown = no_margins();
  return {{ProofRung::Kind::sums, fitting, fitting - compiled, unknown},
          {ProofRung::Kind::analytic, compiled, compiled - std::min(compiled, ran), unknown},
          {ProofRung::Kind::simulated, ran, others, unknown}};
}

TableBlock ladder(const Results& results, const std::optional<BestProof>& proof) {
  TableBlock lines{{{"rung", "looked at", "left behind", "worse by least", "median", "most", "what it is"}},
                   {true, false, false, false, false, false, true}};
  const auto add_of_space = [&](const char* rung, double looked_at, const char* what) {
    lines.lines.push_back({rung, group_digits(looked_at), kMissing, kMissing, kMissing, kMissing, what});
  };
  if (const double points = provenance_number(results, "space_points"); points > 0) {
    add_of_space("points of the axes", points, "every combination, valid or not");
    add_of_space("bounds of points and of groups of points", provenance_number(results, "space_bounds"),
                 "sums over a micro-batch; of a group, whatever ZeRO, recomputation and transport its points have");
  }
  for (const ProofRung& rung : proof ? proof->rungs : rungs_without_margins(results))
    lines.lines.push_back({name_of(rung.kind), count(rung.looked_at), count(rung.left_behind),
                           margin_text(rung.margins.least), margin_text(rung.margins.median),
                           margin_text(rung.margins.largest), description_of(rung.kind)});
  return lines;
}

/// Appends a front, if one is proven: what is on it, evenly thinned to a few.
void add_front(std::vector<Block>& to, const Results& results) {
  constexpr std::size_t kMaxRows = 12;
  const auto front = proven_front(results);
  if (!front) return;
  to.push_back(Heading{"The proven Pareto front", "proven-front", 3});
  std::string text = front_text(results, *front);
  text.front() = 'T';
  to.push_back(Paragraph{text + "."});
  const Axes axes(results);
  TableBlock lines{{{"experiment", front->objective->name, front->column->name, "layout"}},
                   {false, false, false, true}};
  const std::size_t shown = std::min(kMaxRows, front->rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t row = front->rows[shown == 1 ? 0 : i * (front->rows.size() - 1) / (shown - 1)];
    lines.lines.push_back({results.experiments.text_at("id", row),
                           format_value(*front->objective, front->objective->number_at(row)),
                           format_value(*front->column, front->column->number_at(row)), axes.layout(row)});
  }
  to.push_back(std::move(lines));
  if (shown < front->rows.size())
    to.push_back(Paragraph{fmt::format("{} of the {} on the front, evenly.", shown, front->rows.size())});
}

std::string proven_text(const Results& results) {
  const double best = provenance_number(results, "best"), gap = provenance_number(results, "best_gap");
  const auto counts = results.experiments.counts_of("status");
  return fmt::format(
      "Nothing else is better than the last of the best {}{}{}: every rung is a lower bound of the step time, and what "
      "it leaves behind is behind the results of the last.",
      best, gap > 0 ? fmt::format(" by more than {:.2g} %", 100 * gap) : "",
      counts.count("failed") > 0 ? ", but for experiments that failed" : "");
}

TableBlock table_of(const std::vector<ProvenValue>& values, const Column& objective) {
  TableBlock lines{{{"axis", "value", "experiments that fit", "none is better than", "worse by"}},
                   {true, true, false, false, false}};
  for (const ProvenValue& value : values)
    lines.lines.push_back({value.axis, value.value, count(value.fitting), format_value(objective, value.bound),
                           margin_text(value.margin)});
  return lines;
}

}  // namespace

std::vector<Block> proof_of_best(const Results& results, const std::optional<BestProof>& proof) {
  if (provenance_number(results, "best_analytic") == 0) return {};  // nobody asked, or it has not ended
  std::vector<Block> blocks{Heading{"Proof of the best", "proof"}, ladder(results, proof),
                            Paragraph{proven_text(results)}};
  add_front(blocks, results);
  if (!proof) return blocks;
  blocks.push_back(Paragraph{fmt::format(
      "Worse by: how far bounds, and of what was simulated results, are behind the last of the best, {} {}.",
      proof->objective.column->name, format_value(*proof->objective.column, proof->last))});
  blocks.push_back(Picture{Picture::Kind::proof, "proof-gap",
                           "the last of the best that are known, and the best bound of all others, by how many were "
                           "simulated"});
  const ValuesLeftBehind behind = values_left_behind(*proof);
  if (behind.values.empty()) return blocks;
  blocks.push_back(Heading{"Values that nothing simulated has", "", 3});
  blocks.push_back(table_of(behind.values, *proof->objective.column));
  if (behind.more > 0) blocks.push_back(Paragraph{fmt::format("and {} more values.", behind.more)});
  return blocks;
}

}  // namespace manyworlds::io
