// The ranking: order, conditions, what is left out and how it is printed.
#include "io/ranking/top.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "io/ranking/condition.hpp"
#include "io/ranking/sweep_analysis.hpp"
#include "io/results/csv.hpp"
#include "io/results/number_format.hpp"
#include "tests/io/sample_results.hpp"
#include "tests/io/scratch_files.hpp"

using namespace manyworlds;
using namespace manyworlds::io;
using namespace manyworlds::io::testing;

namespace {

std::vector<std::size_t> ranked(const TopOptions& options) {
  std::vector<std::size_t> rows;
  for (const Ranking::Row& row : rank_experiments(sample_results(), options).rows) rows.push_back(row.row);
  return rows;
}

std::vector<std::size_t> satisfying(const std::string& where) {
  const Results results = sample_results();
  const Condition condition(where, results.experiments);
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < results.experiments.rows(); ++row)
    if (condition.matches(row)) rows.push_back(row);
  return rows;
}

using Rows = std::vector<std::size_t>;

}  // namespace

TEST_CASE("the best come first, ties in the order of ids, and only those that ran") {
  // Steps of 1, 2, 3 s in turn; 3, 7 and 11 ran out of memory.
  CHECK(ranked({}) == Rows{0, 6, 9, 1, 4, 10, 2, 5, 8});
  CHECK(ranked({4, "tokens_per_s_per_gpu", ""}) == Rows{0, 6, 9, 1});
  CHECK(ranked({4, "tokens_per_s_per_gpu asc", ""}) == Rows{2, 5, 8, 1});
  CHECK(ranked({100, "step_time_s", ""}) == Rows{0, 6, 9, 1, 4, 10, 2, 5, 8});
  CHECK(ranked({2, "step_time_s desc", ""}) == Rows{2, 5});
  CHECK(ranked({3, "memory_peak_bytes", ""}) == Rows{0, 1, 2});
  const Ranking ranking = rank_experiments(sample_results(), {3, "mfu", "strategy.tp >= 2"});
  CHECK(
      (ranking.candidates == 6 && ranking.did_not_run == 3 && ranking.filtered_out == 3 && ranking.without_value == 0));
}

TEST_CASE("less energy and less money come first, and layouts' costs are told apart as their step times are") {
  const auto with_costs = [](double low, double high) {
    Results results = sample_results();
    std::vector<double> joules, usd, lows, highs, ratios;
    for (std::size_t row = 0; row < results.experiments.rows(); ++row) {
      const double step = results.experiments.find("step_time_s")->number_at(row);
      joules.push_back(4 - step), usd.push_back(step / 100);
      lows.push_back(step * low), highs.push_back(step * high), ratios.push_back(1.6);
    }
    results.experiments.columns.push_back({"gpu_energy_per_token_j", "J/token", "energy", joules});
    results.experiments.columns.push_back({"usd_per_million_tokens", "USD", "price", usd});
    results.experiments.columns.push_back({"step_time_low_s", "s", "", lows});
    results.experiments.columns.push_back({"step_time_high_s", "s", "", highs});
    results.experiments.columns.push_back({"distinguishable_ratio", "", "", ratios});
    return results;
  };
  const Results results = with_costs(0.9, 1.2);
  const auto rows = [&](const std::string& by, const std::string& where) {
    Rows all;
    for (const Ranking::Row& row : rank_experiments(results, {100, by, where}).rows) all.push_back(row.row);
    return all;
  };
  CHECK(rows("gpu_energy_per_token_j", "") == Rows{2, 5, 8, 1, 4, 10, 0, 6, 9});
  CHECK(rows("usd_per_million_tokens", "") == Rows{0, 6, 9, 1, 4, 10, 2, 5, 8});
  CHECK(rows("usd_per_million_tokens desc", "gpu_energy_per_token_j >= 2") == Rows{1, 4, 10, 0, 6, 9});
  const auto distinction = [&](const Results& given, const std::string& by) {
    std::vector<Distinction> marks;
    for (const Ranking::Row& row : rank_experiments(given, {3, by, "id < 3"}).rows) marks.push_back(row.distinction);
    return marks;
  };
  using Marks = std::vector<Distinction>;  // steps of 1, 2 and 3 s that differ in tp alone
  CHECK(distinction(results, "usd_per_million_tokens") ==
        Marks{Distinction::best, Distinction::distinguishable, Distinction::distinguishable});
  CHECK(distinction(with_costs(0.5, 1.2), "usd_per_million_tokens") ==
        Marks{Distinction::best, Distinction::overlapping, Distinction::distinguishable});
  CHECK(distinction(results, "usd_per_million_tokens") == distinction(results, "step_time_s"));
  CHECK(distinction(results, "gpu_energy_per_token_j") == Marks(3, Distinction::unknown));
  const std::string shown = render_text(results, rank_experiments(results, {1, "usd_per_million_tokens", ""}));
  CHECK_THAT(shown, Catch::Contains(" 0.0100 USD ") && Catch::Contains("smallest first"));
  CHECK_THAT(render_text(results, rank_experiments(results, {1, "gpu_energy_per_token_j", ""})),
             Catch::Contains(" 1.000 J/token "));
}

TEST_CASE("experiments that did not run are ranked when the condition asks for them") {
  CHECK(ranked({10, "memory_peak_bytes desc", "status == out_of_memory"}) == Rows{3, 7, 11});
  const Ranking ranking = rank_experiments(sample_results(), {10, "step_time_s", "status != ran"});
  CHECK((ranking.rows.empty() && ranking.without_value == 3 && ranking.filtered_out == 9));
}

TEST_CASE("a row says its layout, what of it is not alike in all, and the largest loss beside forward and backward") {
  const Ranking ranking = rank_experiments(sample_results(), {2, "tokens_per_s_per_gpu", ""});
  CHECK(ranking.rows[0].layout == "tp=1 topology=rail_optimized");
  CHECK((ranking.rows[0].largest_loss == "exposed_dp" && ranking.rows[0].largest_loss_share == 0.25));
  CHECK(ranking.rows[1].largest_loss == "exposed_dp");
  CHECK((ranking.common_settings.empty() && ranking.rows[0].distinct_settings == ranking.rows[0].layout));
  const Ranking one = rank_experiments(sample_results(), {1, "tokens_per_s_per_gpu", ""});
  CHECK((one.common_settings.empty() && one.rows[0].distinct_settings == one.rows[0].layout));
  Results common_settings = sample_results();
  common_settings.experiments.columns[2].name = "cluster.tp";
  common_settings.axis_names = {"strategy.tp", "cluster.tp"};
  CHECK(rank_experiments(common_settings, {}).rows[0].layout == "strategy.tp=1 cluster.tp=rail_optimized");
}

TEST_CASE("conditions compare numbers with suffixes and texts with quotes") {
  CHECK(satisfying("").size() == 12);
  CHECK(satisfying("memory_peak_bytes < 42GiB") == Rows{0, 1});
  CHECK(satisfying("memory_peak_bytes<=42 GiB") == Rows{0, 1, 2});
  CHECK(satisfying("memory_peak_bytes == 42949672960") == Rows{0});
  CHECK(satisfying("step_time_s > 1500ms and memory_peak_bytes < 45GiB") == Rows{1, 2, 4});
  CHECK(satisfying("id >= 10") == Rows{10, 11});
  CHECK(satisfying("id != 0").size() == 11);
  CHECK(satisfying("status == ran and topology == 'rail_optimized'") == Rows{0, 1, 2, 4, 5});
  CHECK(satisfying("topology != rail_optimized") == Rows{6, 7, 8, 9, 10, 11});
  CHECK(satisfying("topology == \"this and that\"").empty());
  CHECK(satisfying("mfu < 1 and mfu >= 0.5") == Rows{0, 6, 9});
}

TEST_CASE("conditions are the expressions of a sweep's where") {
  CHECK(satisfying("id < 2 or id > 9") == Rows{0, 1, 10, 11});
  CHECK(satisfying("(id == 3 or id == 4) and id * 2 > 6") == Rows{4});
  CHECK(satisfying("-id > -2") == Rows{0, 1});
  CHECK(satisfying("min(id, 12 - id) >= 5") == Rows{5, 6, 7});
  CHECK(satisfying("'ran' == status and id<2") == Rows{0, 1});
  CHECK(satisfying("(status==out_of_memory)") == Rows{3, 7, 11});
  CHECK(satisfying("memory_peak_bytes - 1GiB <= 40GiB") == Rows{0, 1});
}

TEST_CASE("a missing value satisfies no condition, not even !=") {
  CHECK(satisfying("step_time_s != 1") == Rows{1, 2, 4, 5, 8, 10});
  CHECK(satisfying("step_time_s <= 3").size() == 9);
}

TEST_CASE("a condition that cannot be read is bad input that says what would be right") {
  const Results results = sample_results();
  const auto message = [&](const std::string& where) {
    try {
      const Condition condition(where, results.experiments);
    } catch (const core::InputError& error) {
      return std::string(error.what());
    }
    FAIL("accepted: " << where);
    return std::string();
  };
  CHECK_THAT(message("memory_peak_byte < 1"), Catch::Contains("--where") && Catch::Contains("'memory_peak_bytes'"));
  CHECK_THAT(message("nothing like it at all < 1"), Catch::Contains("step_time_s, tokens_per_s_per_gpu"));
  CHECK_THAT(message("status < ran"), Catch::Contains("== and !="));
  CHECK_THAT(message("topology == 'open"), Catch::Contains("closing"));
  CHECK_THAT(message("id < 3s"), Catch::Contains("a number"));
  CHECK_THAT(message("step_time_s < 3GiB"), Catch::Contains("step_time_s"));
  for (const char* where : {"id",
                            "id = 3",
                            "id 3",
                            "< 3",
                            "id <",
                            "id < 3 and",
                            "and id < 3",
                            "id < 3 and and id < 4",
                            "id < three",
                            "id => 3",
                            "id < 3 4",
                            "id < nan",
                            "mfu < inf",
                            "not (id > 1)",
                            "id < 3 or or id > 4",
                            "id < (3",
                            "id < 3)",
                            "id < ()",
                            "id == (and)",
                            "min id < 3",
                            "id 3 <",
                            "id < --3",
                            "id <* 3",
                            "(id) (id) < 3",
                            "and",
                            "id < 3 and ()"})
    CHECK_FALSE(message(where).empty());
}

TEST_CASE("a ranking that cannot be made is bad input") {
  const Results results = sample_results();
  CHECK_THROWS_WITH(rank_experiments(results, {3, "step_times_s", ""}),
                    Catch::Contains("--by") && Catch::Contains("'step_time_s'"));
  CHECK_THROWS_WITH(rank_experiments(results, {3, "topology", ""}), Catch::Contains("text"));
  CHECK_THROWS_AS(rank_experiments(results, {0, "mfu", ""}), core::InputError);
  CHECK_THROWS_AS(rank_experiments(results, {3, "", ""}), core::InputError);
  CHECK_THROWS_AS(rank_experiments(Results{}, {}), core::InputError);
}

TEST_CASE("where no experiment has a value of the column, the step time ranks them, and the table says so") {
  Results results;
  results.experiments.columns = {
      {"id", "", "", std::vector<std::int64_t>{0, 1, 2}},
      {"status", "", "", std::vector<std::string>{"ran", "ran", "failed"}},
      {"step_time_s", "s", "", std::vector<double>{2, 1, std::nan("")}},
      {"tokens_per_s_per_gpu", "tokens/s", "", std::vector<double>{std::nan(""), std::nan(""), std::nan("")}}};
  const Ranking ranking = rank_experiments(results, {2, "tokens_per_s_per_gpu desc", ""});
  REQUIRE(ranking.rows.size() == 2);
  CHECK(ranking.rows[0].row == 1);
  CHECK_THAT(render_text(results, ranking),
             Catch::EndsWith("2 of 2 experiments, by step_time_s (smallest first), as none has a value of "
                             "tokens_per_s_per_gpu; 1 did not run\n"));
  const auto json = nlohmann::json::parse(render_json(results, ranking));
  CHECK(json.at("by") == "step_time_s");
  CHECK(json.at("instead_of") == "tokens_per_s_per_gpu");

  std::get<std::vector<double>>(results.experiments.columns[3].values)[0] = 5;  // one has: the other is left out
  const Ranking asked = rank_experiments(results, {2, "tokens_per_s_per_gpu", ""});
  CHECK(asked.rows.size() == 1);
  CHECK(asked.without_value == 1);
  CHECK(asked.instead_of.empty());
}

TEST_CASE("the table is aligned, in units a person reads, and says what it left out") {
  Results results = sample_results();
  std::get<1>(results.experiments.columns[4].values)[9] = 0.0123456;
  const std::string expected =
      "#  id  layout  step time  tokens/s/GPU     MFU  peak memory  largest loss\n"
      "1   6  tp=4      1.000 s       12.00 k  50.0 %     46.0 GiB  exposed_dp 50 %\n"
      "2   9  tp=2     12.35 ms       12.00 k  50.0 %     49.0 GiB  exposed_dp 4050 %\n"
      "all: topology=fat_tree 1:4 – überbucht\n"
      "2 of 4 experiments, by tokens_per_s_per_gpu (largest first); 3 did not run; 5 outside the condition\n";
  std::string shown = render_text(results, rank_experiments(results, {2, "tokens_per_s_per_gpu", "id > 5"}));
  // The widest layout sets the width of its column, which the heading above is not written out for.
  const auto squeezed = [](std::string text) {
    std::string out;
    for (const char c : text)
      if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
    return out;
  };
  CHECK(squeezed(shown) == squeezed(expected));
  const auto places = [](const std::string& line) {
    return std::count_if(line.begin(), line.end(),
                         [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  };
  // Right-aligned columns end where their headings end.
  const std::string heading = shown.substr(0, shown.find('\n'));
  const std::string first = shown.substr(heading.size() + 1, shown.find('\n', heading.size() + 1) - heading.size() - 1);
  CHECK(places(heading.substr(0, heading.find("largest"))) == places(first.substr(0, first.find("exposed_dp"))));
  CHECK(places(heading.substr(0, heading.find("MFU") + 3)) == places(first.substr(0, first.find(" %") + 2)));
}

TEST_CASE("a column that one ranks by is shown, and a table without figures has dashes") {
  Results results;
  results.experiments.columns = {{"id", "", "", std::vector<std::int64_t>{0}},
                                 {"status", "", "", std::vector<std::string>{"ran"}},
                                 {"ecn_marks", "", "", std::vector<std::int64_t>{1234567}}};
  CHECK(render_text(results, rank_experiments(results, {1, "ecn_marks", ""})) ==
        "#  id  layout  step time  tokens/s/GPU  MFU  peak memory  ecn_marks  largest loss\n"
        "1   0                  -             -    -            -    1.235 M  -\n"
        "1 of 1 experiment, by ecn_marks (largest first)\n");
}

TEST_CASE("an empty value of an axis is shown as an empty text") {
  Results results;
  results.axis_names = {"program.edits"};
  results.experiments.columns = {{"id", "", "", std::vector<std::int64_t>{0, 1}},
                                 {"program.edits", "", "", std::vector<std::string>{"", "faster.yaml"}},
                                 {"status", "", "", std::vector<std::string>{"ran", "ran"}},
                                 {"step_time_s", "s", "", std::vector<double>{2, 1}}};
  const Ranking ranking = rank_experiments(results, {2, "step_time_s", ""});
  CHECK(ranking.rows[0].layout == "edits=faster.yaml");
  CHECK(ranking.rows[1].layout == "edits=\"\"");
}

TEST_CASE("peak memory that programs do not say is not known in tables, and in no ranking and no front") {
  Results results;
  results.experiments.columns = {{"id", "", "", std::vector<std::int64_t>{0, 1}},
                                 {"status", "", "", std::vector<std::string>{"ran", "ran"}},
                                 {"memory_peak_bytes", "bytes", "", std::vector<std::int64_t>{0, 1 << 30}},
                                 {"step_time_s", "s", "", std::vector<double>{1, 2}}};
  const Table& table = results.experiments;
  CHECK(format_cell(table.find("memory_peak_bytes"), 0) == kMissing);
  CHECK(format_cell(table.find("memory_peak_bytes"), 1) == "1.0 GiB");
  CHECK(csv(table) == "id,status,memory_peak_bytes,step_time_s\n0,ran,,1\n1,ran,1073741824,2\n");
  const Ranking ranking = rank_experiments(results, {2, "memory_peak_bytes", ""});
  REQUIRE(ranking.rows.size() == 1);
  CHECK(ranking.rows[0].row == 1);
  CHECK(ranking.without_value == 1);
  const auto json = nlohmann::json::parse(render_json(results, rank_experiments(results, {2, "step_time_s"})));
  CHECK(json["rows"][0]["columns"]["memory_peak_bytes"].is_null());
  CHECK(json["rows"][1]["columns"]["memory_peak_bytes"] == 1 << 30);
  CHECK(pareto_front(results, *table.find("memory_peak_bytes"), *table.find("step_time_s")) ==
        std::vector<std::size_t>{1});
}

TEST_CASE("without a column, results are ranked by the objective that they tell, or by tokens") {
  Results results;
  results.experiments.columns = {{"id", "", "", std::vector<std::int64_t>{0, 1}},
                                 {"status", "", "", std::vector<std::string>(2, "ran")},
                                 {"mfu", "", "", std::vector<double>{0.3, 0.4}},
                                 {"step_time_s", "s", "", std::vector<double>{1, 2}},
                                 {"tokens_per_s_per_gpu", "tokens/s", "", std::vector<double>{2, 1}}};
  CHECK(rank_experiments(results, {}).by == "tokens_per_s_per_gpu");
  results.provenance = {{"ranks", std::int64_t{2}}, {kObjective, std::string("mfu")}};
  const Ranking ranking = rank_experiments(results, {});
  CHECK(ranking.by == "mfu");
  CHECK(ranking.rows[0].row == 1);
  CHECK(rank_experiments(results, {2, "step_time_s"}).by == "step_time_s");
  results.provenance = {{kObjective, std::string("memory")}};
  CHECK_THROWS_AS(rank_experiments(results, {}), core::InputError);
}

TEST_CASE("rows that are not told apart from the best are marked: layouts by their ratio, others by their intervals") {
  // Steps of 1, 1.03, 1.3, 2 s of one choice, then 1.1 and 2 s of another batch; intervals from 0.9 to 1.25 of each.
  const std::vector<double> step{1, 1.03, 1.3, 2, 1.1, 2};
  std::vector<double> low, high, tokens;
  for (const double s : step) low.push_back(0.9 * s), high.push_back(1.25 * s), tokens.push_back(600 / s);
  Results results;
  results.axis_names = {"strategy.tp", "strategy.global_batch"};
  results.experiments.columns = {
      {"id", "", "", std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}},
      {"strategy.tp", "", "", std::vector<std::int64_t>{1, 2, 4, 8, 1, 2}},
      {"strategy.global_batch", "", "", std::vector<std::int64_t>{8, 8, 8, 8, 16, 16}},
      {"status", "", "", std::vector<std::string>(6, "ran")},
      {"step_time_s", "s", "", step},
      {"step_time_low_s", "s", "", low},
      {"step_time_high_s", "s", "", high},
      {"distinguishable_ratio", "", "", std::vector<double>(6, 1.04)},
      {"step_time_basis", "", "", std::vector<std::string>(6, "dense on a100_80: 9 families")},
      {"tokens_per_s_per_gpu", "tokens/s", "", tokens},
      {"memory_peak_bytes", "bytes", "", std::vector<std::int64_t>{6, 5, 4, 3, 2, 1}}};
  // By another column, too, the first has no difference from itself.
  CHECK_THAT(render_text(results, rank_experiments(results, {2, "memory_peak_bytes", ""})),
             Catch::Contains("+100.0 %") && !Catch::Contains("+0.0 %"));
  for (const char* by : {"step_time_s", "tokens_per_s_per_gpu"}) {
    const Ranking ranking = rank_experiments(results, {6, by, ""});
    std::map<std::size_t, Distinction> found;
    for (const Ranking::Row& row : ranking.rows) found[row.row] = row.distinction;
    CHECK(found[0] == Distinction::best);
    CHECK(found[1] == Distinction::indistinguishable);
    CHECK(found[2] == Distinction::overlapping);        // 1.17 against 1.25
    CHECK(found[3] == Distinction::distinguishable);    // 1.8 against 1.25
    CHECK(found[4] == Distinction::indistinguishable);  // of another choice: its errors are its own
    CHECK(found[5] == Distinction::distinguishable);
  }
  CHECK(rank_experiments(results, {2, "memory_peak_bytes", ""}).rows[1].distinction == Distinction::unknown);
  const std::string shown = render_text(results, rank_experiments(results, {3, "step_time_s", ""}));
  CHECK_THAT(shown, Catch::Contains("80 % interval") && Catch::Contains("0.900-1.250 s") &&
                        Catch::Contains("+3.0 %, tie\n") && Catch::Contains("dense on a100_80: 9 families") &&
                        Catch::Contains("differences below 4.0 % are within model error"));
  const auto json = nlohmann::json::parse(render_json(results, rank_experiments(results, {3, "step_time_s", ""})));
  CHECK(json["rows"][1]["from_best"] == "indistinguishable");
}

TEST_CASE("on other networks the kernels' errors cancel, and those of the waits count") {
  // Steps of 10 s and more on three fabrics, then the second fabric with another layout and with another batch. What
  // waits for the network is 1, 1.6, 1.2, 1.6 and 1.6 s; 2 s of waits inside a node are the same in all.
  const std::vector<double> waits{1, 1.6, 1.2, 1.6, 1.6};
  std::vector<double> step, low, high;
  for (const double s : waits)
    step.push_back(9 + s), low.push_back(0.8 * step.back()), high.push_back(1.3 * step.back());
  Results results;
  results.axis_names = {"topology", "strategy.tp", "strategy.global_batch"};
  results.experiments.columns = {{"id", "", "", std::vector<std::int64_t>{0, 1, 2, 3, 4}},
                                 {"topology", "", "", std::vector<std::string>{"a", "b", "c", "b", "b"}},
                                 {"strategy.tp", "", "", std::vector<std::int64_t>{1, 1, 1, 2, 1}},
                                 {"strategy.global_batch", "", "", std::vector<std::int64_t>{8, 8, 8, 8, 16}},
                                 {"status", "", "", std::vector<std::string>(5, "ran")},
                                 {"step_time_s", "s", "", step},
                                 {"step_time_low_s", "s", "", low},
                                 {"step_time_high_s", "s", "", high},
                                 {"distinguishable_ratio", "", "", std::vector<double>(5, 1.03)},
                                 {"exposed_tp_s", "s", "", std::vector<double>(5, 2)},
                                 {"exposed_dp_s", "s", "", waits}};
  const auto distinctions = [&] {
    std::map<std::size_t, Distinction> found;
    for (const Ranking::Row& row : rank_experiments(results, {5, "step_time_s", ""}).rows)
      found[row.row] = row.distinction;
    return found;
  };
  // Without an interval of the network, by the intervals of the steps.
  CHECK(distinctions()[1] == Distinction::indistinguishable);
  // Waits of less than 1.4 times the best one's second may be the same: 0.4 s of 10.
  results.experiments.columns.push_back({"network_ratio", "", "", std::vector<double>(5, 1.4)});
  auto found = distinctions();
  CHECK(found[1] == Distinction::overlapping);        // 0.6 s more
  CHECK(found[2] == Distinction::indistinguishable);  // 0.2 s more
  CHECK(found[3] == Distinction::indistinguishable);  // 0.6 s more, of which 0.4 and 3 % of 10 s may be error
  CHECK(found[4] == Distinction::indistinguishable);  // of another batch, by the intervals
  const auto text = [&](const char* where) {
    return render_text(results, rank_experiments(results, {5, "step_time_s", where}));
  };
  CHECK_THAT(text(""), Catch::Contains("waits 1.40 times as long as #1") && Catch::Contains("+6.0 %, probably slower"));
  CHECK_THAT(text("topology == \"b\""), !Catch::Contains("between networks"));
}

TEST_CASE("a ranking says when what it shows is a bound and no packet result") {
  Results results;
  results.experiments.columns = {{"id", "", "", std::vector<std::int64_t>{0, 1, 2}},
                                 {"status", "", "", std::vector<std::string>{"ran", "ran", "ran"}},
                                 {"fidelity", "", "", std::vector<std::string>{"analytic", "packet", "analytic"}},
                                 {"mfu", "", "", std::vector<double>{0.5, 0.4, 0.3}}};
  const auto shown = [&](std::int64_t rows, const char* where) {
    return render_text(results, rank_experiments(results, {rows, "mfu", where}));
  };
  CHECK_THAT(shown(3, ""), Catch::EndsWith("; 2 shown of analytic fidelity: lower bounds of the step time\n"));
  CHECK_THAT(shown(2, ""), Catch::Contains("; 1 shown of analytic fidelity"));
  CHECK_THAT(shown(3, "id == 1"), !Catch::Contains("analytic"));
}

TEST_CASE("JSON has every column of every row, and null for what is missing") {
  const Results results = sample_results();
  const auto best = nlohmann::json::parse(render_json(results, rank_experiments(results, {})));
  CHECK(best["rows"].size() == 9);
  CHECK((best["by"] == "tokens_per_s_per_gpu" && best["descending"] == true && best["did_not_run"] == 3));
  CHECK((best["rows"][1]["rank"] == 2 && best["rows"][1]["columns"]["id"] == 6));
  CHECK(best["rows"][0]["columns"].size() == results.experiments.columns.size());
  const auto failed = nlohmann::json::parse(
      render_json(results, rank_experiments(results, {1, "memory_peak_bytes", "status == out_of_memory"})));
  CHECK(failed["rows"][0]["columns"]["step_time_s"].is_null());
  CHECK(failed["rows"][0]["largest_loss"] == "");
}

TEST_CASE("large sums of money are written out, shares in per cent, and what never ends says so") {
  const auto shown = [](const char* name, const char* unit, double value) {
    return format_value({name, unit, "", std::vector<double>{value}}, value);
  };
  CHECK(shown("usd_per_million_tokens", "USD", 0.03621) == "0.0362 USD");
  CHECK(shown("train_usd", "USD", 999.4) == "999 USD");
  CHECK(shown("train_usd", "USD", 17'395'935.2) == "17,395,935 USD");
  CHECK(shown("goodput", "", 0.9451) == "94.5 %");
  CHECK(shown("goodput_first_order", "", 0.9437) == "94.4 %");
  CHECK(shown("train_time_s", "s", 90'000) == "90.00 ks");
  CHECK(shown("train_time_s", "s", 864'000) == "10.0 days");
  CHECK(shown("train_time_s", "s", std::numeric_limits<double>::infinity()) == "infinite");
}

TEST_CASE("rows that came out alike to the last digit are one line, which says what made no difference") {
  Results results;
  using Texts = std::vector<std::string>;
  using Numbers = std::vector<double>;
  results.experiments.columns = {{"id", "", "", std::vector<std::int64_t>{0, 1, 2, 3}},
                                 {"status", "", "", Texts{"ran", "ran", "ran", "ran"}},
                                 {"strategy.tp", "", "", std::vector<std::int64_t>{2, 2, 4, 4}},
                                 {"topology", "", "", Texts{"rails", "tree", "rails", "tree"}},
                                 {"step_time_s", "s", "", Numbers{1, 1, 2, 2.5}},
                                 {"tokens_per_s_per_gpu", "", "", Numbers{8, 8, 4, 3}},
                                 {"memory_peak_bytes", "bytes", "", Numbers{1, 1, 2, 2}}};
  results.axis_names = {"strategy.tp", "topology"};
  const std::string text = render_text(results, rank_experiments(results, {}));
  CHECK_THAT(text, Catch::Contains("1-2  0, 1  tp=2 topology=rails or tree    1.000 s"));
  CHECK_THAT(text, Catch::Contains("3     2  tp=4 topology=rails"));
  CHECK_THAT(text, Catch::Contains("4     3  tp=4 topology=tree"));
  CHECK(nlohmann::json::parse(render_json(results, rank_experiments(results, {}))).at("rows").size() == 4);
}

TEST_CASE("the error of fluids is told over all rows that have one, weighted by what was sampled") {
  Table experiments;
  const auto texts = std::vector<std::string>{"fluid", "packet", "fluid"};
  experiments.columns.push_back({"fidelity", "", "", texts});
  experiments.columns.push_back({"fluid_contended", "", "", std::vector<std::int64_t>{30, -1, 10}});
  experiments.columns.push_back({"fluid_sampled", "", "", std::vector<std::int64_t>{3, -1, 1}});
  const double none = std::nan("");
  experiments.columns.push_back({"fluid_error_mean", "", "", std::vector<double>{0.1, none, 0.5}});
  experiments.columns.push_back({"fluid_error_bias", "", "", std::vector<double>{-0.1, none, 0.1}});
  experiments.columns.push_back({"fluid_error_max", "", "", std::vector<double>{0.3, none, 0.5}});
  experiments.columns.push_back({"fluid_step_error", "", "", std::vector<double>{0.004, none, 0.021}});
  CHECK(fluid_error_text(experiments, {1}).empty());
  CHECK(fluid_error_text(experiments, {0, 1, 2}) ==
        "as fluids: 40 collectives were slower for sharing links; 4 of them, drawn, were simulated in packets too: as "
        "fluids they are off by 20.0 % on average (5.0 % too short), 50.0 % at most; if all took longer by that mean, "
        "steps would take up to 2.10 % longer");
  experiments.columns[2].values = std::vector<std::int64_t>{0, -1, 0};
  CHECK(fluid_error_text(experiments, {0, 2})
            .ends_with("none was simulated in packets as well, so the error is unknown"));
  experiments.columns[1].values = std::vector<std::int64_t>{0, -1, 0};
  CHECK(fluid_error_text(experiments, {0, 2}) == "as fluids: no collectives shared links");
}
