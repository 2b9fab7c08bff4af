// The HTML page of a report: its blocks as HTML, and the data that its scripts draw.
#include "io/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/escape.hpp"
#include "core/workload/program/step_parts.hpp"
#include "io/pictures/svg.hpp"
#include "io/report/page_assets.hpp"
#include "io/report/page_data.hpp"
#include "io/report/report_blocks.hpp"

namespace manyworlds::io {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the page up to its body: title, style, and a content security policy that forbids all loading and
/// connections.
std::string head(std::string_view title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; script-src 'unsafe-inline'; style-src "
      "'unsafe-inline'; img-src data:\">\n"
      "<link rel=icon href=\"data:,\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n",
      core::escape_html(title), page_asset("page.css"));
}

/// Returns the page's scripts, and the licence of the chart library.
std::string scripts() {
  std::string html;
  for (const char* name : {"chart.js", "page.js", "report.js", "experiments.js"})
    html += fmt::format("<script>\n{}\n</script>\n", page_asset(name));
  return html + fmt::format("<details class=quiet><summary>Licence of the charts</summary><pre>{}</pre></details>\n",
                            core::escape_html(page_asset("chart-licence.txt")));
}

/// Returns the class of a cell of text: layouts take two lines where there is room for one only beside the other
/// columns; long texts take as many as they need everywhere.
const char* class_of_text(const std::string& text) {
  constexpr std::size_t kOneLine = 40, kLayout = 120;
  return text.size() <= kOneLine ? "" : text.size() <= kLayout ? " class=layout" : " class=wraps";
}

std::string table(const TableBlock& lines) {
  std::string html = "<div class=scroll><table>\n";
  for (const auto& line : lines.lines) {
    html += "<tr>";
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char* element = &line == &lines.lines[0] ? "th" : "td";
      html +=
          fmt::format("<{0}{1}>{2}</{0}>", element, lines.left_aligned.at(i) ? class_of_text(line[i]) : " class=right",
                      core::escape_html(line[i]));
    }
    html += "</tr>\n";
  }
  html += "</table></div>\n";
  if (lines.summary.empty()) return html;
  return fmt::format("<details><summary>{}</summary>{}</details>\n", core::escape_html(lines.summary), html);
}

std::string canvas(const Picture& picture) {
  return fmt::format("<div class=chart><canvas id=\"{}\" role=img aria-label=\"{}\"></canvas></div>\n",
                     core::escape_html(picture.id), core::escape_html(picture.title));
}

struct ToHtml {
  std::string operator()(const Heading& heading) const {
    return fmt::format("<h{0}{1}>{2}</h{0}>\n", heading.level,
                       heading.id.empty() ? "" : fmt::format(" id={}", heading.id), core::escape_html(heading.text));
  }
  std::string operator()(const Paragraph& paragraph) const {
    return fmt::format("<p>{}</p>\n", core::escape_html(paragraph.text));
  }
  std::string operator()(const KeyValues& key_values) const {
    std::string html = "<div class=tiles>\n";
    for (const auto& [value, what] : key_values.entries)
      html += fmt::format("<div class=tile><b>{}</b><span>{}</span></div>\n", core::escape_html(value),
                          core::escape_html(what));
    return html + "</div>\n";
  }
  std::string operator()(const TableBlock& lines) const { return table(lines); }
  std::string operator()(const Picture& picture) const { return canvas(picture); }
  std::string operator()(const AllExperiments&) const { return std::string(page_asset("experiments.html")); }
  std::string operator()(const CodeBlock& code) const {
    return fmt::format("<details><summary>{}</summary><pre>{}</pre></details>\n", core::escape_html(code.title),
                       core::escape_html(code.text));
  }
};

std::string contents(const Report& report) {
  std::string html = "<nav>\n";
  for (const Block& block : report.blocks)
    if (const auto* heading = std::get_if<Heading>(&block); heading != nullptr && !heading->id.empty())
      html += fmt::format("<a href=\"#{}\">{}</a>\n", heading->id, core::escape_html(heading->text));
  return html + "</nav>\n";
}

Json number_or_null(double value) {
  return std::isnan(value) ? Json() : Json(value);
}

Json effect_json(const AxisEffect& effect) {
  Json result{{"axis", effect.axis}, {"name", effect.name}, {"values", Json::array()}};
  for (const AxisValue& value : effect.values)
    result["values"].push_back({{"value", value.value},
                                {"best", number_or_null(value.best)},
                                {"upper", number_or_null(value.upper)},
                                {"median", number_or_null(value.median)},
                                {"lower", number_or_null(value.lower)}});
  return result;
}

Json proof_json(const BestProof& proof) {
  Json result{
      {"by", proof.objective.column->name}, {"best", proof.best}, {"known", Json::array()}, {"open", Json::array()}};
  for (const ClosingStep& step : proof.closing) {
    result["known"].push_back(number_or_null(step.known));
    result["open"].push_back(number_or_null(step.open));
  }
  return result;
}

/// Returns every row once: the ranked rows, best first, then the others in the order of the sweep.
std::vector<std::size_t> in_order(const Ranking& all, std::size_t rows) {
  std::vector<std::size_t> order;
  std::vector<bool> ranked(rows);
  for (const Ranking::Row& row : all.rows) {
    order.push_back(row.row);
    ranked[row.row] = true;
  }
  for (std::size_t row = 0; row < rows; ++row)
    if (!ranked[row]) order.push_back(row);
  return order;
}

Json data_of(const Report& report, const TopOptions& options) {
  const Table& table = report.results->experiments;
  Json data{{"rows", table.rows()}, {"by", report.ranking.by}, {"columns", Json::array()}};
  for (const Column& column : table.columns) data["columns"].push_back(packed_column(column));
  data["axes"] = Json::array();
  const Axes axes(*report.results);
  for (const Axes::Axis& axis : axes.all()) data["axes"].push_back({{"name", axis.name}, {"short", axis.short_name}});
  TopOptions unlimited = options;
  unlimited.k = static_cast<std::int64_t>(std::max<std::size_t>(1, table.rows()));
  const Ranking all = rank_experiments(*report.results, unlimited);
  data["order"] = packed_rows(in_order(all, table.rows()));
  data["ranked"] = all.rows.size();
  data["parts"] = data["colours"] = Json::array();
  for (const core::workload::StepPartInfo& part : core::workload::kStepParts) {
    data["parts"].push_back(part.column);
    data["colours"].push_back(part.colour);
  }
  data["top"] = Json::array();
  for (const Ranking::Row& row : report.ranking.rows) data["top"].push_back(row.row);
  data["fronts"] = Json::array();
  for (const ParetoFront& front : report.fronts)
    data["fronts"].push_back({{"cost", front.cost->name}, {"title", front.title}, {"rows", front.rows}});
  data["effects"] = Json::array();
  for (const AxisEffect& effect : report.effects) data["effects"].push_back(effect_json(effect));
  data["accuracy"] = Json::array();
  for (const FamilyError& error : report.errors)
    data["accuracy"].push_back({{"family", error.residuals.family}, {"steps", error.residuals.steps}});
  if (report.proof) data["proof"] = proof_json(*report.proof);
  return data;
}

}  // namespace

std::string report_page(const Results& results, const TopOptions& options, const LaunchText& launch) {
  const Report report = make_report(results, options, launch);
  std::string html = head("Manyworlds: " + report.title);
  html += fmt::format("<body>\n<h1>{}</h1>\n{}", core::escape_html(report.title), contents(report));
  for (std::size_t i = 0; i < report.blocks.size(); ++i) {
    const auto* picture = std::get_if<Picture>(&report.blocks[i]);
    const bool paired = picture != nullptr && picture->kind == Picture::Kind::effect;  // the table of the effect
    if (paired) html += "<div class=pair>\n";
    html += std::visit(ToHtml{}, report.blocks[i]);
    if (paired) html += std::visit(ToHtml{}, report.blocks.at(++i)) + "</div>\n";
  }
  html += fmt::format("<script type=\"application/json\" id=data>{}</script>\n", script_json(data_of(report, options)));
  return html + scripts() + "</body>\n</html>\n";
}

}  // namespace manyworlds::io
