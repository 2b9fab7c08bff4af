// The report of a calibration, for people.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "farm/calibration/calibrated_catalog.hpp"

namespace manyworlds::farm {
namespace {

constexpr double kWorse = 0.005;  // a mean error that grows by more is told

double percent(double share) {
  return 100 * share;
}

std::vector<std::string> kinds_of(const CalibratedPart& part) {
  std::vector<std::string> kinds;
  for (const CalibratedRow& row : part.rows)
    if (std::find(kinds.begin(), kinds.end(), row.kind) == kinds.end()) kinds.push_back(row.kind);
  return kinds;
}

std::string error_line(const CalibratedPart& part, const std::string& kind) {
  const Errors before = errors_of(part, kind, Prediction::before), after = errors_of(part, kind, Prediction::after);
  const Errors left_out = errors_of(part, kind, Prediction::left_out);
  return fmt::format("  {:<44} {:>5} {:>9.1f} {:>9.1f} {:>9.1f}{}\n", kind.empty() ? "all" : kind, before.rows,
                     percent(before.mean), percent(after.mean), percent(left_out.mean),
                     after.mean > before.mean + kWorse ? "  worse than before" : "");
}

std::string how_left_out(const CalibratedPart& part) {
  const std::size_t fitted_to = part.fitted_rows();
  const std::size_t others = part.rows.size() - fitted_to;
  std::string text = fitted_to <= experiments::fitting::kLeaveOneOutRows
                         ? "left out: each row by itself"
                         : fmt::format("left out: every {}th row together", experiments::fitting::kFolds);
  if (others > 0)
    text += fmt::format("; {} rows of models with experts or a list of layers are predicted and not fitted to", others);
  return text + "\n";
}

std::string constants_text(const CalibratedPart& part) {
  std::string text;
  for (const CalibratedConstant& one : part.fitted)
    text += fmt::format(
        "  {:<36} {:>9.4g} -> {:>9.4g}  +- {:.1f} %{}\n", one.key, one.before, one.after, percent(one.relative_error),
        one.at_limit ? "  at the limit of its range: a peak, or a rate of the links, may be wrong" : "");
  if (!part.taken && !part.fitted.empty())
    text += fmt::format(
        "  not taken, all values stay: rows left out would be {:.1f} % off, and are {:.1f} % off without\n",
        percent(errors_of(part, "", Prediction::left_out).mean), percent(errors_of(part, "", Prediction::before).mean));
  if (!part.kept.empty())
    text += fmt::format("  stay as they were, these rows do not determine them:\n    {}\n", fmt::join(part.kept, " "));
  return text;
}

std::string omitted_text(const CalibratedPart& part) {
  std::map<std::pair<std::string, std::string>, std::size_t> counted;
  for (const OmittedRow& one : part.omitted)
    ++counted[{one.reason, one.detail.size() > 60 ? std::string() : one.detail}];
  std::vector<std::pair<std::size_t, std::string>> lines;
  for (const auto& [reason, count] : counted)
    lines.emplace_back(count, reason.first + (reason.second.empty() ? "" : fmt::format(" ({})", reason.second)));
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr std::size_t kMaxLines = 12;
  std::string text;
  std::size_t others = 0;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (i < kMaxLines)
      text += fmt::format("  {} left out: {}\n", lines[i].first, lines[i].second);
    else
      others += lines[i].first;
  if (others > 0) text += fmt::format("  {} left out for {} other reasons\n", others, lines.size() - kMaxLines);
  return text;
}

std::string part_text(const CalibratedPart& part) {
  if (part.rows.empty() && part.omitted.empty()) return {};
  if (part.rows.empty()) return fmt::format("{}: no row can be predicted\n{}\n", part.title, omitted_text(part));
  std::string text = fmt::format("{:<46} {:>5} {:>9} {:>9} {:>9}\n", part.title + " (mean errors in %)", "rows",
                                 "before", "after", "left out");
  const std::vector<std::string> kinds = kinds_of(part);
  for (const std::string& kind : kinds) text += error_line(part, kind);
  if (kinds.size() > 1) text += error_line(part, "");
  return text + how_left_out(part) + constants_text(part) + omitted_text(part) + "\n";
}

}  // namespace

std::string calibration_text(const CalibratedMachine& machine) {
  std::string text;
  for (const std::string& note : machine.files.notes) text += fmt::format("note: {}\n", note);
  for (const CalibratedPart* part : {&machine.kernels, &machine.collectives, &machine.steps}) text += part_text(*part);
  return text;
}

}  // namespace manyworlds::farm
