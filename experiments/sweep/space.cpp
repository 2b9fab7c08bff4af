#include "experiments/sweep/space.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/sweep/positions.hpp"
#include "experiments/validity/validity.hpp"

namespace manyworlds::experiments {

Space::Space(const std::string& text, const std::string& file, const std::vector<std::string>& overrides,
             const Catalog& catalog, const ReadOptions& options)
    : catalog_(std::make_unique<const ExtendedCatalog>(catalog, text, file, overrides)),
      options_(options),
      reader_(file, catalog_->get(), options) {
  reader_.read(text, overrides);
  for (const Factor& factor : reader_.factors()) {
    sizes_.push_back(factor.size());
    open_keys_.push_back(experiments::open_keys_of(factor));
  }
}

bool Space::has_any() const {
  const std::vector<Factor>& all = reader_.factors();
  return std::any_of(all.begin(), all.end(), [](const Factor& factor) { return factor.axes.front().any; });
}

double Space::points() const {
  return points_of(Point(factors(), kOpen));
}

double Space::points_of(const Point& point) const {
  double count = 1;
  for (std::size_t factor = 0; factor < point.size(); ++factor)
    if (point[factor] == kOpen && !is_any(factor)) count *= static_cast<double>(sizes_[factor]);
  return count;
}

OpenKeys Space::open_keys_of(const Point& point) const {
  OpenKeys result;
  for (std::size_t factor = 0; factor < point.size(); ++factor)
    if (point[factor] == kOpen) result |= open_keys_[factor].value();
  return result;
}

Settings Space::Viewer::settings_of(const Point& point) {
  SweepReader::Chosen chosen;
  for (const std::uint32_t value : point) chosen.push_back(value == kOpen ? 0 : value);
  return space_.reader_.settings_of(chosen, space_.open_keys_of(point), borrower_);
}

std::string Space::Viewer::why_excluded(const Point& point, const Settings& settings) {
  const OpenKeys open = space_.open_keys_of(point);
  for (const Constraint& constraint : constraints_)
    if (!constraint.depends_on(open) && !constraint.holds(settings)) return "where: " + constraint.text();
  if (const std::string missing = missing_positions(settings, space_.options_.scope); !missing.empty())
    return fmt::format("{}: {}", kPositionsRule, missing);
  const auto violation =
      find_violation(config_reader_.read(settings, space_.reader_.inputs()), graphs_, space_.options_.scope);
  return violation ? violation->rule + ": " + violation->reason : "";
}

std::string Space::Viewer::why_excluded(const Point& point) {
  return why_excluded(point, settings_of(point));
}

std::optional<Experiment> Space::Viewer::experiment_of(const Point& point) {
  Experiment result;
  result.settings = settings_of(point);
  result.inputs = space_.reader_.inputs();
  if (!why_excluded(point, result.settings).empty()) return std::nullopt;
  return result;
}

core::step::Configuration Space::Viewer::configuration_of(const Experiment& experiment) {
  return configure(experiment, graphs_, config_reader_);
}

Sweep Space::list(std::vector<Point> points) && {
  std::sort(points.begin(), points.end());
  std::vector<SweepReader::Chosen> chosen;
  for (const Point& point : points) chosen.emplace_back(point.begin(), point.end());
  return reader_.list(chosen);
}

}  // namespace manyworlds::experiments
