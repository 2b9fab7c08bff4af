#include "farm/validation/validation.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace manyworlds::farm {
namespace {

/// Where half of the weight lies below; between two values where exactly half does.
double median_of(std::vector<std::pair<double, double>> values_and_weights) {
  std::sort(values_and_weights.begin(), values_and_weights.end());
  double whole = 0, below = 0;
  for (const auto& [value, weight] : values_and_weights) whole += weight;
  for (std::size_t i = 0; i < values_and_weights.size(); ++i) {
    below += values_and_weights[i].second;
    const double left = below - whole / 2;
    if (std::abs(left) < 1e-9 * whole && i + 1 < values_and_weights.size())
      return (values_and_weights[i].first + values_and_weights[i + 1].first) / 2;
    if (left > 0) return values_and_weights[i].first;
  }
  return 0;
}

using Layouts = std::vector<Layout>;

double regret(const Layouts& layouts) {
  const auto measured = [](const Layout& a, const Layout& b) { return a.measured < b.measured; };
  const auto predicted = [](const Layout& a, const Layout& b) { return a.predicted < b.predicted; };
  return std::min_element(layouts.begin(), layouts.end(), predicted)->measured /
             std::min_element(layouts.begin(), layouts.end(), measured)->measured -
         1;
}

}  // namespace

std::vector<Layouts> choices_of(const std::vector<Compared>& rows) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::pair<Layout, double>>> found;
  for (const Compared& row : rows) {
    auto& [sum, count] = found[{row.family, row.choice}][row.layout];
    sum.measured += row.measured;
    sum.predicted += row.predicted;
    count += 1;
  }
  std::vector<Layouts> choices;
  for (const auto& [choice, layouts] : found) {
    choices.emplace_back();
    for (const auto& [name, summed] : layouts)
      choices.back().push_back({summed.first.measured / summed.second, summed.first.predicted / summed.second});
  }
  return choices;
}

Errors errors_of(const std::vector<Compared>& rows) {
  Errors made;
  made.rows = rows.size();
  double weights = 0;
  std::vector<std::pair<double, double>> magnitudes;
  for (const Compared& row : rows) {
    const double error = row.error();
    weights += row.weight;
    made.mean += row.weight * std::abs(error);
    made.bias += row.weight * error;
    made.most = std::max(made.most, std::abs(error));
    magnitudes.emplace_back(std::abs(error), row.weight);
  }
  if (rows.empty()) return made;
  made.mean /= weights;
  made.bias /= weights;
  made.median = median_of(std::move(magnitudes));
  return made;
}

Order order_of(const std::vector<Compared>& rows, double apart) {
  Order made;
  double regrets = 0;
  for (const Layouts& layouts : choices_of(rows)) {
    if (layouts.size() < 2) continue;
    ++made.choices;
    const double lost = regret(layouts);
    regrets += lost;
    made.regret_most = std::max(made.regret_most, lost);
    for (std::size_t a = 0; a < layouts.size(); ++a)
      for (std::size_t b = a + 1; b < layouts.size(); ++b) {
        const auto& [fast, slow] = std::minmax(
            layouts[a], layouts[b], [](const Layout& x, const Layout& y) { return x.measured < y.measured; });
        if (slow.measured <= (1 + apart) * fast.measured) continue;
        ++made.pairs;
        if (fast.predicted < slow.predicted) ++made.right;
      }
  }
  if (made.choices > 0) made.regret_mean = regrets / static_cast<double>(made.choices);
  return made;
}

std::vector<FamilyFigures> figures_by_family(const std::vector<Compared>& rows) {
  std::vector<std::string> names;
  std::map<std::string, std::pair<std::vector<Compared>, std::vector<Compared>>> families;
  for (const Compared& row : rows) {
    if (!families.count(row.family)) names.push_back(row.family);
    auto& [counted, apart] = families[row.family];
    (row.apart ? apart : counted).push_back(row);
  }
  std::vector<FamilyFigures> figures;
  for (const std::string& name : names) {
    const auto& [counted, apart] = families.at(name);
    figures.push_back({name, errors_of(counted), order_of(counted), errors_of(apart)});
  }
  return figures;
}

}  // namespace manyworlds::farm
