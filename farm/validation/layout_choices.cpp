#include "farm/validation/layout_choices.hpp"

#include <algorithm>
#include <map>

namespace manyworlds::farm {

using experiments::measured::TrainingStep;

std::vector<LayoutChoice> layout_choices(const std::vector<TrainingStep>& steps, const Comparison& comparison) {
  std::map<std::string, std::vector<ComparedRow>> compared;  // by family and group
  const auto key = [](const auto& row) { return row.family + "|" + row.comparison_group; };
  for (const ComparedRow& row : comparison.rows)
    if (!row.excluded_from_family) compared[key(row)].push_back(row);
  std::vector<LayoutChoice> result;
  std::map<std::string, std::size_t> index;  // into `result`
  for (const TrainingStep& step : steps) {
    const auto group = compared.find(key(step));
    if (group == compared.end() || step.measured_s <= 0) continue;
    const auto [known, is_new] = index.try_emplace(group->first, result.size());
    if (is_new)
      result.push_back(
          {step.family, step.choice, 0, groups_of(group->second).front().size(), ranking_accuracy_of(group->second)});
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
