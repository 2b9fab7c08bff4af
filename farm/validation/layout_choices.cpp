#include "farm/validation/layout_choices.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace manyworlds::farm {

using experiments::measured::TrainingStep;

namespace {

/// Returns the accuracy of ranking the group's layouts, with the regret of picking among those that are predicted to
/// fit into memory, as a search does: the measured best may be another.
RankingAccuracy ranking_with_picks(const std::vector<ComparedRow>& group, const std::set<std::string>& too_large) {
  RankingAccuracy result = ranking_accuracy_of(group);
  std::vector<ComparedRow> picks = group;
  for (ComparedRow& row : picks)
    if (too_large.count(row.id)) row.predicted = std::numeric_limits<double>::infinity();
  const bool some_fit =
      std::any_of(group.begin(), group.end(), [&](const ComparedRow& row) { return too_large.count(row.id) == 0; });
  if (!some_fit) return result;
  const RankingAccuracy of_picks = ranking_accuracy_of(picks);
  result.mean_regret = of_picks.mean_regret, result.max_regret = of_picks.max_regret;
  return result;
}

}  // namespace

std::vector<LayoutChoice> layout_choices(const std::vector<TrainingStep>& steps, const Comparison& comparison) {
  std::map<std::string, std::vector<ComparedRow>> compared;  // by family and group
  const auto key = [](const auto& row) { return row.family + "|" + row.comparison_group; };
  for (const ComparedRow& row : comparison.rows)
    if (!row.excluded_from_family) compared[key(row)].push_back(row);
  std::set<std::string> too_large;
  for (const TrainingStep& step : steps)
    if (!step.fits_memory) too_large.insert(step.id);
  std::vector<LayoutChoice> result;
  std::map<std::string, std::size_t> index;  // into `result`
  for (const TrainingStep& step : steps) {
    const auto group = compared.find(key(step));
    if (group == compared.end() || step.measured_s <= 0) continue;
    const auto [known, is_new] = index.try_emplace(group->first, result.size());
    if (is_new)
      result.push_back({step.family, step.choice, 0, groups_of(group->second).front().size(),
                        ranking_with_picks(group->second, too_large)});
    ++result[known->second].measured;
  }
  std::erase_if(result, [](const LayoutChoice& one) { return one.compared < kMinLayouts; });
  return result;
}

double good_picks(const std::vector<LayoutChoice>& choices) {
  const auto good = std::count_if(choices.begin(), choices.end(),
                                  [](const LayoutChoice& one) { return one.ranking.max_regret <= kGoodPick; });
  return choices.empty() ? 0 : static_cast<double>(good) / static_cast<double>(choices.size());
}

std::vector<RunVerdicts> run_verdicts(const std::vector<TrainingStep>& steps) {
  std::map<std::string, RunVerdicts> result;
  for (const TrainingStep& step : steps) {
    if (!step.ran) continue;
    RunVerdicts& verdicts = result.try_emplace(step.family, RunVerdicts{step.family}).first->second;
    (*step.ran ? verdicts.ran : verdicts.failed) += 1;
    if (*step.ran == step.fits_memory) (*step.ran ? verdicts.ran_right : verdicts.failed_right) += 1;
  }
  std::vector<RunVerdicts> list;
  for (auto& [family, verdicts] : result) list.push_back(std::move(verdicts));
  return list;
}

}  // namespace manyworlds::farm
