// The page of a run and its Markdown.
#include "io/report/report.hpp"
#include "io/ranking/sweep_analysis.hpp"

#include "tests/io/sample_results.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <regex>
#include <sstream>

using namespace manyworlds::io;
using namespace manyworlds::io::testing;
using Catch::Contains;

namespace {

const TopOptions kTop{5, "tokens_per_s_per_gpu", ""};

std::string page_of(const Results& results) {
  return report_page(results, kTop);
}

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// The one picture whose name ends like that.
std::string picture_of(const MarkdownReport& report, const std::string& name) {
  for (const auto& [file, picture] : report.pictures)
    if (file.ends_with(name + ".svg")) return picture;
  FAIL("no picture " << name);
  return {};
}

Results with_failure() {
  Results results = sample_results();
  auto& status = std::get<std::vector<std::string>>(results.experiments.columns[3].values);
  status[2] = "failed";
  std::vector<std::string> reasons(12);
  reasons[2] = "crash: <script>alert(\"1\")</script> & more | `less`";
  results.experiments.columns.push_back({"reason", "", "why", reasons});
  results.spec = "name: \"</title><script>\"\nbase: {model: \"<b>\"}\n";
  return results;
}

}  // namespace

TEST_CASE("the page says what was asked, what came out and how it was computed, also without scripts") {
  const std::string page = page_of(sample_results());
  CHECK_THAT(page, Contains("<h1>sample</h1>") && Contains("12 experiments: 3 do not fit into memory, 9 ran"));
  CHECK_THAT(page, Contains("tp=1 topology=rail_optimized"));
  // Half of the step of the best is backward; the parts of a step are shares of it.
  CHECK_THAT(page, Contains("<td class=right>25.0 %</td><td class=right>50.0 %</td><td class=right>25.0 %</td>"));
  CHECK_THAT(page, Contains("<td>host</td><td>node7</td>"));
  CHECK_THAT(page, Contains("Permission is hereby granted"));
  CHECK_THAT(page, !Contains(">Failed<"));
  CHECK(page == page_of(sample_results()));
}

TEST_CASE("the page has the launch flags of the best, or what prints them") {
  CHECK_THAT(page_of(sample_results()), Contains("Launch flags of the best: manyworlds top RUN --emit TARGET (with"));
  const LaunchText launch{"manyworlds top runs/a --emit megatron", "#!/bin/sh\ntorchrun <script>\n"};
  const std::string page = report_page(sample_results(), kTop, launch);
  CHECK_THAT(page, Contains("Launch flags of the best: manyworlds top runs/a --emit megatron (with") &&
                       Contains("<pre>#!/bin/sh\ntorchrun &lt;script&gt;\n</pre>"));
  CHECK_THAT(report_markdown(sample_results(), kTop, "", launch).text,
             Contains("Launch flags of the best:\n\n```\n#!/bin/sh\ntorchrun <script>\n```\n"));
}

TEST_CASE("lines below the ranking are paragraphs of their own, and layouts of more than 40 characters may wrap") {
  Results results = sample_results();
  const std::string page = page_of(results);
  const std::string said =
      page.substr(page.find("<h2 id=best>"), page.find("<h2 id=time>") - page.find("<h2 id=best>"));
  std::istringstream lines(render_table(results, rank_experiments(results, kTop)).footer);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) CHECK_THAT(said, Contains("<p>" + line + "</p>"));
  CHECK(count >= 1);
  for (std::string& topology : std::get<std::vector<std::string>>(results.experiments.columns[2].values))
    topology += std::string(topology.size() > 20 ? 90 : 1, 'x');
  const std::string longer = page_of(results);
  const std::regex cell("<td( class=([a-z]+))?>([^<]*)</td>");
  std::map<std::string, std::size_t> seen;
  for (std::sregex_iterator at(longer.begin(), longer.end(), cell), end; at != end; ++at) {
    const std::string kind = at->str(2), text = at->str(3);
    if (kind == "right") continue;
    ++seen[kind];
    CHECK(kind == (text.size() <= 40 ? "" : text.size() <= 120 ? "layout" : "wraps"));
  }
  CHECK(seen.size() == 3);
}

TEST_CASE("the report of a search tells the fidelities that it simulated with, and fluids in a tile") {
  Results results = sample_results();
  results.spec = "name: sample\nbase: {fidelity: analytic}\n";
  std::vector<std::string> fidelity(12, "analytic");
  results.experiments.columns.push_back({"fidelity", "", "", fidelity});
  CHECK_THAT(page_of(results), Contains("<td>fidelity</td><td>analytic</td>"));
  auto& values = std::get<std::vector<std::string>>(results.experiments.columns.back().values);
  values[0] = values[1] = values[9] = "fluid";
  const std::string page = page_of(results);
  CHECK_THAT(page, Contains(">analytic; experiments with: analytic (9), fluid (3)</td>"));
  CHECK_THAT(page, Contains("<b>fluid</b><span>collectives share links max-min fairly"));
}

TEST_CASE("nothing of the data is markup, and nothing is loaded from elsewhere") {
  const std::string page = page_of(with_failure());
  CHECK_THAT(page, Contains("<h3>Failed</h3>"));
  CHECK_THAT(page, Contains("crash: &lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; more"));
  CHECK_THAT(page, Contains("<title>Manyworlds: &lt;/title&gt;&lt;script&gt;</title>"));
  CHECK(count_of("<script", page) == count_of("</script>", page));
  CHECK(count_of("<script>", page) == 4);  // the chart library, ours, and none of the data's
  CHECK(count_of("<b>", page) == count_of("class=tile><b>", page));
  for (const char* loads : {" src=", "<link rel=stylesheet", "@import", "url("}) {
    INFO(loads);
    const std::string body = page.substr(0, page.find("<script type=\"application/json\""));
    CHECK(body.find(loads) == std::string::npos);
  }
}

TEST_CASE("Markdown says the same, with a picture for each chart of the page") {
  const Results results = with_failure();
  const MarkdownReport report = report_markdown(results, kTop, "run-");
  const std::string page = page_of(results);
  CHECK(report.pictures.size() == count_of("<canvas id=", page));
  for (const auto& [file, picture] : report.pictures) {
    INFO(file);
    CHECK(count_of("](" + file + ")", report.text) == 1);
    CHECK_THAT(file, Catch::Matches("run-[-_A-Za-z0-9]+\\.svg"));
    CHECK_THAT(picture, Contains("<svg xmlns=") && Contains("</svg>"));
  }
  CHECK_THAT(report.text, Contains("crash: &lt;script&gt;alert(\"1\")&lt;/script&gt; &amp; more \\| \\`less\\`"));
  const MarkdownReport again = report_markdown(results, kTop, "run-");
  CHECK(again.text == report.text);
  CHECK(again.pictures == report.pictures);
}

TEST_CASE("pictures are to scale: a part of a step is as wide as its share of the longest step shown") {
  const std::string picture = picture_of(report_markdown(sample_results(), kTop, ""), "breakdown");
  const auto width_of = [&](const std::string& title) {
    const std::size_t at = picture.find("<title>" + title);
    REQUIRE(at != std::string::npos);
    const std::size_t begin = picture.rfind("width=\"", at) + 7;
    return std::stod(picture.substr(begin));
  };
  // The best takes 1 s, a quarter of it forward and half backward; the last of the five takes 2 s.
  CHECK(width_of("backward_s 500.0 ms") == Approx(2 * width_of("forward_s 250.0 ms")).epsilon(1e-3));
  CHECK(width_of("forward_s 500.0 ms") == Approx(2 * width_of("forward_s 250.0 ms")).epsilon(1e-3));
}

TEST_CASE("a picture has a dot for every point that can be told apart, and a line through the front") {
  const Results results = sample_results();
  const std::string picture = picture_of(report_markdown(results, kTop, ""), "pareto-memory_peak_bytes");
  const auto front = pareto_front(results, *results.experiments.find("memory_peak_bytes"),
                                  *results.experiments.find("tokens_per_s_per_gpu"));
  CHECK(count_of("<circle", picture) == 9 + front.size());
  CHECK(count_of("<polyline", picture) == 1);
}

TEST_CASE("nothing that ran makes a report too") {
  Results results = sample_results();
  for (std::string& status : std::get<std::vector<std::string>>(results.experiments.columns[3].values))
    status = "pending";
  CHECK_THAT(page_of(results), Contains("12 pending") && Contains("No experiment that ran can be ranked."));
  CHECK_THAT(report_markdown(results, kTop, "").text, Contains("12 pending"));
}
