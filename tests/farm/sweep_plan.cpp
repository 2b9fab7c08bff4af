// Plans: what must be computed for a sweep, no more and no less.
#include <catch2/catch.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/memory/footprint.hpp"
#include "farm/plan/sweep_task_spec.hpp"
#include "farm/protocol/job_signature.hpp"
#include "tests/farm/sweep_samples.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;
using core::sharing::Key;

TEST_CASE("experiments with equal configurations are one step, others are not") {
  // A seed means nothing to routes that follow the destination; every route of a hashed one may change with it.
  const auto same = make_plan(small_sweep("axes: {transport.seed: [1, 2, 3]}\n"));
  REQUIRE(same.steps.size() == 1);
  CHECK(same.steps[0].experiments == 3);
  for (const auto& experiment : same.experiments) CHECK(experiment.step == 0);

  const auto other = make_plan(small_sweep("axes: {strategy.global_batch: [16, 32]}\n"));
  REQUIRE(other.steps.size() == 2);
  CHECK(other.steps[0].key != other.steps[1].key);
}

TEST_CASE("a setting of the library makes another step where it makes another collective, and only there") {
  const auto algorithms =
      make_plan(small_sweep("axes: {collectives.all_reduce: [ring, halving_doubling, double_tree, auto]}\n"));
  CHECK(algorithms.steps.size() == 4);
  const auto costs = make_plan(small_sweep("axes: {collectives.protocol: [none, simple, ll]}\n"));
  CHECK(costs.steps.size() == 3);
  // Nothing is broadcast here, and halving and doubling has neither chunks nor channels.
  CHECK(make_plan(small_sweep("axes: {collectives.broadcast: [chain, binomial_tree]}\n")).steps.size() == 1);
  CHECK(make_plan(small_sweep("axes: {collectives.chunk_bytes: [0, 1MiB], collectives.channels: [1, 2]}\n",
                              {"collectives.all_reduce=halving_doubling"}))
            .steps.size() == 1);
}

TEST_CASE("a tick makes another step of the same collectives, and a tick of 0 none") {
  const Plan exact = make_plan(small_sweep(""));
  const Plan both = make_plan(small_sweep("axes: {tick_ns: [0, 200ns, 1us]}\n"));
  REQUIRE(both.steps.size() == 3);
  CHECK(both.steps[0].key == exact.steps[0].key);
  REQUIRE(both.collectives.size() == exact.collectives.size());
  for (const PlannedStep& step : both.steps) CHECK(step.collectives == exact.steps[0].collectives);
}

TEST_CASE("an automatic library's choice follows the fabric: outlines are not shared beyond it") {
  const auto sweep = small_sweep("axes: {cluster.nic_gbps: [1, 400]}\n", {"collectives.all_reduce=auto"});
  const Plan plan = make_plan(sweep);
  experiments::GraphCache graphs;
  core::step::SimulationContext context;
  REQUIRE(plan.steps.size() == 2);
  for (const PlannedStep& step : plan.steps) {
    const auto compiled = context.compile(configure(sweep.experiments[step.experiment], graphs));
    std::set<Key> used, planned;
    for (const auto& collective_op : compiled.collective_ops()) used.insert(collective_op.key);
    for (const std::uint32_t number : step.collectives) planned.insert(plan.collectives.at(number).key);
    CHECK(planned == used);
  }
}

TEST_CASE("a step's inputs are the collectives of its experiment, each planned once, before it") {
  const auto sweep = small_sweep("axes: {strategy.tp: [1, 2, 4], strategy.pp: [1, 2]}\n", {"strategy.global_batch=16"});
  const Plan plan = make_plan(sweep);
  experiments::GraphCache graphs;
  core::step::SimulationContext context;
  REQUIRE(plan.steps.size() == sweep.experiments.size());
  std::set<Key> all;
  for (const PlannedStep& step : plan.steps) {
    const auto compiled = context.compile(configure(sweep.experiments[step.experiment], graphs));
    CHECK(step.instances == compiled.instances());
    std::set<Key> used, planned;
    for (const auto& collective_op : compiled.collective_ops()) used.insert(collective_op.key);
    for (const std::uint32_t number : step.collectives) planned.insert(plan.collectives.at(number).key);
    CHECK(planned == used);
    CHECK(planned.size() == step.collectives.size());
    all.insert(used.begin(), used.end());
  }
  CHECK(all.size() == plan.collectives.size());
  for (const PlannedCollective& collective : plan.collectives) {
    const auto compiled = context.compile(configure(sweep.experiments[collective.experiment], graphs));
    CHECK(std::any_of(compiled.collective_ops().begin(), compiled.collective_ops().end(), [&](const auto& one) {
      return one.group == collective.group && one.shape == collective.shape && one.key == collective.key;
    }));
  }
  const auto tasks = tasks_of(plan, true);
  for (std::uint32_t task = 0; task < tasks.size(); ++task) {
    CHECK(tasks[task].storable);
    for (const auto input : tasks[task].inputs) CHECK(input < task);
  }
}

TEST_CASE("a task says all of the shape that it is to simulate") {
  using namespace core::collective;
  SweepTaskSpec spec;
  spec.shape.kind = Kind::all_to_all, spec.shape.algorithm = Algorithm::hybrid_ep;
  spec.shape.members = 16, spec.shape.per_node = 8, spec.shape.bytes = 1'000'000;
  spec.shape.channels = 3, spec.shape.chunk_bytes = 7, spec.shape.protocol = Protocol::calibrated_simple;
  spec.shape.calibrated = {1, 2, 3, 4, 5, 6, 7};
  spec.shape.node_bytes = 11;
  spec.shape.queue_pairs = 4, spec.shape.message_bytes = 13;
  spec.shape.rail_switches = spec.shape.at_once = spec.shape.node_mesh = true;
  spec.shape.split = rooted_split(2, 16, 1'000'000);
  const GivenAlgorithm given{
      "own",
      Kind::all_gather,
      2,
      3,
      4,
      5,
      Protocol::ll128,
      {{0, 1, -1, 6, {{false, true, false, 7}}},
       {1, -1, 0, 6, {{true, false, true, 7, 0, 1, true}, {false, false, false, 0, 1, 0, false}}}}};
  spec.shape.given = {std::make_shared<const GivenAlgorithm>(given)};
  const Shape read = decode_task_spec(encode(spec)).shape;
  CHECK(read == spec.shape);
  CHECK(*read.given == given);
}

TEST_CASE("an experiment fits when its peak is at most the GPU's memory, to the byte") {
  const auto base = small_sweep("");
  const auto configuration = base.experiments[0].config().configuration;
  const std::int64_t peak = core::memory::peak(configuration.model, configuration.strategy, configuration.gpu).total();
  const auto with_memory = [](std::int64_t bytes) {
    return make_plan(
        small_sweep("", {fmt::format("cluster.gpu.memory_gib={:.17g}", static_cast<double>(bytes) / (1 << 30))}));
  };
  const Plan enough = with_memory(peak), too_little = with_memory(peak - 1);
  CHECK(enough.experiments[0].fits());
  CHECK(enough.experiments[0].memory_bytes == peak);
  CHECK_FALSE(too_little.experiments[0].fits());
  CHECK(too_little.experiments[0].memory.total() == peak);
  CHECK(too_little.steps.empty());
  CHECK(too_little.collectives.empty());
}

TEST_CASE("without sharing every experiment is a step of its own, and nothing is stored or handed over") {
  const auto sweep = small_sweep("axes: {transport.seed: [1, 2, 3]}\n");
  const Plan plan = make_plan(sweep, false);
  CHECK(plan.steps.size() == 3);
  CHECK(plan.collectives.empty());
  for (const Task& task : tasks_of(plan, false)) {
    CHECK_FALSE(task.storable);
    CHECK(task.inputs.empty());
  }
}

TEST_CASE("a coupled step asks for no collective") {
  const Plan plan = make_plan(small_sweep("axes: {composition: [composed, coupled]}\n"));
  REQUIRE(plan.steps.size() == 2);
  CHECK_FALSE(plan.steps[0].collectives.empty());
  CHECK(plan.steps[1].collectives.empty());
}

TEST_CASE("every process that reads the serialized sweep has the same tasks, orders and signature") {
  const auto sweep = small_sweep("axes: {strategy.tp: [1, 2], topology: [{rail_optimized: {}}, {fat_tree: {}}]}\n");
  const std::string serialized = serialize_job(sweep, {});
  CHECK(serialize_job(experiments::deserialize(parse_job(serialized).sweep), {}) == serialized);
  CHECK(parse_job(serialized).options.share);
  CHECK_FALSE(parse_job(serialize_job(sweep, {false, {}})).options.share);
  CHECK(parse_job(serialized).objective == sweep.objective);
  const SweepJob one(serialized), other(serialized);
  const auto tasks = tasks_of(make_plan(sweep), true);
  REQUIRE(one.tasks().size() == tasks.size());
  CHECK(one.common_spec() == other.common_spec());
  for (std::uint32_t task = 0; task < tasks.size(); ++task) {
    CHECK(one.tasks()[task].key == tasks[task].key);
    CHECK(one.spec(task) == other.spec(task));
  }
  CHECK(job_signature(one.common_spec()) != job_signature(SweepJob(serialize_job(sweep, {false, {}})).common_spec()));
}

TEST_CASE("an order holds what is the experiment's own, and is as small in a large sweep as in a small one") {
  const auto axes = [](int sizes) {
    std::string all = "axes: {strategy.tp: [1, 2, 4], strategy.global_batch: [16";
    for (int size = 1; size < sizes; ++size) all += fmt::format(", {}", 16 + 8 * size);
    return all + "]}\n";
  };
  const SweepJob small(serialize_job(small_sweep(axes(2)), {})), large(serialize_job(small_sweep(axes(40)), {}));
  CHECK(large.common_spec() == small.common_spec());
  CHECK(large.spec(0) == small.spec(0));
  for (std::uint32_t task = 0; task < large.plan().collectives.size(); ++task) {
    const SweepTaskSpec spec = decode_task_spec(large.spec(task));
    const auto experiment = large.sweep().experiments[large.plan().collectives[task].experiment];
    const auto common_spec = experiments::common_settings_of(large.sweep());
    CHECK(experiments::deserialize_own_settings(spec.settings, common_spec).settings == experiment.settings);
    CHECK(spec.settings.size() < 200);
  }
}

TEST_CASE("an order cut anywhere is an internal error") {
  const SweepJob job(serialize_job(small_sweep(""), {}));
  const std::string whole = job.spec(static_cast<std::uint32_t>(job.tasks().size() - 1));
  CHECK(encode(decode_task_spec(whole)) == whole);
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_THROWS_AS(decode_task_spec(whole.substr(0, size)), core::InternalError);
}

TEST_CASE("a serialized sweep that is none is bad input") {
  CHECK_THROWS_AS(SweepJob("{}"), core::InputError);
  CHECK_THROWS_AS(SweepJob("not json"), core::InputError);
  CHECK_THROWS_AS(parse_job(experiments::serialize(small_sweep(""))), core::InputError);
  CHECK(parse_job(serialize_job(small_sweep(""), {true, {3, 3}})).options.shard == Shard{3, 3});
  for (const Shard shard : {Shard{0, 2}, Shard{3, 2}, Shard{1, kMaxShards + 1}})
    CHECK_THROWS_AS(parse_job(serialize_job(small_sweep(""), {true, shard})), core::InputError);
}

TEST_CASE("a serialized job is JSON that says its sweep, and notices every change of a byte and every cut") {
  const std::string serialized = serialize_job(small_sweep(""), {true, {2, 3}});
  const auto read = nlohmann::json::parse(serialized);
  CHECK(read.at("sweep") == nlohmann::json::parse(experiments::serialize(small_sweep(""))));
  CHECK(read.at("shard") == std::vector<int>{2, 3});
  for (std::size_t at = 0; at < serialized.size(); ++at) {
    CAPTURE(at);
    std::string changed = serialized;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    CHECK_THROWS_AS(parse_job(changed), core::InputError);
    CHECK_THROWS_AS(parse_job(serialized.substr(0, at)), core::InputError);
  }
}
