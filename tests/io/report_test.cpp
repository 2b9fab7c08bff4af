// The page of a run.
#include "io/report.hpp"

#include "sample_results.hpp"

#include <catch2/catch.hpp>

using namespace manyworlds::io;
using namespace manyworlds::io::testing;
using Catch::Contains;

namespace {

std::string page_of(const Results& results) {
  return report_page(results, rank_experiments(results, {5, "tokens_per_s_per_gpu", ""}));
}

}  // namespace

TEST_CASE("the page has the ranking, the parts of each step to one scale, and how it was computed") {
  const std::string page = page_of(sample_results());
  CHECK_THAT(page, Contains("<h1>12 experiments</h1>") && Contains("3 out_of_memory, 9 ran"));
  CHECK_THAT(page, Contains("tp=1 topology=rail_optimized"));
  // The longest of the five takes 2 s; the best has 0.25 s of forward pass in 1 s, an eighth of that.
  CHECK_THAT(page, Contains("width:12.500%\" title=\"forward_s 0.25 s\""));
  CHECK_THAT(page, Contains("<td>host</td><td>node7</td>"));
  CHECK_THAT(page, !Contains("<h2>Failed</h2>"));
  CHECK(page == page_of(sample_results()));
}

TEST_CASE("the page names what failed and why, and nothing in it is markup that was not ours") {
  Results results = sample_results();
  auto& status = std::get<std::vector<std::string>>(results.experiments.columns[3].values);
  status[2] = "failed";
  std::vector<std::string> reasons(12);
  reasons[2] = "crash: <script>alert(\"1\")</script> & more";
  results.experiments.columns.push_back({"reason", "", "why", reasons});
  results.spec = "name: </pre><script>";
  const std::string page = page_of(results);
  CHECK_THAT(page, Contains("<h2>Failed</h2>"));
  CHECK_THAT(page, Contains("crash: &lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; more"));
  CHECK_THAT(page, !Contains("<script"));
  CHECK_THAT(page, !Contains("http"));
}

TEST_CASE("nothing that ran makes a page too") {
  Results results = sample_results();
  for (std::string& status : std::get<std::vector<std::string>>(results.experiments.columns[3].values))
    status = "pending";
  CHECK_THAT(page_of(results), Contains("12 pending"));
}
