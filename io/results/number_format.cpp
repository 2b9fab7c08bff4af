#include "io/results/number_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/base/escape.hpp"
#include "io/results/known_value.hpp"

namespace manyworlds::io {

std::string with_si_prefix(double value, const std::string& unit) {
  struct Prefix {
    double scale;
    const char* name;
  };
  constexpr std::array<Prefix, 9> kPrefixes{
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}, {1e-12, "p"}}};
  const Prefix* prefix = &kPrefixes[4];
  if (value != 0)
    prefix = std::find_if(kPrefixes.begin(), kPrefixes.end() - 1,
                          [&](const Prefix& each) { return std::abs(value) >= each.scale * 0.99995; });
  const double scaled = value / prefix->scale;
  const double size = std::abs(scaled) * 1.00005;
  const int decimals = size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0;
  const std::string suffix = prefix->name + unit;
  return fmt::format("{:.{}f}{}{}", scaled, decimals, suffix.empty() ? "" : " ", suffix);
}

std::string days_text(double seconds) {
  return fmt::format("{:.1f} days", seconds / 86'400);
}

std::string mfu_peak_text(const Table& experiments, std::size_t row) {
  const Column *precision = experiments.find("precision"), *peak = experiments.find("mfu_peak_tflops"),
               *mfu = experiments.find("mfu");
  if (precision == nullptr || peak == nullptr || mfu == nullptr) return "";
  if (!std::isfinite(peak->number_at(row)) || !std::isfinite(mfu->number_at(row))) return "";
  return fmt::format("the {} peak of {:.5g} TFLOP/s", precision->text_at(row), peak->number_at(row));
}

std::string fluid_error_text(const Table& experiments, const std::vector<std::size_t>& rows) {
  const auto number = [&](const char* name, std::size_t row) {
    const Column* column = experiments.find(name);
    return column != nullptr ? column->number_at(row) : std::nan("");
  };
  double steps = 0, contended = 0, sampled = 0, mean = 0, bias = 0, max = 0, step = 0;
  for (const std::size_t row : rows) {
    if (!(number("fluid_contended", row) >= 0) || experiments.text_at("fidelity", row) != "fluid") continue;
    ++steps;
    contended += number("fluid_contended", row);
    const double samples = number("fluid_sampled", row);
    if (samples == 0) continue;
    sampled += samples;
    mean += samples * number("fluid_error_mean", row), bias += samples * number("fluid_error_bias", row);
    max = std::max(max, number("fluid_error_max", row));
    step = std::max(step, number("fluid_step_error", row));
  }
  if (steps == 0) return "";
  if (contended == 0) return "as fluids: no collectives shared links";
  const std::string text =
      fmt::format("as fluids: {} collectives were slower for sharing links", group_digits(contended));
  if (sampled == 0) return text + "; none was simulated in packets as well, so the error is unknown";
  return text + fmt::format(
                    "; {} of them, drawn, were simulated in packets too: as fluids they are off by {:.1f} % on average "
                    "({:.1f} % too {}), {:.1f} % at most; if all took longer by that mean, {} {:.2f} % longer",
                    group_digits(sampled), 100 * mean / sampled, 100 * std::abs(bias / sampled),
                    bias < 0 ? "short" : "long", 100 * max,
                    steps == 1 ? "the step would take" : "steps would take up to", 100 * step);
}

bool is_share(std::string_view column) {
  return column == "mfu" || column.starts_with("goodput") || column.ends_with("_share") ||
         column.starts_with("time_by_") || column == "time_measured" || column == "time_interpolated" ||
         column == "time_modelled" || column == "time_guessed";
}

std::string format_value(const Column& column, double value) {
  if (std::isnan(value)) return kMissing;
  if (std::isinf(value)) return "infinite";
  if (column.unit == "bytes") return fmt::format("{:.1f} GiB", value / (1 << 30));
  if (column.name == "budget_loss") return fmt::format("{:.4f}", value);
  if (is_share(column.name)) return fmt::format("{:.1f} %", value * 100);
  if (column.unit == "USD" && std::abs(value) >= 99.95) return group_digits(value) + " USD";
  if (column.unit == "USD") return fmt::format("{:#.3g} USD", value);
  if (column.unit == "s" && value >= kDaysThreshold_s) return days_text(value);
  return with_si_prefix(value, column.unit == "s" || column.unit == "J/token" ? column.unit : "");
}

std::string format_cell(const Column* column, std::size_t row) {
  if (column == nullptr) return kMissing;
  if (column->is_text()) return column->text_at(row);
  return is_known(*column, row) ? format_value(*column, column->number_at(row)) : kMissing;
}

std::string format_guesses(const Table& experiments, const std::vector<std::size_t>& rows) {
  const Column *low = experiments.find("step_time_guesses_low"), *high = experiments.find("step_time_guesses_high");
  if (low == nullptr || high == nullptr) return kMissing;
  double least = 1, greatest = 1;
  for (const std::size_t row : rows) {
    least = std::min(least, low->number_at(row));
    greatest = std::max(greatest, high->number_at(row));
  }
  if (least == 1 && greatest == 1) return "";
  return fmt::format("{:.1f} % to +{:.1f} %", 100 * (least - 1), 100 * (greatest - 1));
}

std::string format_interval(const Table& experiments, std::size_t row) {
  const Column *low = experiments.find("step_time_low_s"), *high = experiments.find("step_time_high_s");
  if (low == nullptr || high == nullptr || !std::isfinite(low->number_at(row)) || !std::isfinite(high->number_at(row)))
    return kMissing;
  const std::string top = format_cell(high, row);
  const double scale = high->number_at(row) / std::stod(top);
  const auto point = top.find('.'), unit = std::min(top.find(' '), top.size());
  const std::size_t decimals = point == std::string::npos ? 0 : unit - point - 1;
  return fmt::format("{:.{}f}-{}", low->number_at(row) / scale, decimals, top);
}

std::string group_digits(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (std::size_t at = digits.size(); at > 3 && digits[at - 4] != '-';) digits.insert(at -= 3, ",");
  return digits;
}

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string align_columns(const std::vector<std::vector<std::string>>& lines, const std::vector<bool>& left_aligned,
                          const std::string& margin) {
  std::vector<std::size_t> widths(left_aligned.size(), 0);
  auto cells = lines;
  for (auto& line : cells)
    for (std::size_t i = 0; i < line.size(); ++i) {
      line[i] = core::line_text(line[i]);
      widths[i] = std::max(widths[i], display_width(line[i]));
    }
  std::string text;
  for (const auto& line : cells) {
    std::string whole = margin;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string blanks(widths[i] - display_width(line[i]), ' ');
      whole += (i == 0 ? "" : "  ") + (left_aligned[i] ? line[i] + blanks : blanks + line[i]);
    }
    text += whole.substr(0, whole.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::int64_t round_to_sum(const std::vector<double>& values, std::int64_t total, std::vector<std::int64_t>& units) {
  units.clear();
  for (const double value : values) units.push_back(static_cast<std::int64_t>(std::floor(value)));
  const std::int64_t remainder = total - std::accumulate(units.begin(), units.end(), std::int64_t{0});
  if (remainder < 0 || remainder > static_cast<std::int64_t>(values.size())) return remainder;
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return values[a] - std::floor(values[a]) > values[b] - std::floor(values[b]);
  });
  for (std::size_t i = 0; i < static_cast<std::size_t>(remainder); ++i) ++units[order[i]];
  return 0;
}

}  // namespace manyworlds::io
