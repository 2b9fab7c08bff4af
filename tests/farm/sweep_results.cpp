// The results of a sweep: what the columns hold, and that they do not depend on how they were computed.
#include <catch2/catch.hpp>

#include <cmath>

#include "experiments/analysis/uncertainty.hpp"
#include "farm/plan/collective_result.hpp"
#include "farm/results/sweep_report.hpp"
#include "io/ranking/top.hpp"
#include "io/results/canonical_bytes.hpp"
#include "tests/farm/sweep_samples.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

io::Results answer(const experiments::Sweep& sweep, bool share = true, bool reversed = false) {
  const SweepJob job(serialize_job(sweep, {share, {}}));
  const auto outcomes = run_all(job, reversed);
  for (const Outcome& outcome : outcomes) REQUIRE(outcome.ok());
  return make_results(sweep, job.plan(), looking_into(outcomes));
}

experiments::Sweep tiny() {
  return experiments::read_sweep(source_folder() + "/experiments/sweeps/tiny.yaml");
}

double number(const io::Results& results, const std::string& column, std::size_t row = 0) {
  const io::Column* found = results.experiments.find(column);
  REQUIRE(found);
  return found->number_at(row);
}

std::string text(const io::Table& table, const std::string& column, std::size_t row = 0) {
  const io::Column* found = table.find(column);
  REQUIRE(found);
  return std::get<std::vector<std::string>>(found->values).at(row);
}

}  // namespace

TEST_CASE("the answer is the same with sharing, without, and with the tasks in another order") {
  const auto sweep = tiny();
  const std::string shared = io::canonical_bytes(answer(sweep));
  CHECK(io::canonical_bytes(answer(sweep, false)) == shared);
  CHECK(io::canonical_bytes(answer(sweep, true, true)) == shared);
  CHECK(io::canonical_bytes(answer(sweep, false, true)) == shared);
}

TEST_CASE("what a task took is not in the answer") {
  const auto sweep = small_sweep("");
  const SweepJob job(serialize_job(sweep, {}));
  auto outcomes = run_all(job);
  const std::string before = io::canonical_bytes(make_results(sweep, job.plan(), looking_into(outcomes)));
  for (std::uint32_t task = 0; task < outcomes.size(); ++task) {
    if (job.plan().is_step(task)) {
      auto step = core::step::decode_step(outcomes[task].bytes);
      step.cpu_s += 1, step.computed.simulated += 1'000;
      outcomes[task].bytes = core::step::encode(step);
    } else {
      auto collective = decode_collective(outcomes[task].bytes);
      collective.effort.cpu_s += 1, collective.effort.link_hops.simulated += 1'000;
      outcomes[task].bytes = encode(collective);
    }
    outcomes[task].elapsed_us += 1'000;
  }
  CHECK(io::canonical_bytes(make_results(sweep, job.plan(), looking_into(outcomes))) == before);
}

TEST_CASE("throughput and utilisation follow from the step time by their definitions") {
  const auto results = answer(small_sweep("", {"model.layers=4", "strategy.pp=2"}));
  const double step = number(results, "step_time_s");
  CHECK(number(results, "step_time_ps") == Approx(step * 1e12).epsilon(1e-15));
  CHECK(number(results, "gpus") == 8);
  CHECK(number(results, "dp") == 2);
  CHECK(number(results, "tokens_per_s_per_gpu") == Approx(16 * 256 / step / 8).epsilon(1e-12));
  // Narayanan et al. 2021, equation 3, without recomputation: 72 B s l h^2 (1 + s / 6h + V / 12 l h).
  const double batch = 16, s = 256, l = 4, h = 768, vocabulary = 8192;
  const double flops = 72 * batch * s * l * h * h * (1 + s / (6 * h) + vocabulary / (12 * l * h));
  CHECK(number(results, "mfu") == Approx(flops / (step * 8 * 312e12)).epsilon(1e-9));
  double sum = 0, memory = 0;
  for (const io::Column& column : results.experiments.columns) {
    const std::string& name = column.name;
    if (name.ends_with("_s") && !name.starts_with("step_time_")) sum += column.number_at(0);
    if (name.starts_with("memory_") && name != "memory_peak_bytes") memory += column.number_at(0);
  }
  CHECK(sum == Approx(step).epsilon(1e-9));
  CHECK(memory == number(results, "memory_peak_bytes"));
}

TEST_CASE("a step time has the interval of its configuration, and a lower bound has none") {
  const auto sweep = small_sweep("axes: {fidelity: [packet, analytic]}\n");
  const auto results = answer(sweep);
  const auto& settings = sweep.experiments.front().settings;
  const auto sure = experiments::Uncertainty::compiled().of(settings, experiments::config_of(settings));
  const double step = number(results, "step_time_s");
  CHECK(number(results, "step_time_low_s") == step * sure.low);
  CHECK(number(results, "step_time_high_s") == step * sure.high);
  CHECK(number(results, "distinguishable_ratio") == sure.distinguishable_ratio);
  CHECK(text(results.experiments, "step_time_basis", 0) == sure.basis);
  CHECK_FALSE(sure.basis.empty());
  CHECK(text(results.experiments, "step_time_basis_gpu", 0) == "a100_80");
  CHECK(text(results.experiments, "step_time_basis_kind", 0) == "dense");
  CHECK(text(results.experiments, "step_time_basis_gpu", 1).empty());
  CHECK(std::isnan(number(results, "step_time_low_s", 1)));
  CHECK(text(results.experiments, "step_time_basis", 1).empty());
}

TEST_CASE("an experiment that did not run says why, and has NaN and -1 where others have figures") {
  const auto sweep = small_sweep(
      "axes:\n  cluster.gpu.memory_gib: [0.125, 40]\n  limit.link_hops: [1, 1000000000]\n"
      "  strategy.global_batch: [16, 32]\n");
  const SweepJob job(serialize_job(sweep, {}));
  auto outcomes = run_all(job);
  const auto task = job.plan().task_of_step(job.plan().experiments.at(7).step);
  outcomes.at(task) = {Status::error, "it broke", 0};
  const auto results = make_results(sweep, job.plan(), looking_into(outcomes));
  const std::vector<std::string> statuses{"out_of_memory", "out_of_memory", "out_of_memory", "out_of_memory",
                                          "too_large",     "too_large",     "ran",           "failed"};
  for (std::size_t row = 0; row < statuses.size(); ++row) {
    CAPTURE(row);
    const bool ran = row == 6;
    CHECK(text(results.experiments, "status", row) == statuses[row]);
    CHECK(text(results.experiments, "reason", row).empty() == ran);
    for (const char* name :
         {"step_time_s", "step_time_low_s", "distinguishable_ratio", "mfu", "forward_s", "busiest_link_share"})
      CHECK(std::isnan(number(results, name, row)) == !ran);
    for (const char* name : {"step_time_ps", "link_hops", "ecn_marks", "pauses"})
      CHECK((number(results, name, row) == -1) == !ran);
    CHECK(number(results, "memory_peak_bytes", row) > 0.125 * (1 << 30));
  }
  CHECK(text(results.experiments, "reason", 7) == "it broke");
  CHECK_THAT(text(results.experiments, "reason", 4), Catch::Contains("link_hops 1"));
  CHECK_THAT(text(results.experiments, "reason", 0),
             Catch::Contains(fmt::format("{:.2f} of 0.12 GiB", number(results, "memory_peak_bytes") / (1 << 30))));
  CHECK(number(results, "gpu_memory_bytes") == 1 << 27);
}

TEST_CASE("sub-simulations are sorted by key and count the experiments that use them, also those that are one step") {
  const auto one = answer(small_sweep("")), three = answer(small_sweep("axes: {transport.seed: [1, 2, 3]}\n"));
  REQUIRE(one.kernels.rows() > 10);
  REQUIRE(one.collectives.rows() + one.episodes.rows() > 0);
  for (const auto& [of_one, of_three] :
       {std::pair{&one.kernels, &three.kernels}, std::pair{&one.collectives, &three.collectives},
        std::pair{&one.episodes, &three.episodes}}) {
    REQUIRE(of_one->rows() == of_three->rows());
    for (std::size_t row = 0; row < of_one->rows(); ++row) {
      CHECK(text(*of_one, "key", row) == text(*of_three, "key", row));
      CHECK(of_one->find("used_by")->number_at(row) == 1);
      CHECK(of_three->find("used_by")->number_at(row) == 3);
      if (row > 0) CHECK(text(*of_one, "key", row - 1) < text(*of_one, "key", row));
    }
  }
}

TEST_CASE("axes are columns behind the id, and what was left out is kept with its rule") {
  auto sweep = tiny();
  for (auto& experiment : sweep.experiments) {
    for (const char* key :
         {"cluster.usd_per_gpu_hour", "cluster.host_power_w", "cluster.switch_port_power_w", "cluster.pue",
          "training.tokens", "training.budget_days", "training.node_mtbf_hours", "training.restart_s"})
      experiment.settings[key] = 2.0;
  }
  const auto results = answer(sweep);
  CHECK(results.axis_names.front() == "strategy.tp");
  CHECK(results.experiments.columns[0].name == "id");
  for (std::size_t i = 0; i < results.axis_names.size(); ++i)
    CHECK(results.experiments.columns[i + 1].name == results.axis_names[i]);
  CHECK(results.experiments.rows() == 20);  // 3 tp x 2 pp x 2 fabrics x 2, without tp 4 and pp 2
  REQUIRE(results.excluded.rows() == 4);
  for (std::size_t row = 0; row < 4; ++row) {
    CHECK(results.excluded.find("strategy.tp")->number_at(row) == 4);
    CHECK(results.excluded.find("strategy.pp")->number_at(row) == 2);
    CHECK(text(results.excluded, "rule", row) == "where");
    CHECK(text(results.excluded, "reason", row) == "strategy.tp * strategy.pp <= 4");
  }
  CHECK(results.spec == sweep.text);
  for (const experiments::Objective& objective : experiments::objectives())
    CHECK(io::rank_experiments(results, {3, objective.name, ""}).rows.size() == 3);
}

TEST_CASE("an axis over the composition is its column once, and both compositions take the same time") {
  const auto results = answer(small_sweep("axes: {composition: [composed, coupled]}\n"));
  CHECK(text(results.experiments, "composition", 0) == "composed");
  CHECK(text(results.experiments, "composition", 1) == "coupled");
  CHECK(number(results, "step_time_ps", 0) == number(results, "step_time_ps", 1));
}

TEST_CASE("with ticks step times are whole ticks, and the answer is the same with sharing and without") {
  const auto sweep =
      small_sweep("axes: {tick_ns: [200, 1000], strategy.pp: [1, 2], strategy.global_batch: [16, 32]}\n");
  const auto results = answer(sweep);
  for (std::size_t row = 0; row < results.experiments.rows(); ++row)
    CHECK(std::fmod(number(results, "step_time_ps", row), 1000 * number(results, "tick_ns", row)) == 0);
  CHECK(io::canonical_bytes(answer(sweep, false, true)) == io::canonical_bytes(results));
}

TEST_CASE("overrides stand below the sweep's text, since they are part of what was asked") {
  const auto results = answer(small_sweep("", {"strategy.global_batch=32"}));
  CHECK_THAT(results.spec, Catch::EndsWith("\n# --set strategy.global_batch=32\n"));
}

TEST_CASE("provenance adds up what this run computed apart from what it was given") {
  const auto sweep = small_sweep("axes: {transport.seed: [1, 2]}\n");
  const SweepJob job(serialize_job(sweep, {}));
  auto outcomes = run_all(job);
  for (Outcome& outcome : outcomes) outcome.elapsed_us = std::max<std::int64_t>(1, outcome.elapsed_us);
  io::Results now = make_results(sweep, job.plan(), looking_into(outcomes));
  add_provenance(now, job.plan(), looking_into(outcomes), {}, true, std::nullopt);
  for (Outcome& outcome : outcomes) outcome.elapsed_us = 0;
  io::Results later = make_results(sweep, job.plan(), looking_into(outcomes));
  add_provenance(later, job.plan(), looking_into(outcomes), {}, true, std::nullopt);
  const double simulated = provenance_number(now, "link_hops_simulated");
  CHECK(simulated > 0);
  CHECK(provenance_number(now, "link_hops_simulated_earlier") == 0);
  CHECK(provenance_number(later, "link_hops_simulated") == 0);
  CHECK(provenance_number(later, "link_hops_simulated_earlier") == simulated);
  CHECK(provenance_number(now, "link_hops_transferred") == 2 * number(now, "link_hops"));
  CHECK(io::canonical_bytes(now) == io::canonical_bytes(later));
}

TEST_CASE("link-hops of equal collectives are those of uses beyond the first, and none of what no step used") {
  const auto sweep = small_sweep("axes: {strategy.global_batch: [16, 32]}\n");
  const SweepJob job(serialize_job(sweep, {}));
  const Plan& plan = job.plan();
  auto outcomes = run_all(job);
  const auto skipped = [&] {
    io::Results results = make_results(sweep, plan, looking_into(outcomes));
    add_provenance(results, plan, looking_into(outcomes), {}, true, std::nullopt);
    return provenance_number(results, "link_hops_skipped_collectives");
  };
  double expected = 0;
  for (std::uint32_t collective = 0; collective < plan.collectives.size(); ++collective) {
    std::int64_t uses = 0;
    for (std::uint32_t step = 0; step < plan.steps.size(); ++step)
      for (const auto& used : core::step::decode_step(outcomes[plan.task_of_step(step)].bytes).collectives)
        if (used.key == plan.collectives[collective].key) uses += used.times;
    const auto alone = decode_collective(outcomes[collective].bytes).result.counters.link_hops;
    for (std::int64_t use = 1; use < uses; ++use) expected += static_cast<double>(alone);
  }
  CHECK(expected > 0);
  CHECK(skipped() == expected);
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step) {  // as if all had shared their links with others
    std::string& bytes = outcomes[plan.task_of_step(step)].bytes;
    auto result = core::step::decode_step(bytes);
    result.collectives.clear();
    bytes = encode(result);
  }
  CHECK(skipped() == 0);
}

TEST_CASE("a sweep of experiments beyond their limit skipped nothing, and its summary does not say so") {
  const auto sweep = small_sweep("", {"limit.link_hops=1"});
  const SweepJob job(serialize_job(sweep, {}));
  const auto outcomes = run_all(job);
  io::Results results = make_results(sweep, job.plan(), looking_into(outcomes));
  add_provenance(results, job.plan(), looking_into(outcomes), {}, true, std::nullopt);
  REQUIRE(text(results.experiments, "status") == "too_large");
  CHECK(provenance_number(results, "link_hops_transferred") == 0);
  CHECK_THAT(summary_text(results), Catch::Contains("beyond their limit") && !Catch::Contains("skipped"));
}

TEST_CASE("an analytic row says so, has no packet counts, and is never slower than the packet row beside it") {
  const auto results = answer(small_sweep("axes:\n  fidelity: [packet, analytic]\n  strategy.pp: [1, 2]\n"));
  for (const std::size_t packet : {0u, 1u}) {
    const std::size_t analytic = packet + 2;
    CHECK(text(results.experiments, "fidelity", packet) == "packet");
    CHECK(text(results.experiments, "fidelity", analytic) == "analytic");
    CHECK(number(results, "link_hops", packet) > 0);
    for (const char* count : {"link_hops", "ecn_marks", "pauses"}) CHECK(number(results, count, analytic) == -1);
    CHECK(number(results, "step_time_ps", analytic) <= number(results, "step_time_ps", packet));
    CHECK(number(results, "step_time_ps", analytic) > 0);
  }
}

TEST_CASE("an answer has every column on which readers of results rely") {
  const auto sweep = small_sweep("");
  const SweepJob job(serialize_job(sweep, {}));
  const auto results = make_results(sweep, job.plan(), looking_into(run_all(job)));
  for (const auto& [name, type] : io::required_columns()) {
    CAPTURE(name);
    const io::Column* column = results.experiments.find(name);
    REQUIRE(column != nullptr);
    CHECK(column->type() == type);
  }
}
