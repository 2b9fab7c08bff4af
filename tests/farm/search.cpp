// What a search says of its rankings.
#include "farm/search/search_report.hpp"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "core/workload/schedule/schedule.hpp"
#include "experiments/sweep/experiment.hpp"
#include "farm/search/layout_bounds.hpp"
#include "farm/search/search_rounds.hpp"
#include "farm/search/search_space.hpp"
#include "farm/search/searched_job.hpp"
#include "farm/sweep/single_run.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;

TEST_CASE("rank correlation meets its closed form") {
  CHECK(rank_correlation({1, 2, 3, 4}, {10, 20, 30, 40}) == Approx(1));
  CHECK(rank_correlation({1, 2, 3, 4}, {9, 7, 5, -3}) == Approx(-1));
  CHECK(rank_correlation({1, 2, 3, 4, 5}, {2, 1, 4, 3, 5}) == Approx(1 - 6.0 * 4 / (5 * 24)));  // 1 - 6 d^2 / n(n^2-1)
  // Ties share their mean rank: ranks 0.5 0.5 2 against 0 1 2, whose covariance is 1.5, variances 1.5 and 2.
  CHECK(rank_correlation({7, 7, 8}, {1, 2, 3}) == Approx(1.5 / std::sqrt(1.5 * 2)));
  CHECK(std::isnan(rank_correlation({1}, {2})));
}

TEST_CASE("a search is settled once nothing that was not simulated can be faster") {
  const std::vector<double> bounds{100, 98, 95, 90, 80, 70};
  SearchStatus settled = search_status(bounds, {});
  CHECK(settled.open == 6);
  settled = search_status(bounds, {60, 85});
  CHECK(settled.simulated == 2);
  CHECK(settled.open == 2);  // 95 and 90 may beat 85; 80 cannot
  CHECK(settled.max_gain == Approx(95.0 / 85 - 1));
  CHECK_FALSE(settled.settled());
  CHECK(search_status(bounds, {60, 85, 92, 71}).settled());
  CHECK(search_status(bounds, {std::nan(""), 96}).settled());
  CHECK(search_status(bounds, {60, 98}).settled());  // a bound that is met is no better
  CHECK(search_status(bounds, {std::nan("")}).open == 5);
  CHECK(search_status({}, {}).settled());
  // What was not finished, or not even screened, is open by its own bound.
  const SearchStatus early = search_status(bounds, {60, 85, 92, 71}, {93, 97, 91});
  CHECK(early.open == 2);
  CHECK(early.max_gain == Approx(97.0 / 92 - 1));
}

TEST_CASE("a search that has not looked at all layouts is not settled") {
  SearchStatus status = search_status({100, 98}, {100, 90});
  CHECK(status.settled());
  status.unknown = 1;
  CHECK_FALSE(status.settled());
  status.unknown = 0;
  status.unlisted = 1;
  CHECK_FALSE(status.settled());
}

TEST_CASE("what other software gains is told apart from what the layout gains") {
  const experiments::Catalog catalog;
  const auto settings = [&](const std::string& strategy) {
    const std::string text = "base: {model: llama3-8b, cluster: {like: dgx_h100_superpod, nodes: 2}, strategy: {" +
                             strategy + ", global_batch: 32}}\n";
    return experiments::parse_sweep(text, "s.yaml", {}, catalog).experiments.front().settings;
  };
  const experiments::Settings best = settings("tp: 4, zero: 1");
  // The same software, another layout.
  CHECK(other_switches(settings("tp: 2, pp: 2, zero: 1"), best).names.empty());
  // Another switch: the layout with the job's own is the best layout as such a job would have it.
  const OtherSwitches other = other_switches(settings("tp: 2, zero: 1, stack.overlap_tensor: false"), best);
  CHECK(other.names == std::vector<std::string>{"overlap_tensor=true"});
  CHECK(other.layout_alone == settings("tp: 4, zero: 1, stack.overlap_tensor: false"));
  // How a step is simulated is no switch of software.
  experiments::Settings simulated_otherwise = best;
  experiments::change_setting(simulated_otherwise, "limit.link_hops", std::int64_t{7});
  CHECK(other_switches(simulated_otherwise, best).names.empty());
  // A switch that means nothing to the best layout is none of the job's merits.
  CHECK(other_switches(settings("tp: 2, zero: 1"), settings("tp: 2, zero: 3")).names.empty());
}

TEST_CASE("an answer without simulated layouts is called a lower bound, and one with them is headed by one of them") {
  const auto results_of = [](const std::string& fidelity) {
    const experiments::Catalog catalog;
    const std::string text =
        "base: {model: llama3-8b, cluster: {like: dgx_h100_superpod, nodes: 2}, topology: {rail_optimized: {}}, "
        "strategy: {tp: 8, global_batch: 16}}\n";
    return SingleRun(experiments::parse_sweep(text, "s.yaml", {"fidelity=" + fidelity}, catalog)).results();
  };
  SearchFindings findings;
  findings.layouts = 9, findings.fitting = 5;
  findings.screened = results_of("analytic");
  findings.screening = "run.search/screening-1";
  findings.search_status = search_status(throughputs(findings.screened), {});
  findings.search_status.end = SearchEnd::budget;
  const double bound_s = findings.screened.experiments.find("step_time_s")->number_at(0);
  const std::string at_least = fmt::format("takes at least {:.4g} s a step", bound_s);
  CHECK_THAT(search_text(findings, 5),
             Catch::Contains("lower bounds only: no layout was simulated, so that #1 " + at_least));
  CHECK_THAT(
      found_title(findings, "mine"),
      Catch::StartsWith("mine: no layout was simulated; the best of 5 layouts that fit by its lower bound, which " +
                        at_least));
  findings.simulated = results_of("fluid");
  findings.simulation = Simulation::fluids;
  findings.search_status = search_status(throughputs(findings.screened), throughputs(*findings.simulated), {1e9});
  findings.search_status.end = SearchEnd::budget;
  const double simulated_s = findings.simulated->experiments.find("step_time_s")->number_at(0);
  CHECK(simulated_s >= bound_s);
  CHECK(&final_results(findings) == &*findings.simulated);
  CHECK_THAT(search_text(findings, 5), !Catch::Contains("lower bounds only"));
  CHECK_THAT(
      found_title(findings, "mine"),
      Catch::StartsWith(fmt::format("mine: the best that was found, and not proven the fastest, of 5 layouts that "
                                    "fit, {:.4g} s a step, ",
                                    simulated_s)));
}

TEST_CASE("rounds grow as long as something is open, and stop at the limit") {
  const auto open = [](std::size_t simulated, std::size_t count) {
    SearchStatus result;
    result.simulated = simulated;
    result.open = count;
    return result;
  };
  CHECK(next_round({}, 100, 64) == kFirstRound);
  CHECK(next_round({}, 3, 64) == 3);
  CHECK(next_round({}, 100, 2) == 2);
  CHECK(next_round(open(8, 3), 100, 64) == 11);
  CHECK(next_round(open(8, 50), 100, 64) == 16);  // twice as many at most
  CHECK(next_round(open(8, 50), 100, 12) == 12);
  CHECK(next_round(open(8, 0), 100, 64) == 8);  // settled
  CHECK(next_round({}, 0, 64) == 0);
  // With limited time the first eight come in three rounds, so that the best are ready when it is over.
  CHECK(next_round({}, 100, 64, true) == 2);
  CHECK(next_round(open(2, 50), 100, 64, true) == 4);
  CHECK(next_round(open(4, 0), 100, 64, true) == 8);
  CHECK(next_round(open(4, 0), 100, 5, true) == 5);
  CHECK(next_round(open(8, 50), 100, 64, true) == 16);
}

TEST_CASE("the space of a search is a sweep of which every part can be") {
  const experiments::Catalog catalog;
  for (const char* model : {"gpt3-1.3b", "llama2-7b", "mixtral-8x7b", "deepseek-v3", "qwen3-235b-a22b"}) {
    CAPTURE(model);
    SearchOptions words;
    words.model = model;
    words.cluster = "dgx_h100_superpod";
    words.sequence = 4'096;
    const SearchSpace space = search_space(words, catalog);
    const auto sweep =
        experiments::parse_sweep(with_sample(space.yaml, 40, 1), "search.yaml", {"fidelity=analytic"}, catalog);
    CHECK(sweep.experiments.size() == 40);
    CHECK(sweep.name == space.name);
  }
}

namespace {

SearchOptions small_words(std::vector<std::string> set = {}) {
  SearchOptions words;
  words.model = "llama3-70b";
  words.gpu = "h100_sxm";
  words.gpus = 64;
  words.sequence = 4'096;
  words.set = std::move(set);
  return words;
}

std::set<std::string> values_of(const SearchOptions& words, const std::string& key) {
  const experiments::Catalog catalog;
  std::set<std::string> values;
  for (const auto& one :
       experiments::parse_sweep(search_space(words, catalog).yaml, "search.yaml", {}, catalog).experiments)
    values.insert(std::visit([](const auto& held) { return fmt::format("{}", held); }, one.settings.at(key)));
  return values;
}

}  // namespace

TEST_CASE("bounds that there is no time for are unknown, and those that there is are the same") {
  const experiments::Catalog catalog;
  const experiments::Sweep sweep =
      experiments::parse_sweep(search_space(small_words({"tp=4"}), catalog).yaml, "s.yaml", {}, catalog);
  const BoundedLayouts all = bounded_layouts(sweep);
  CHECK(all.unknown == 0);
  CHECK_FALSE(all.order.empty());
  CHECK(std::is_sorted(all.rates.rbegin(), all.rates.rend()));
  const auto now = std::chrono::steady_clock::now();
  const BoundedLayouts none = bounded_layouts(sweep, now - std::chrono::hours(1));
  CHECK(none.unknown == sweep.experiments.size());
  CHECK(none.order.empty());
  const BoundedLayouts random = bounded_layouts(sweep, now + std::chrono::hours(1));
  CHECK(random.unknown == 0);
  CHECK(random.order == all.order);
  CHECK(random.rates == all.rates);
}

TEST_CASE("a search tries the schedules that the stack offers, and others where they are asked for") {
  using Names = std::set<std::string>;
  const std::string schedule = "strategy.schedule";
  CHECK(values_of(small_words(), schedule) == Names{"1f1b", "interleaved"});
  CHECK(values_of(small_words({"schedule=zb_v"}), schedule) == Names{"zb_v"});
  SearchOptions all = small_words({"tp=4", "micro_batch=1", "recompute=none"});
  all.all_schedules = true;
  CHECK(values_of(all, schedule).count("zb_v") == 1);
  CHECK(values_of(all, schedule).count("dualpipev") == 1);
  // 80 layers over four stages of five chunks each, as NVIDIA's recipe has them.
  CHECK(values_of(small_words({"pp=4"}), "strategy.virtual_stages").count("5") == 1);
}

TEST_CASE("a search of all schedules tries every one in the list but those that say why not") {
  SearchOptions words = small_words();
  words.all_schedules = true;
  const std::string yaml = search_space(words, experiments::Catalog()).yaml, axis = "strategy.schedule: [";
  const std::size_t begin = yaml.find(axis);
  REQUIRE(begin != std::string::npos);
  const std::string tried = ", " + yaml.substr(begin + axis.size(), yaml.find(']', begin) - begin - axis.size()) + ",";
  std::size_t searched = 0;
  for (const core::workload::ScheduleType& type : core::workload::schedules()) {
    INFO(type.name << ": " << type.not_searched);
    CHECK(type.not_searched.empty() == (tried.find(", " + type.name + ",") != std::string::npos));
    searched += type.not_searched.empty();
  }
  CHECK(searched < core::workload::schedules().size());  // a control: what a file has is not tried
}

TEST_CASE("the document of a search has all that was said, and is the sweep by itself") {
  const experiments::Catalog catalog;
  const SearchSpace space = search_space(small_words({"tp=[2,4]", "strategy.stack.precision=fp8", "topology=fat_tree",
                                                      "cluster.nic_gbps=100", "virtual_stages=5", "assume=today"}),
                                         catalog);
  const auto sweep = experiments::parse_sweep(space.yaml, "search.yaml", {}, catalog);
  REQUIRE(!sweep.experiments.empty());
  for (const auto& one : sweep.experiments) {
    CHECK(one.settings.at("strategy.stack.precision") == core::OptionValue("fp8"));
    CHECK(one.settings.at("topology") == core::OptionValue("fat_tree"));
    CHECK(one.settings.at("cluster.nic_gbps") == core::OptionValue(100.0));
    CHECK(one.settings.at("strategy.virtual_stages") == core::OptionValue(std::int64_t{5}));
    CHECK(std::get<std::int64_t>(one.settings.at("strategy.tp")) % 2 == 0);
    CHECK(std::get<std::int64_t>(one.settings.at("strategy.tp")) < 8);
    CHECK(one.settings.at("strategy.sequence_parallel") == core::OptionValue(true));
  }
}

TEST_CASE("a search of an architecture tries the tensor-parallel sizes that all of its parts divide over") {
  const experiments::Catalog catalog;
  std::size_t without_heads = 0;
  for (const auto& [name, entry] : catalog.entries("models")) {
    if (!entry.values.contains("architecture")) continue;
    CAPTURE(name);
    without_heads += !entry.values.contains("heads");
    SearchOptions words = small_words({"pp=1", "cp=1", "zero=1", "recompute=none", "assume=2021"});
    words.model = name;
    words.sequence.reset();
    if (entry.assumed_sequence > 0) words.sequence = 4'096;
    const auto sweep = experiments::parse_sweep(search_space(words, catalog).yaml, "search.yaml", {}, catalog);
    CHECK(!sweep.experiments.empty());
    for (const auto& excluded : sweep.excluded)
      if (excluded.rule == "parts_by_ranks") CHECK_THAT(excluded.reason, !Catch::Contains(", tp "));
  }
  CHECK(without_heads >= 12);
}

TEST_CASE("a search of a model with embedding tables has all GPUs share them, and one micro-batch each") {
  SearchOptions words = small_words({"assume=2021"});
  words.model = "dlrm", words.sequence.reset(), words.global_batch = 55'296;  // MLPerf's: 864 samples a GPU
  using Values = std::set<std::string>;
  CHECK(values_of(words, "strategy.ep") == Values{"64"});
  CHECK(values_of(words, "strategy.micro_batch") == Values{"864"});
  CHECK(values_of(words, "strategy.tp") == Values{"1"});
  CHECK(values_of(words, "strategy.pp") == Values{"1"});
  words.global_batch = 100;
  CHECK_THROWS_WITH(search_space(words, experiments::Catalog()),
                    Catch::StartsWith("--global-batch") && Catch::Contains("no multiple of 64 GPUs"));
}

TEST_CASE("a search of a network of images tries micro-batches up to all samples of a GPU") {
  SearchOptions words = small_words({"assume=2021", "zero=1", "recompute=none", "pp=1"});
  words.model = "resnet-50", words.sequence.reset(), words.global_batch = 64 * 48;
  CHECK(values_of(words, "strategy.micro_batch") == std::set<std::string>{"1", "2", "4", "8", "16", "48"});
  CHECK(values_of(words, "strategy.tp") == std::set<std::string>{"1"});
}

TEST_CASE("a search of a model whose layers are no multiple gives the ends lighter stages") {
  SearchOptions words = small_words({"micro_batch=1", "zero=1"});
  words.model = "qwen3-235b-a22b";  // 94 layers
  words.gpu = "h200_sxm";
  CHECK(values_of(words, "strategy.pp").count("8") == 1);
}

TEST_CASE("what a question leaves open is listed with the option that says otherwise") {
  const experiments::Catalog catalog;
  SearchOptions bare;
  bare.model = "llama3-8b", bare.gpu = "h100_sxm";
  const std::vector<std::string> assumed = search_space(bare, catalog).assumed;
  REQUIRE(assumed.size() == 4);
  CHECK_THAT(assumed[0], Catch::StartsWith("cluster.nodes=") && Catch::Contains("--gpus N"));
  CHECK(assumed[1] == "topology=rail_optimized (--topology NAME)");
  CHECK(assumed[2] == "model.sequence=8192 (the model's own; --sequence N)");
  CHECK_THAT(assumed[3], Catch::StartsWith("strategy.global_batch=") && Catch::Contains("--global-batch N"));
  SearchOptions full = bare;
  full.gpus = 64, full.global_batch = 128, full.sequence = 4096, full.topology = "fat_tree";
  CHECK(search_space(full, catalog).assumed.empty());
  bare.set = {"strategy.global_batch=64", "model.sequence=2048"};
  CHECK(search_space(bare, catalog).assumed.size() == 2);
}

TEST_CASE("machines of a search: a GPU and how many") {
  const experiments::Catalog catalog;
  const auto refused = [&](SearchOptions words) {
    try {
      search_space(words, catalog);
    } catch (const core::InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(search_space(small_words(), catalog).name == "llama3-70b-on-64-h100_sxm");
  SearchOptions words = small_words();
  words.gpus = 4;
  CHECK_THAT(search_space(words, catalog).yaml, Catch::Contains("nodes: 1, gpus_per_node: 4"));
  words.gpus = 60;
  CHECK_THAT(refused(words), Catch::Contains("60 GPUs are no whole nodes of 8") && Catch::Contains("64 would be"));
  words.gpus = 64, words.set = {"cluster.gpus_per_node=4"};
  CHECK_THAT(search_space(words, catalog).yaml, Catch::Contains("nodes: 16, gpus_per_node: 4"));
  words.set = {"cluster.gpus_per_node=4,8"};
  CHECK_THAT(refused(words), Catch::Contains("one number"));
  words.set = {"cluster.nodes=4"};
  CHECK_THAT(refused(words), Catch::Contains("keep one"));
  words.gpus.reset();
  CHECK(search_space(words, catalog).name == "llama3-70b-on-32-h100_sxm");
  words.set.clear();
  words.gpu = "gb300_nvl72", words.gpus = 512;  // of racks of 72
  CHECK_THAT(search_space(words, catalog).yaml, Catch::Contains("nodes: 8, gpus_per_node: 64"));
  CHECK_THAT(
      search_space(words, catalog).assumed,
      Catch::VectorContains(std::string(
          "cluster.gpus_per_node=64 (of the 72 of each rack of gb300_nvl72_racks, so that all racks have as many)")));
  words.gpus = 73;
  CHECK_THAT(refused(words), Catch::Contains("73 GPUs are no whole nodes of 72"));
  words.gpu = small_words().gpu;
  words.gpus = 64, words.nodes = 8;
  CHECK_THAT(refused(words), Catch::Contains("--nodes"));
  CHECK_THAT(refused(small_words({"pp=3"})), Catch::Contains("pp may be 1, 2, 4"));
  CHECK_THAT(refused(small_words({"tpp=3"})), Catch::Contains("unknown key 'tpp'"));
  CHECK_THAT(refused(small_words({"tp=3", "strategy.tp=4"})), Catch::Contains("set twice"));
}
