// Energy, money and time of a step and of a training run, from settings to figures.
#include <catch2/catch.hpp>

#include <cmath>

#include "core/workload/layer/layer_parameters.hpp"
#include "experiments/analysis/costs.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

namespace {

/// Two nodes of four A100 (400 W, idle 51 W), a step of 2 s: 1 s of kernels, 0.25 s of the optimizer's, 0.5 s of
/// exposed communication and 0.25 s of bubble. 8 sequences of 32 tokens.
core::step::StepResult two_seconds() {
  core::step::StepResult step;
  step.step_ps = 2 * core::kSecond;
  step.breakdown[core::workload::StepPart::forward] = 0.4;
  step.breakdown[core::workload::StepPart::backward] = 0.6;
  step.breakdown[core::workload::StepPart::optimizer] = 0.25;
  step.breakdown[core::workload::StepPart::exposed_dp] = 0.5;
  step.breakdown[core::workload::StepPart::bubble] = 0.25;
  return step;
}
constexpr double kGpus = 8, kTokens = 8 * 32;

Costs costs(const std::vector<std::string>& sets, const core::step::StepResult& step = two_seconds()) {
  const ExperimentConfig config = read(kSingle, sets).experiments.at(0).config();
  GraphCache graphs;
  return costs_of(config, step, graphs.get(config).get());
}

const std::vector<std::string> kMachine{"cluster.host_power_w=1000", "cluster.switch_port_power_w=20",
                                        "cluster.pue=1.5"};
const std::vector<std::string> kFails{"training.node_mtbf_hours=10", "training.restart_s=300",
                                      "training.checkpoint=sync", "training.block_s=60"};

std::vector<std::string> both(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("each share of power counts where its part of the step is spent") {
  const auto joules = [](const std::vector<std::string>& sets) {
    return costs(sets).gpu_energy_per_token_j * kTokens / kGpus;
  };
  const double idle = 51, way = 400 - 51;
  CHECK(joules({}) == Approx(1.25 * 400 + 0.5 * (idle + 0.25 * way) + 0.25 * idle).epsilon(1e-12));
  CHECK(joules({"cluster.gpu.kernel_power_share=0.8", "cluster.gpu.optimizer_power_share=0.5",
                "cluster.gpu.communication_power_share=0.3", "cluster.gpu.waiting_power_share=0.1"}) ==
        Approx(2 * idle + way * (1 * 0.8 + 0.25 * 0.5 + 0.5 * 0.3 + 0.25 * 0.1)).epsilon(1e-12));
}

TEST_CASE("a machine draws its GPUs, its nodes and the ports of its switches, and the building more") {
  // Ends of cables at switches, counted from both sides.
  const ExperimentConfig config = read(kSingle).experiments.at(0).config();
  GraphCache graphs;
  const auto graph = graphs.get(config);
  std::int64_t ports = 0;
  for (const core::network::Link& link : graph->links)
    for (const std::uint32_t end : {link.from, link.to})
      if (graph->vertices[end] == core::network::VertexKind::network_switch) ++ports;
  REQUIRE(ports > 0);
  CHECK(switch_ports(*graph) == ports / 2);  // each cable is two links

  const Costs all = costs(kMachine);
  const double gpus = kGpus * (1.25 * 400 + 0.5 * (51 + 0.25 * 349) + 0.25 * 51);
  const double hosts = 2 * 1000 * 2, network = 20 * static_cast<double>(ports) / 2 * 2;
  CHECK(all.host_energy_per_token_j == Approx(hosts / kTokens).epsilon(1e-12));
  CHECK(all.network_energy_per_token_j == Approx(network / kTokens).epsilon(1e-12));
  CHECK(all.energy_per_step_j == Approx(1.5 * (gpus + hosts + network)).epsilon(1e-12));
  CHECK(all.energy_per_token_j == Approx(all.energy_per_step_j / kTokens).epsilon(1e-12));
}

TEST_CASE("a figure that nobody gave leaves what follows from it unknown, and nothing else") {
  const Costs none = costs({});
  CHECK(std::isnan(none.host_energy_per_token_j));
  CHECK(std::isnan(none.energy_per_token_j));
  CHECK(std::isnan(none.usd_per_million_tokens));
  CHECK(std::isnan(none.train_time_s));
  CHECK(std::isnan(none.goodput));
  CHECK(none.gpu_energy_per_token_j > 0);
  for (std::size_t left = 0; left < kMachine.size(); ++left) {
    std::vector<std::string> sets = kMachine;
    sets.erase(sets.begin() + static_cast<std::ptrdiff_t>(left));
    CHECK(std::isnan(costs(sets).energy_per_token_j));
  }
  // One node needs no network, and so no figure of it.
  const Costs one = costs({"cluster.nodes=1", "cluster.host_power_w=1000", "cluster.pue=1"});
  CHECK(one.network_energy_per_token_j == 0);
  CHECK(one.energy_per_token_j > 0);
}

TEST_CASE("GPUs are rented by the hour, or bought with the energy they take") {
  CHECK(costs({"cluster.usd_per_gpu_hour=3"}).usd_per_million_tokens ==
        Approx(3 * kGpus * 2 / 3600 / kTokens * 1e6).epsilon(1e-12));
  const std::vector<std::string> bought{"cluster.usd_per_gpu=35064", "cluster.lifetime_years=4",
                                        "cluster.utilisation=0.5"};
  // 35,064 USD over half of 35,064 hours.
  CHECK(costs(both(bought, {"cluster.usd_per_kwh=0"})).usd_per_million_tokens ==
        Approx(2 * kGpus * 2 / 3600 / kTokens * 1e6).epsilon(1e-12));
  const Costs paid = costs(both(both(bought, {"cluster.usd_per_kwh=0.2"}), kMachine));
  CHECK(paid.usd_per_million_tokens ==
        Approx((2 * kGpus * 2 / 3600 + 0.2 * paid.energy_per_step_j / 3.6e6) / kTokens * 1e6).epsilon(1e-12));
  CHECK(std::isnan(costs(both(bought, {"cluster.usd_per_kwh=0.2"})).usd_per_million_tokens));
}

TEST_CASE("a run without failures takes its steps, and what they cost") {
  const Costs run = costs(both(kMachine, {"training.tokens=2.56e6", "cluster.usd_per_gpu_hour=3"}));
  const double steps = 1e4;
  CHECK(run.train_time_s == Approx(steps * 2).epsilon(1e-12));
  CHECK(run.train_energy_kwh == Approx(steps * run.energy_per_step_j / 3.6e6).epsilon(1e-12));
  CHECK(run.train_usd == Approx(run.usd_per_million_tokens * 2.56).epsilon(1e-12));
  CHECK(std::isnan(run.goodput));
}

TEST_CASE("a run with failures takes longer by its goodput, idles while it waits, and is paid for all of it") {
  const Costs run = costs(both(both(kMachine, kFails), {"training.tokens=2.56e6", "cluster.usd_per_gpu_hour=3"}));
  const Failures failures{10 * 3600 / 2.0, 1, 300, 300};  // two nodes
  const CheckpointPlan plan = best_checkpoint_plan({60, 0, 1}, failures);
  CHECK(run.goodput == plan.shares.goodput);
  CHECK(run.checkpoint_interval_s == plan.interval_s);
  CHECK(run.checkpoint_block_s == 60);
  CHECK(run.goodput_first_order == first_order_goodput({60, 0, 1}, failures, plan.interval_s));
  CHECK(run.goodput + run.rework_share + run.checkpointing_share + run.restarting_share == Approx(1).epsilon(1e-12));
  CHECK(run.train_time_s == Approx(20'000 / run.goodput).epsilon(1e-12));
  CHECK(run.train_usd == Approx(3 * kGpus * run.train_time_s / 3600).epsilon(1e-12));
  const double ports = run.network_energy_per_token_j * kTokens / 2;  // W
  const double waits_w = 1.5 * (kGpus * 51 + 2 * 1000 + ports), works_w = run.energy_per_step_j / 2;
  const double works = run.goodput + run.rework_share;
  CHECK(run.train_energy_kwh ==
        Approx(run.train_time_s * (works * works_w + (1 - works) * waits_w) / 3.6e6).epsilon(1e-12));
}

TEST_CASE("nodes and GPUs fail alike where their times say the same, and other clusters by their size") {
  const std::vector<std::string> checkpoint{"training.restart_s=300", "training.checkpoint=sync",
                                            "training.block_s=60"};
  const auto goodput = [&](const std::vector<std::string>& sets) { return costs(both(checkpoint, sets)).goodput; };
  const double now = goodput({"training.node_mtbf_hours=10"});
  CHECK(goodput({"training.gpu_mtbf_hours=40"}) == now);
  CHECK(goodput({"training.node_mtbf_hours=20", "cluster.nodes=4"}) == Approx(now).epsilon(1e-12));
  CHECK(goodput({"training.node_mtbf_hours=10", "cluster.nodes=4"}) < now);
}

TEST_CASE("a checkpoint is the weights and the optimizer's states, each once, whatever the layout") {
  for (const char* name : {"gpt3-1.3b", "llama3-8b", "qwen3-30b-a3b"}) {
    INFO(name);
    const auto bytes = [&](const std::vector<std::string>& sets) {
      const std::string spec = with(kSingle, "{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}", name);
      return checkpoint_bytes(read(spec, sets).experiments.at(0).config().configuration.model);
    };
    const std::vector<std::string> plain{"strategy.tp=1", "strategy.pp=1"};
    const std::vector<std::string> split{"strategy.tp=2", "strategy.sequence_parallel=true", "strategy.zero=1",
                                         "strategy.pp=1"};
    const std::string spec = with(kSingle, "{layers: 4, hidden: 64, heads: 4, vocabulary: 512, sequence: 32}", name);
    const auto model = read(spec, plain).experiments.at(0).config().configuration.model;
    const double parameters = static_cast<double>(core::workload::model_parameters(model));
    CHECK(bytes(plain) == bytes(split));
    // 2 bytes of weights, 4 of fp32 weights and 8 of moments; rows that pad the vocabulary come to 0.1 % at most.
    CHECK(static_cast<double>(bytes(plain)) == Approx(14 * parameters).epsilon(1e-3));
  }
}

TEST_CASE("what a checkpoint costs follows from its bytes: the machine's storage, or each GPU's copy to its host") {
  Training training;
  training.storage_gb_per_s = 2;
  training.snapshot_gb_per_s = 10;
  const auto with_kind = [&](CheckpointKind kind) {
    training.checkpoint = kind;
    return checkpoints_of(training, 1e12, 100);
  };
  const Checkpoints sync = with_kind(CheckpointKind::sync), async = with_kind(CheckpointKind::async),
                    flash = with_kind(CheckpointKind::flash);
  CHECK((sync.block_s == 500 && sync.persist_s == 0));
  CHECK((async.block_s == Approx(1) && async.persist_s == 500 && async.checkpoints_per_persist == 1));
  CHECK((flash.block_s == Approx(1) && flash.persist_s == 500 && flash.checkpoints_per_persist == 0));
  training.block_s = 7;
  CHECK((with_kind(CheckpointKind::sync).block_s == 7 && with_kind(CheckpointKind::flash).block_s == 7));
}

TEST_CASE("memory keeps a run from storage where failures leave it, or where copies of it are in two nodes") {
  Training training;
  training.node_mtbf_hours = 100;
  training.restart_s = 600;
  training.memory_restart_s = 60;
  training.node_loss_share = 0.5;
  for (const CheckpointKind kind : {CheckpointKind::none, CheckpointKind::sync, CheckpointKind::async}) {
    training.checkpoint = kind;
    CHECK(failures_of(training, 10, 80).storage_restart_share == 1);
    CHECK(failures_of(training, 10, 80).mtbf_s == Approx(36'000));
  }
  training.checkpoint = CheckpointKind::flash;
  CHECK(failures_of(training, 10, 80).storage_restart_share == 0.5);
  CHECK(failures_of(training, 10, 80).memory_restart_s == 60);
  training.replicas = 2;
  CHECK(failures_of(training, 10, 80).storage_restart_share == 0);
  training.memory_restart_s = -1;
  CHECK(failures_of(training, 10, 80).memory_restart_s == 600);
}

TEST_CASE("a run without checkpoints needs a length for its goodput, and may never end") {
  const std::vector<std::string> fails{"training.node_mtbf_hours=10", "training.restart_s=300"};
  CHECK(std::isnan(costs(fails).goodput));
  const Costs run = costs(both(fails, {"training.tokens=2.56e6"}));
  CHECK(run.goodput ==
        Approx(20'000.0 / 18'000 * std::exp(-300.0 / 18'000) / std::expm1(20'000.0 / 18'000)).epsilon(1e-12));
  CHECK(std::isnan(run.checkpoint_interval_s));
  CHECK(std::isinf(costs(both(fails, {"training.tokens=1e15"})).train_time_s));
}

TEST_CASE("the sweep that is shipped of checkpoints leaves what docs/model/costs.md prints beside the claim") {
  const Sweep sweep = read_sweep(source_folder() + "/experiments/sweeps/checkpointing.yaml");
  REQUIRE(sweep.experiments.size() == 8);
  core::step::StepResult step = two_seconds();  // goodput does not depend on it
  std::vector<std::string> printed;
  std::vector<Costs> all;
  for (const Experiment& experiment : sweep.experiments) {
    all.push_back(costs_of(experiment.config(), step, nullptr));
    printed.push_back(fmt::format("{:.1f} %", 100 * all.back().goodput));
  }
  CHECK(printed == std::vector<std::string>{"91.7 %", "98.3 %", "98.4 %", "98.6 %",  // 1,024 GPUs
                                            "76.5 %", "91.9 %", "92.5 %", "94.5 %"});
  const auto spent = [&](std::size_t at) { return all[at].checkpointing_share + all[at].rework_share; };
  CHECK(fmt::format("{:.0f} %, {:.0f} %", 100 * (1 - spent(7) / spent(4)), 100 * (1 - spent(6) / spent(4))) ==
        "86 %, 77 %");
  CHECK(fmt::format("{:.0f} %, {:.0f} %", 100 * (1 - (1 - all[7].goodput) / (1 - all[4].goodput)),
                    100 * (1 - (1 - all[6].goodput) / (1 - all[4].goodput))) == "76 %, 68 %");
}
