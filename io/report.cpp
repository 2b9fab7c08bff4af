#include "io/report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/error.hpp"
#include "io/page_assets.hpp"

namespace manyworlds::io {

namespace {

constexpr std::size_t kListed = 200;  // of those that did not run

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .2rem .7rem; text-align: left; border-bottom: 1px solid #8884; white-space: nowrap; }
.right { text-align: right; font-variant-numeric: tabular-nums; }
.bar { display: flex; height: 1.2rem; width: 24rem; }
.legend span { margin-right: 1rem; white-space: nowrap; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; }
pre { overflow-x: auto; }
)";

// One colour a part of the step, in the order of kBreakdown; told apart in light and dark.
constexpr const char* kColours[kBreakdown.size()] = {"#2f6db3", "#1b4a80", "#7fb0e6", "#5f5fb0", "#a3a3a3",
                                                     "#c9b458", "#d1603d", "#b0413e", "#e09f5a", "#c77dbb",
                                                     "#8c4f9f", "#9db5a0", "#57a773"};

std::string cell(const std::string& text, bool left, const char* element = "td") {
  return fmt::format("<{0}{1}>{2}</{0}>", element, left ? "" : " class=right", escape_html(text));
}

std::string table(const std::vector<std::vector<std::string>>& lines, const std::vector<bool>& left) {
  std::string html = "<table>\n";
  for (const auto& line : lines) {
    html += "<tr>";
    for (std::size_t i = 0; i < line.size(); ++i) html += cell(line[i], left.at(i), &line == &lines[0] ? "th" : "td");
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string summary(const Results& results) {
  std::string html = fmt::format("<h1>{} experiments</h1>\n<p>", results.experiments.rows());
  for (const auto& [status, count] : results.experiments.counts_of("status"))
    html += fmt::format("{} {}, ", count, escape_html(status));
  return html + fmt::format("and {} combinations left out as invalid.</p>\n", results.excluded.rows());
}

/// The step of each ranked experiment as a bar of its parts, to one scale.
std::string breakdown(const Results& results, const Ranking& ranking) {
  const Column* step = results.experiments.find("step_time_s");
  double longest = 0;
  for (const auto& row : ranking.rows)
    if (step && step->number_at(row.row) > longest) longest = step->number_at(row.row);
  if (longest <= 0) return {};
  std::string html = "<h2>Where the time of a step goes</h2>\n<p class=legend>";
  for (std::size_t part = 0; part < kBreakdown.size(); ++part)
    html += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", kColours[part],
                        kBreakdown[part].substr(0, kBreakdown[part].size() - 2));
  html += "</p>\n<table>\n";
  for (std::size_t i = 0; i < ranking.rows.size(); ++i) {
    html += "<tr>" + cell(std::to_string(i + 1), false) + "<td><div class=bar>";
    for (std::size_t part = 0; part < kBreakdown.size(); ++part) {
      const Column* column = results.experiments.find(kBreakdown[part]);
      const double value = column ? column->number_at(ranking.rows[i].row) : 0;
      if (value > 0)
        html += fmt::format("<div style=\"background:{};width:{:.3f}%\" title=\"{} {:.6g} s\"></div>", kColours[part],
                            100 * value / longest, kBreakdown[part], value);
    }
    html += fmt::format("</div></td>{}</tr>\n", cell(ranking.rows[i].layout, true));
  }
  return html + "</table>\n";
}

/// Those without a step time and without an obvious reason; memory that does not suffice is counted above.
std::string failures(const Results& results) {
  std::vector<std::vector<std::string>> lines{{"id", "status", "reason"}};
  std::size_t more = 0;
  const Column* id = results.experiments.find("id");
  for (std::size_t row = 0; row < results.experiments.rows(); ++row) {
    const std::string status = results.experiments.text_at("status", row);
    if (status != "failed" && status != "too_large") continue;
    if (lines.size() > kListed)
      ++more;
    else
      lines.push_back({fmt::format("{:.0f}", id->number_at(row)), status, results.experiments.text_at("reason", row)});
  }
  if (lines.size() == 1) return {};
  return "<h2>Failed</h2>\n" + table(lines, {false, true, true}) +
         (more > 0 ? fmt::format("<p>and {} more.</p>\n", more) : "");
}

std::string excluded(const Results& results) {
  std::vector<std::vector<std::string>> lines{{"rule", "combinations"}};
  for (const auto& [rule, count] : results.excluded.counts_of("rule")) lines.push_back({rule, std::to_string(count)});
  return lines.size() == 1 ? std::string() : "<h2>Left out</h2>\n" + table(lines, {true, false});
}

std::string provenance(const Results& results) {
  std::vector<std::vector<std::string>> lines{{"", ""}};
  for (const Attribute& attribute : results.provenance)
    lines.push_back(
        {attribute.name, std::visit([](const auto& value) { return fmt::format("{}", value); }, attribute.value)});
  return "<h2>How it was computed</h2>\n" + table(lines, {true, true});
}

}  // namespace

std::string report_page(const Results& results, const Ranking& ranking) {
  const RankingLines best = render_lines(results, ranking);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport content=\"width=device-width\">\n"
      "<title>Manyworlds: {} experiments</title>\n<style>{}</style>\n{}<h2>The best</h2>\n{}<p>{}</p>\n{}{}{}{}"
      "<details><summary>The sweep</summary><pre>{}</pre></details>\n</html>\n",
      results.experiments.rows(), kStyle, summary(results), table(best.lines, best.left), escape_html(best.footer),
      breakdown(results, ranking), failures(results), excluded(results), provenance(results), escape_html(results.spec));
}

}  // namespace manyworlds::io
