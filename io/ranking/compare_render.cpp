// Two experiments as tables for people, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/escape.hpp"
#include "io/ranking/compare.hpp"
#include "io/results/figures.hpp"

namespace manyworlds::io {
namespace {

using Lines = std::vector<std::vector<std::string>>;

/// The first column from the left, the others from the right.
std::string in_columns(const Lines& lines) {
  std::vector<bool> left(lines.front().size(), false);
  left.front() = true;
  return aligned(lines, left, "  ");
}

std::string in_per_cent(std::optional<double> share) {
  if (!share) return kMissing;
  const double shown = std::round(1000 * *share) / 10;
  return fmt::format("{:.1f} %", shown == 0 ? 0 : shown);  // no -0.0
}

std::string shown(const Contrast::Figure& figure, std::size_t side) {
  const std::optional<double> value = figure.values[side];
  if (!value) return kMissing;
  if (is_share(figure.name)) return in_per_cent(value);
  if (std::isinf(*value)) return "infinite";
  if (figure.unit == "s" && *value >= kDays) return in_days(*value);
  if (figure.unit == "s") return fmt::format("{:.6f} s", *value);
  if (figure.name == "train_usd") return grouped(*value);
  if (figure.unit == "USD" || figure.unit == "J/token") return fmt::format("{:.4g}", *value);
  return fmt::format("{:.{}f}", *value, figure.unit == "tokens/s" ? 1 : 0);
}

std::string change_of(const Contrast::Figure& figure) {
  const auto& [a, b] = figure.values;
  if (!a || !b || std::isinf(*a) || std::isinf(*b)) return kMissing;
  if (is_share(figure.name)) return fmt::format("{:+.1f} points", 100 * (*b - *a));
  if (*a == 0) return *b == 0 ? "0.0 %" : kMissing;
  return fmt::format("{:+.1f} %", 100 * (*b / *a - 1));
}

/// Thousandths of milliseconds, or of GiB, that add up as the parts do.
std::vector<std::int64_t> rounded(const Contrast::Whole& whole, std::size_t side, double unit) {
  std::vector<double> values;
  for (const Contrast::Part& part : whole.parts) values.push_back(static_cast<double>(part.values[side]) / unit);
  std::vector<std::int64_t> units;
  round_to_sum(values, std::llround(static_cast<double>(whole.total[side]) / unit), units);
  return units;
}

/// A table of parts: A, B, B - A and its share. Figures are cut to `decimals` so that columns and rows add up as shown.
std::string parts_text(const std::string& title, const Contrast::Whole& whole, double unit, int decimals) {
  const double scale = std::pow(10.0, decimals);
  const auto fixed = [&](std::int64_t units, bool sign) {
    const double value = static_cast<double>(units) / scale;
    return sign ? fmt::format("{:+.{}f}", value, decimals) : fmt::format("{:.{}f}", value, decimals);
  };
  const std::vector<std::int64_t> a = rounded(whole, 0, unit / scale), b = rounded(whole, 1, unit / scale);
  Lines lines{{title, "A", "B", "B - A", "of the difference"}};
  for (std::size_t i = 0; i < whole.parts.size(); ++i)
    lines.push_back({whole.parts[i].name, fixed(a[i], false), fixed(b[i], false), fixed(b[i] - a[i], true),
                     in_per_cent(whole.share_of(whole.parts[i]))});
  const auto sum = [](const std::vector<std::int64_t>& all) {
    return std::accumulate(all.begin(), all.end(), std::int64_t{0});
  };
  lines.push_back({"all of it", fixed(sum(a), false), fixed(sum(b), false), fixed(sum(b) - sum(a), true),
                   whole.difference() == 0 ? kMissing : "100.0 %"});
  return in_columns(lines);
}

std::string apart_text(const Contrast& contrast) {
  if (!contrast.time) return "";
  const char* faster = contrast.faster == 0 ? "A" : "B";
  const auto& total = contrast.time->total;
  const double slower_by = static_cast<double>(total[contrast.faster == 0 ? 1 : 0]) /
                           static_cast<double>(total[contrast.faster == 0 ? 0 : 1]);
  const std::string lead =
      slower_by == 1 ? "both are as fast"
                     : fmt::format("{} is faster: the other takes {:.1f} % longer", faster, 100 * (slower_by - 1));
  switch (contrast.apart) {
    case Apart::not_told:
      return lead + "; that is within model error: a tie, as far as is known\n";
    case Apart::overlapping:
      return lead + "; probably so, though their 80 % intervals overlap\n";
    case Apart::told:
      return lead + "; beyond model error, as their 80 % intervals do not overlap\n";
    default:
      return lead + "; how sure that is is not known\n";
  }
}

std::string settings_text(const Contrast& contrast) {
  Lines lines{{"what differs", "A", "B"}};
  for (const Contrast::Setting& setting : contrast.differing)
    lines.push_back({setting.name, setting.values[0], setting.values[1]});
  std::string text = contrast.differing.empty() ? "  no axis differs\n" : in_columns(lines);
  if (contrast.common.empty()) return text;
  text += "  both:";
  for (const Contrast::Setting& setting : contrast.common)
    text += fmt::format(" {}={}", core::line_text(setting.name), core::line_text(setting.values[0]));
  return text + "\n";
}

Lines figures_lines(const Contrast& contrast) {
  Lines lines{{"figures", "A", "B", "B - A"}};
  lines.push_back({"status", contrast.status[0], contrast.status[1], ""});
  const auto row = [&](const Contrast::Figure& figure, const char* title) {
    if (figure.values[0] || figure.values[1])
      lines.push_back({title, shown(figure, 0), shown(figure, 1), change_of(figure)});
  };
  row(contrast.figures[0], "step time");
  row(contrast.figures[1], "80 % interval from");
  row(contrast.figures[2], "to");
  row(contrast.figures[3], "tokens/s/GPU");
  row(contrast.figures[4], "MFU");
  row(contrast.figures[5], "J of the GPUs/token");
  row(contrast.figures[6], "J of the building/token");
  row(contrast.figures[7], "USD/million tokens");
  row(contrast.figures[8], "goodput");
  row(contrast.figures[9], "time to train");
  row(contrast.figures[10], "USD to train");
  const auto bound = [&](std::size_t side) {
    return contrast.lost_to[side].empty()
               ? std::string(kMissing)
               : fmt::format("{} {:.0f} %", contrast.lost_to[side], 100 * contrast.lost_share[side]);
  };
  if (!contrast.lost_to[0].empty() || !contrast.lost_to[1].empty())
    lines.push_back({"largest loss", bound(0), bound(1), ""});
  row(contrast.network[0], "link-hops");
  row(contrast.network[1], "packets marked");
  row(contrast.network[2], "pauses");
  row(contrast.network[3], "busiest network link");
  return lines;
}

nlohmann::ordered_json json_of(const std::vector<Contrast::Figure>& figures) {
  nlohmann::ordered_json made;
  const auto value = [](std::optional<double> one) { return one ? nlohmann::ordered_json(*one) : nullptr; };
  for (const Contrast::Figure& figure : figures)
    made[figure.name] = {{"unit", figure.unit}, {"a", value(figure.values[0])}, {"b", value(figure.values[1])}};
  return made;
}

nlohmann::ordered_json json_of(const std::vector<Contrast::Setting>& settings) {
  nlohmann::ordered_json made = nlohmann::ordered_json::array();
  for (const Contrast::Setting& setting : settings)
    made.push_back({{"name", setting.name}, {"a", setting.values[0]}, {"b", setting.values[1]}});
  return made;
}

nlohmann::ordered_json json_of(const std::optional<Contrast::Whole>& whole, const char* unit) {
  if (!whole) return nullptr;
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (const Contrast::Part& part : whole->parts) {
    const auto share = whole->share_of(part);
    parts.push_back({{"name", part.name},
                     {"a", part.values[0]},
                     {"b", part.values[1]},
                     {"difference", part.difference()},
                     {"share", share ? nlohmann::ordered_json(*share) : nullptr}});
  }
  return {{"unit", unit},
          {"a", whole->total[0]},
          {"b", whole->total[1]},
          {"difference", whole->difference()},
          {"parts", std::move(parts)}};
}

}  // namespace

std::string render_text(const Contrast& contrast) {
  std::string text = fmt::format("experiments {} (A) and {} (B)\n", contrast.ids[0], contrast.ids[1]);
  text += settings_text(contrast) + "\n" + in_columns(figures_lines(contrast));
  for (std::size_t side = 0; side < 2; ++side)
    if (!contrast.reason[side].empty())
      text += fmt::format("  {}: {}\n", side == 0 ? "A" : "B", core::line_text(contrast.reason[side]));
  if (contrast.time && (contrast.analytic[0] || contrast.analytic[1]))
    text += fmt::format("{} of analytic fidelity: a lower bound of the step time\n",
                        contrast.analytic[0] && contrast.analytic[1] ? "A and B are"
                        : contrast.analytic[0]                       ? "A is"
                                                                     : "B is");
  text += apart_text(contrast);
  if (contrast.time) text += "\n" + parts_text("where the time went, s", *contrast.time, 1e12, 6);
  if (contrast.memory)
    text += "\n" + parts_text("memory of the peak rank, GiB", *contrast.memory, static_cast<double>(1 << 30), 3);
  return text;
}

std::string render_json(const Contrast& contrast) {
  const auto side = [&](std::size_t which) {
    return nlohmann::ordered_json{
        {"id", contrast.ids[which]},          {"status", contrast.status[which]},
        {"reason", contrast.reason[which]},   {"fidelity", contrast.analytic[which] ? "analytic" : "packet"},
        {"lost_to", contrast.lost_to[which]}, {"lost_share", contrast.lost_share[which]}};
  };
  const nlohmann::ordered_json all{{"a", side(0)},
                                   {"b", side(1)},
                                   {"differing", json_of(contrast.differing)},
                                   {"common", json_of(contrast.common)},
                                   {"faster", !contrast.time         ? nlohmann::ordered_json(nullptr)
                                              : contrast.faster == 0 ? "a"
                                                                     : "b"},
                                   {"apart", name_of(contrast.apart)},
                                   {"figures", json_of(contrast.figures)},
                                   {"time", json_of(contrast.time, "ps")},
                                   {"memory", json_of(contrast.memory, "bytes")},
                                   {"network", json_of(contrast.network)}};
  return all.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace manyworlds::io
