#include "farm/validation/validation.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace manyworlds::farm {
namespace {

/// Returns the weighted median; the mean of the two middle values if exactly half of the weight lies below.
double median_of(std::vector<std::pair<double, double>> values_and_weights) {
  std::sort(values_and_weights.begin(), values_and_weights.end());
  double total = 0, below = 0;
  for (const auto& [value, weight] : values_and_weights) total += weight;
  for (std::size_t i = 0; i < values_and_weights.size(); ++i) {
    below += values_and_weights[i].second;
    const double excess = below - total / 2;
    if (std::abs(excess) < 1e-9 * total && i + 1 < values_and_weights.size())
      return (values_and_weights[i].first + values_and_weights[i + 1].first) / 2;
    if (excess > 0) return values_and_weights[i].first;
  }
  return 0;
}

using LayoutGroup = std::vector<MeanLayout>;

double regret(const LayoutGroup& layouts) {
  const auto measured = [](const MeanLayout& a, const MeanLayout& b) { return a.measured < b.measured; };
  const auto predicted = [](const MeanLayout& a, const MeanLayout& b) { return a.predicted < b.predicted; };
  return std::min_element(layouts.begin(), layouts.end(), predicted)->measured /
             std::min_element(layouts.begin(), layouts.end(), measured)->measured -
         1;
}

}  // namespace

std::vector<LayoutGroup> groups_of(const std::vector<ComparedRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::pair<MeanLayout, double>>> found;
  for (const ComparedRow& row : rows) {
    auto& [sum, count] = found[{row.family, row.comparison_group}][row.layout];
    sum.measured += row.measured;
    sum.predicted += row.predicted;
    count += 1;
  }
  std::vector<LayoutGroup> groups;
  for (const auto& [comparison_group, layouts] : found) {
    groups.emplace_back();
    for (const auto& [name, summed] : layouts)
      groups.back().push_back({summed.first.measured / summed.second, summed.first.predicted / summed.second});
  }
  return groups;
}

Errors errors_of(const std::vector<ComparedRow>& rows) {
  Errors result;
  result.rows = rows.size();
  double weights = 0;
  std::vector<std::pair<double, double>> absolute_errors;
  for (const ComparedRow& row : rows) {
    const double error = row.error();
    weights += row.weight;
    result.mean += row.weight * std::abs(error);
    result.bias += row.weight * error;
    result.max = std::max(result.max, std::abs(error));
    absolute_errors.emplace_back(std::abs(error), row.weight);
  }
  if (rows.empty()) return result;
  result.mean /= weights;
  result.bias /= weights;
  result.median = median_of(std::move(absolute_errors));
  return result;
}

RankingAccuracy ranking_accuracy_of(const std::vector<ComparedRow>& rows, double min_difference) {
  RankingAccuracy result;
  double regret_sum = 0;
  for (const LayoutGroup& layouts : groups_of(rows)) {
    if (layouts.size() < 2) continue;
    ++result.groups;
    const double group_regret = regret(layouts);
    regret_sum += group_regret;
    result.max_regret = std::max(result.max_regret, group_regret);
    for (std::size_t a = 0; a < layouts.size(); ++a)
      for (std::size_t b = a + 1; b < layouts.size(); ++b) {
        const auto& [fast, slow] = std::minmax(
            layouts[a], layouts[b], [](const MeanLayout& x, const MeanLayout& y) { return x.measured < y.measured; });
        if (slow.measured <= (1 + min_difference) * fast.measured) continue;
        ++result.pairs;
        if (fast.predicted < slow.predicted) ++result.correct;
      }
  }
  if (result.groups > 0) result.mean_regret = regret_sum / static_cast<double>(result.groups);
  return result;
}

std::vector<FamilyAccuracy> accuracy_by_family(const std::vector<ComparedRow>& rows) {
  std::vector<std::string> names;
  std::map<std::string, std::pair<std::vector<ComparedRow>, std::vector<ComparedRow>>> families;
  for (const ComparedRow& row : rows) {
    if (!families.count(row.family)) names.push_back(row.family);
    auto& [counted, excluded_from_family] = families[row.family];
    (row.excluded_from_family ? excluded_from_family : counted).push_back(row);
  }
  std::vector<FamilyAccuracy> accuracies;
  for (const std::string& name : names) {
    const auto& [counted, excluded_from_family] = families.at(name);
    accuracies.push_back({name, errors_of(counted), ranking_accuracy_of(counted), errors_of(excluded_from_family)});
  }
  return accuracies;
}

}  // namespace manyworlds::farm
