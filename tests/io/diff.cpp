// "Same" is said exactly when the answers' bytes are the same, and a difference is shown where it first occurs.
#include "io/ranking/diff.hpp"

#include <functional>

#include "core/base/error.hpp"
#include "io/results/canonical_bytes.hpp"
#include "tests/io/sample_results.hpp"
#include "tests/io/scratch_files.hpp"

using namespace manyworlds;
using namespace manyworlds::io;
using namespace manyworlds::io::testing;

TEST_CASE("an answer is the same as itself, whatever its provenance") {
  Results other = sample_results();
  other.provenance.clear();
  CHECK(compare_results(sample_results(), other).verdict == Verdict::same);
  CHECK(results_digest(sample_results()) == results_digest(other));
  CHECK(results_digest(other).size() == 32);
  CHECK(describe(compare_results(other, other)) == "same results\n");
}

TEST_CASE("every single change of an answer is found, and changes its digest") {
  const Results left = sample_results();
  const auto experiments = [](Results& r, std::size_t column) -> Column& { return r.experiments.columns[column]; };
  struct Change {
    std::string where;
    std::function<void(Results&)> make;
  };
  const std::vector<Change> changes = {
      {"spec", [](Results& r) { r.spec += "x"; }},
      {"spec", [](Results& r) { r.spec.pop_back(); }},
      {"experiments (axes)", [](Results& r) { r.axis_names.pop_back(); }},
      {"experiments/id", [&](Results& r) { std::get<0>(experiments(r, 0).values)[11] = 12; }},
      {"experiments/topology", [&](Results& r) { std::get<2>(experiments(r, 2).values)[0] = "ring"; }},
      {"experiments/step_time_s", [&](Results& r) { std::get<1>(experiments(r, 4).values)[0] = std::nextafter(1, 2); }},
      {"experiments/step_time_s", [&](Results& r) { std::get<1>(experiments(r, 4).values)[0] = kNone; }},
      {"experiments/step_time_s", [&](Results& r) { std::get<1>(experiments(r, 4).values)[3] = 0; }},
      {"experiments/mfu", [&](Results& r) { experiments(r, 6).name = "MFU"; }},
      {"experiments/mfu", [&](Results& r) { experiments(r, 6).unit = "%"; }},
      {"experiments/mfu", [&](Results& r) { experiments(r, 6).description = "?"; }},
      {"experiments/exposed_dp_s", [](Results& r) { r.experiments.columns.pop_back(); }},
      {"excluded/rule", [](Results& r) { r.excluded.columns.pop_back(); }},
      {"excluded/reserve", [](Results& r) { r.excluded.columns[1].values = std::vector<std::string>{}; }},
      {"subsimulations/kernels/result_ps", [](Results& r) { ++std::get<0>(r.kernels.columns[1].values)[1]; }},
      {"subsimulations/episodes/x",
       [](Results& r) {
         r.episodes.columns.push_back({"x", "", "", std::vector<double>{}});
       }},
  };
  for (const auto& [where, make] : changes) {
    Results right = left;
    make(right);
    INFO(where);
    for (const Comparison& comparison : {compare_results(left, right), compare_results(right, left)}) {
      CHECK(comparison.verdict == Verdict::different);
      CHECK(comparison.structural + comparison.values == 1);
      if (where != "experiments/mfu") CHECK(comparison.first->where == where);  // its name may be the other one's
    }
    CHECK(results_digest(left) != results_digest(right));
  }
}

TEST_CASE("zero and negative zero are different answers, and two NaNs are one") {
  CHECK_FALSE(same_value(0.0, -0.0));
  CHECK(same_value(kNone, -kNone));
  CHECK_FALSE(same_value(kNone, 0.0));
  Results left = sample_results(), right = left;
  std::get<1>(left.experiments.columns[4].values)[0] = 0.0;
  std::get<1>(right.experiments.columns[4].values)[0] = -0.0;
  CHECK(describe(compare_results(left, right)) ==
        "different results\nfirst difference in experiments/step_time_s, row 0: 0 | -0\n1 values in 1 columns and 1 "
        "rows differ\n");
}

TEST_CASE("differences are counted by value, column and row") {
  const Results left = sample_results();
  Results right = left;
  for (const std::size_t row : {5u, 2u}) {
    std::get<1>(right.experiments.columns[4].values)[row] = 77;
    std::get<1>(right.experiments.columns[5].values)[row] = 88;
  }
  std::get<0>(right.kernels.columns[1].values)[0] = 1;
  const Comparison comparison = compare_results(left, right);
  CHECK((comparison.values == 5 && comparison.columns == 3 && comparison.rows == 3 && comparison.structural == 0));
  CHECK((comparison.first->where == "experiments/step_time_s" && comparison.first->row == std::size_t{2}));
  CHECK((comparison.first->left == "3" && comparison.first->right == "77"));
}

TEST_CASE("a missing row is a difference of layout") {
  const Results left = sample_results();
  Results right = left;
  for (Column& column : right.experiments.columns) std::visit([](auto& values) { values.pop_back(); }, column.values);
  const Comparison comparison = compare_results(left, right);
  CHECK((comparison.verdict == Verdict::different && comparison.structural == 1 && comparison.values == 0));
  CHECK((comparison.first->left == "12 rows" && comparison.first->right == "11 rows"));
}

TEST_CASE("the first line that differs is shown of two specs") {
  Results left, right;
  left.spec = "a: 1\nb: 2\nc: 3\n";
  right.spec = "a: 1\nb: 4\nc: 3\n";
  CHECK_THAT(describe(compare_results(left, right)), Catch::Contains("spec: b: 2 | b: 4"));
  right.spec = "a: 1\nb: 2\nc: 3";
  CHECK_THAT(describe(compare_results(left, right)), Catch::Contains("spec: 15 bytes | 14 bytes"));
}

TEST_CASE("files are compared by their answers, and what cannot be read cannot be compared") {
  const TemporaryFolder scratch;
  Results results = sample_results();
  write_results(scratch / "a.h5", results);
  results.provenance.clear();
  write_results(scratch / "b.h5", results);
  CHECK(compare_results(scratch / "a.h5", scratch / "b.h5").verdict == Verdict::same);
  put_bytes(scratch / "c.h5", "nothing of ours");
  for (const char* other : {"c.h5", "absent.h5"}) {
    const Comparison comparison = compare_results(scratch / "a.h5", scratch / other);
    CHECK(comparison.verdict == Verdict::cannot_compare);
    CHECK_THAT(describe(comparison), Catch::StartsWith("cannot compare: ") && Catch::Contains(other));
  }
}
