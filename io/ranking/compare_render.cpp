// A comparison of two experiments as tables for people, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/escape.hpp"
#include "io/ranking/compare.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::io {
namespace {

using TextTable = std::vector<std::vector<std::string>>;

/// Aligns the first column to the left and the others to the right.
std::string in_columns(const TextTable& lines) {
  std::vector<bool> left_aligned(lines.front().size(), false);
  left_aligned.front() = true;
  return align_columns(lines, left_aligned, "  ");
}

std::string in_per_cent(std::optional<double> share) {
  if (!share) return kMissing;
  const double shown = std::round(1000 * *share) / 10;
  return fmt::format("{:.1f} %", shown == 0 ? 0 : shown);  // no -0.0
}

std::string shown(const ExperimentComparison::Metric& metric, std::size_t side) {
  const std::optional<double> value = metric.values[side];
  if (!value) return kMissing;
  if (is_share(metric.name)) return in_per_cent(value);
  if (std::isinf(*value)) return "infinite";
  if (metric.unit == "s" && *value >= kDaysThreshold_s) return days_text(*value);
  if (metric.unit == "s") return fmt::format("{:.6f} s", *value);
  if (metric.name == "train_usd") return group_digits(*value);
  if (metric.unit == "USD" || metric.unit == "J/token") return fmt::format("{:.4g}", *value);
  return fmt::format("{:.{}f}", *value, metric.unit == "tokens/s" ? 1 : 0);
}

std::string change_of(const ExperimentComparison::Metric& metric) {
  const auto& [a, b] = metric.values;
  if (!a || !b || std::isinf(*a) || std::isinf(*b)) return kMissing;
  if (is_share(metric.name)) return fmt::format("{:+.1f} points", 100 * (*b - *a));
  if (*a == 0) return *b == 0 ? "0.0 %" : kMissing;
  return fmt::format("{:+.1f} %", 100 * (*b / *a - 1));
}

/// Returns a side's parts rounded to whole units (thousandths of milliseconds, or of GiB) that add up to the rounded
/// total.
std::vector<std::int64_t> rounded(const ExperimentComparison::Decomposition& decomposition, std::size_t side,
                                  double unit) {
  std::vector<double> values;
  for (const ExperimentComparison::Part& part : decomposition.parts)
    values.push_back(static_cast<double>(part.values[side]) / unit);
  std::vector<std::int64_t> units;
  round_to_sum(values, std::llround(static_cast<double>(decomposition.total[side]) / unit), units);
  return units;
}

/// Returns whether parts have shares of the difference that mean something: of one that is small beside the totals,
/// parts of opposite signs would be many times as much.
bool shares_mean_something(const ExperimentComparison::Decomposition& decomposition) {
  constexpr double kMinDifference = 0.01;
  const auto larger = static_cast<double>(std::max(decomposition.total[0], decomposition.total[1]));
  return std::abs(static_cast<double>(decomposition.difference())) >= kMinDifference * larger;
}

/// Renders a table of parts: A, B, B - A and, unless `tie`, its share. Values are rounded to `decimals` so that columns
/// and rows add up as shown.
std::string parts_text(const std::string& title, const ExperimentComparison::Decomposition& decomposition, double unit,
                       int decimals, bool tie) {
  const bool with_shares = !tie && shares_mean_something(decomposition);
  const double scale = std::pow(10.0, decimals);
  const auto fixed = [&](std::int64_t units, bool sign) {
    const double value = static_cast<double>(units) / scale;
    return sign ? fmt::format("{:+.{}f}", value, decimals) : fmt::format("{:.{}f}", value, decimals);
  };
  const std::vector<std::int64_t> a = rounded(decomposition, 0, unit / scale),
                                  b = rounded(decomposition, 1, unit / scale);
  TextTable lines{{title, "A", "B", "B - A", "share of difference"}};
  for (std::size_t i = 0; i < decomposition.parts.size(); ++i)
    lines.push_back({decomposition.parts[i].name, fixed(a[i], false), fixed(b[i], false), fixed(b[i] - a[i], true),
                     with_shares ? in_per_cent(decomposition.share_of(decomposition.parts[i])) : kMissing});
  const auto sum = [](const std::vector<std::int64_t>& all) {
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
  };
  lines.push_back({"total", fixed(sum(a), false), fixed(sum(b), false), fixed(sum(b) - sum(a), true),
                   with_shares && decomposition.difference() != 0 ? "100.0 %" : kMissing});
  return in_columns(lines);
}

std::string distinction_text(const ExperimentComparison& comparison) {
  if (!comparison.time) return "";
  const char* faster = comparison.faster == 0 ? "A" : "B";
  const auto& total = comparison.time->total;
  const double slower_by = static_cast<double>(total[comparison.faster == 0 ? 1 : 0]) /
                           static_cast<double>(total[comparison.faster == 0 ? 0 : 1]);
  const std::string lead =
      slower_by == 1 ? "both are equally fast"
                     : fmt::format("{} is faster: the other takes {:.1f} % longer", faster, 100 * (slower_by - 1));
  switch (comparison.distinction) {
    case Distinction::indistinguishable:
      return lead + "; that is within model error: a tie\n";
    case Distinction::overlapping:
      return lead + "; probably so, though their 80 % intervals overlap\n";
    case Distinction::distinguishable:
      return lead + "; beyond model error, as their 80 % intervals do not overlap\n";
    default:
      return lead + "; the uncertainty is unknown\n";
  }
}

std::string settings_text(const ExperimentComparison& comparison) {
  TextTable lines{{"what differs", "A", "B"}};
  for (const ExperimentComparison::Setting& setting : comparison.differing)
    lines.push_back({setting.name, setting.values[0], setting.values[1]});
  std::string text = comparison.differing.empty() ? "  no axis differs\n" : in_columns(lines);
  if (comparison.common.empty()) return text;
  text += "  both:";
  for (const ExperimentComparison::Setting& setting : comparison.common)
    text += fmt::format(" {}={}", core::line_text(setting.name), core::line_text(setting.values[0]));
  return text + "\n";
}

TextTable metric_lines(const ExperimentComparison& comparison) {
  TextTable lines{{"metric", "A", "B", "B - A"}};
  lines.push_back({"status", comparison.status[0], comparison.status[1], ""});
  const auto row = [&](const ExperimentComparison::Metric& metric, const char* title) {
    if (metric.values[0] || metric.values[1])
      lines.push_back({title, shown(metric, 0), shown(metric, 1), change_of(metric)});
  };
  row(comparison.metrics[0], "step time");
  row(comparison.metrics[1], "80 % interval from");
  row(comparison.metrics[2], "to");
  row(comparison.metrics[3], "tokens/s/GPU");
  row(comparison.metrics[4], "MFU");
  row(comparison.metrics[5], "GPU energy/token, J");
  row(comparison.metrics[6], "facility energy/token, J");
  row(comparison.metrics[7], "USD/million tokens");
  row(comparison.metrics[8], "goodput");
  row(comparison.metrics[9], "time to train");
  row(comparison.metrics[10], "USD to train");
  const auto bound = [&](std::size_t side) {
    return comparison.largest_loss[side].empty()
               ? std::string(kMissing)
               : fmt::format("{} {:.0f} %", comparison.largest_loss[side], 100 * comparison.largest_loss_share[side]);
  };
  if (!comparison.largest_loss[0].empty() || !comparison.largest_loss[1].empty())
    lines.push_back({"largest loss", bound(0), bound(1), ""});
  row(comparison.network[0], "link-hops");
  row(comparison.network[1], "packets marked");
  row(comparison.network[2], "pauses");
  row(comparison.network[3], "busiest network link");
  return lines;
}

nlohmann::ordered_json json_of(const std::vector<ExperimentComparison::Metric>& metrics) {
  nlohmann::ordered_json result;
  const auto value = [](std::optional<double> one) { return one ? nlohmann::ordered_json(*one) : nullptr; };
  for (const ExperimentComparison::Metric& metric : metrics)
    result[metric.name] = {{"unit", metric.unit}, {"a", value(metric.values[0])}, {"b", value(metric.values[1])}};
  return result;
}

nlohmann::ordered_json json_of(const std::vector<ExperimentComparison::Setting>& settings) {
  nlohmann::ordered_json result = nlohmann::ordered_json::array();
  for (const ExperimentComparison::Setting& setting : settings)
    result.push_back({{"name", setting.name}, {"a", setting.values[0]}, {"b", setting.values[1]}});
  return result;
}

nlohmann::ordered_json json_of(const std::optional<ExperimentComparison::Decomposition>& decomposition,
                               const char* unit) {
  if (!decomposition) return nullptr;
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const ExperimentComparison::Part& part : decomposition->parts) {
    const auto share = decomposition->share_of(part);
    parts.push_back({{"name", part.name},
                     {"a", part.values[0]},
                     {"b", part.values[1]},
                     {"difference", part.difference()},
                     {"share", share ? nlohmann::ordered_json(*share) : nullptr}});
  }
  return {{"unit", unit},
          {"a", decomposition->total[0]},
          {"b", decomposition->total[1]},
          {"difference", decomposition->difference()},
          {"parts", std::move(parts)}};
}

}  // namespace

std::string render_text(const ExperimentComparison& comparison) {
  std::string text = fmt::format("experiments {} (A) and {} (B)\n", comparison.ids[0], comparison.ids[1]);
  text += settings_text(comparison) + "\n" + in_columns(metric_lines(comparison));
  for (std::size_t side = 0; side < 2; ++side)
    if (!comparison.reason[side].empty())
      text += fmt::format("  {}: {}\n", side == 0 ? "A" : "B", core::line_text(comparison.reason[side]));
  if (comparison.time && (comparison.is_bound(0) || comparison.is_bound(1)))
    text += fmt::format("{} of analytic fidelity: a lower bound of the step time\n",
                        comparison.is_bound(0) && comparison.is_bound(1) ? "A and B are"
                        : comparison.is_bound(0)                         ? "A is"
                                                                         : "B is");
  text += distinction_text(comparison);
  if (comparison.time)
    text += "\n" + parts_text("where the time went, s", *comparison.time, 1e12, 6,
                              comparison.distinction == Distinction::indistinguishable);
  if (comparison.memory)
    text +=
        "\n" + parts_text("memory of the peak rank, GiB", *comparison.memory, static_cast<double>(1 << 30), 3, false);
  return text;
}

std::string render_json(const ExperimentComparison& comparison) {
  const auto side = [&](std::size_t which) {
    return nlohmann::ordered_json{{"id", comparison.ids[which]},
                                  {"status", comparison.status[which]},
                                  {"reason", comparison.reason[which]},
                                  {"fidelity", comparison.fidelity[which]},
                                  {"largest_loss", comparison.largest_loss[which]},
                                  {"largest_loss_share", comparison.largest_loss_share[which]}};
  };
  const nlohmann::ordered_json all{{"a", side(0)},
                                   {"b", side(1)},
                                   {"differing", json_of(comparison.differing)},
                                   {"common", json_of(comparison.common)},
                                   {"faster", !comparison.time         ? nlohmann::ordered_json(nullptr)
                                              : comparison.faster == 0 ? "a"
                                                                       : "b"},
                                   {"distinction", name_of(comparison.distinction)},
                                   {"metrics", json_of(comparison.metrics)},
                                   {"time", json_of(comparison.time, "ps")},
                                   {"memory", json_of(comparison.memory, "bytes")},
                                   {"network", json_of(comparison.network)}};
  return all.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace manyworlds::io
