// What a step computes and sends, against the closed forms of the papers, without any hardware.
#include "core/step/estimate/volumes.hpp"

#include <catch2/catch.hpp>

#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"

using namespace manyworlds::core;
using collective::Kind;
using step::sent_bytes;
using step::SentBytes;
using step::step_volumes;
using step::StepVolumes;

namespace {

constexpr std::int64_t kLayers = 8, kHidden = 1024, kSequence = 512, kBatch = 32;

workload::Model gpt() {
  workload::Model model;
  model.layers = kLayers;
  model.hidden = kHidden;
  model.heads = 16;
  model.kv_heads = 16;
  model.ffn_hidden = 4 * kHidden;
  model.vocabulary = 8192;  // no padding for tp up to 8
  model.sequence = kSequence;
  model.tied_embeddings = false;
  return model;
}

workload::Strategy layout(std::int64_t tp, std::int64_t pp, std::int64_t dp) {
  workload::Strategy strategy;
  strategy.tp = tp;
  strategy.pp = pp;
  strategy.dp = dp;
  strategy.global_batch = kBatch;
  return strategy;
}

StepVolumes volumes(const workload::Strategy& strategy, std::int64_t gpus_per_node = 8, step::Balance balance = {}) {
  return step_volumes(gpt(), strategy, gpus_per_node, balance);
}

}  // namespace

TEST_CASE("a ring sends 2 (n - 1) / n of a vector to sum it, and its channels share a node's NICs") {
  // 16 members, 8 in each of two nodes.
  const SentBytes ring = sent_bytes(Kind::all_reduce, 1e9, 16, 1, 8);
  CHECK(ring.inside == Approx(2 * 15.0 / 16 * 1e9));
  CHECK(ring.between == Approx(2 * 15.0 / 16 * 1e9 / 8));
  CHECK(sent_bytes(Kind::all_gather, 1e9, 8, 1, 8).inside == Approx(7.0 / 8 * 1e9));
  CHECK(sent_bytes(Kind::all_gather, 1e9, 8, 1, 8).between == 0);
  // One member in each node: nothing stays inside.
  CHECK(sent_bytes(Kind::reduce_scatter, 1e9, 4, 8, 8).inside == 0);
  CHECK(sent_bytes(Kind::reduce_scatter, 1e9, 4, 8, 8).between == Approx(0.75e9));
  // Of 16 parts one stays on the rank, 7 in the node.
  CHECK(sent_bytes(Kind::all_to_all, 1.6e9, 16, 1, 8).inside == Approx(0.7e9));
  CHECK(sent_bytes(Kind::all_to_all, 1.6e9, 16, 1, 8).between == Approx(0.8e9));
  CHECK(sent_bytes(Kind::send, 5, 2, 4, 8).inside == 5);
  CHECK(sent_bytes(Kind::send, 5, 2, 8, 8).between == 5);
  CHECK(sent_bytes(Kind::all_reduce, 1e9, 1, 1, 8).inside == 0);
}

TEST_CASE("a step's FLOPs are the model's, divided over its ranks, and a third more of its layers with recomputation") {
  const auto whole = static_cast<double>(kBatch * workload::model_flops_per_sequence(gpt()));
  CHECK(volumes(layout(1, 1, 1)).flops == Approx(whole).epsilon(1e-12));
  CHECK(volumes(layout(4, 1, 1)).flops == Approx(whole / 4).epsilon(1e-12));
  CHECK(volumes(layout(2, 1, 4)).flops == Approx(whole / 8).epsilon(1e-12));
  workload::Strategy full = layout(1, 1, 1);
  full.recompute = workload::Recompute::full;
  const double head = 6.0 * kBatch * kSequence * kHidden * 8192;  // is not recomputed
  CHECK(volumes(full).flops == Approx(whole + (whole - head) / 3).epsilon(1e-12));
}

TEST_CASE("tensor parallelism sends four all-reduces a layer, and replicas their gradients once") {
  // Shoeybi et al. 2019, section 3: two forward and two backward, of b s h elements of 16 bits; embedding and head sum
  // their outputs too, once each, and the loss a few numbers a token.
  const double hidden_states = 2.0 * kBatch * kSequence * kHidden;
  const StepVolumes tensor = volumes(layout(2, 1, 1));
  CHECK(tensor.tensor.inside == Approx((4 * kLayers + 2) * hidden_states * 2 * 0.5).epsilon(2e-3));
  CHECK(tensor.tensor.between == 0);
  CHECK(tensor.replicas.inside == 0);
  const double parameters = static_cast<double>(workload::model_parameters(gpt()));
  for (const std::int64_t zero : {0, 1}) {
    workload::Strategy replicas = layout(1, 1, 4);
    replicas.zero = zero;
    const double gradient = static_cast<double>(workload::gradient_bytes(replicas));
    // ZeRO 1 scatters gradients and gathers 16-bit parameters.
    const double expected = zero == 0 ? 2 * 0.75 * gradient * parameters : 0.75 * (gradient + 2) * parameters;
    CHECK(volumes(replicas).replicas.inside == Approx(expected).epsilon(1e-6));
    CHECK(volumes(replicas, 1).replicas.between == Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("the bubble of equal stages that send for nothing is (p - 1) / (m + p - 1)") {
  workload::Strategy strategy = layout(1, 4, 1);
  step::Balance balance;
  balance.flops_per_byte = balance.flops_per_us = 0;
  workload::Model model = gpt();
  model.vocabulary = 128;  // hardly any embedding and head
  const StepVolumes all = step_volumes(model, strategy, 8, balance);
  CHECK(all.bubble_share == Approx(3.0 / (kBatch + 3)).epsilon(0.02));
  // Stages in one node send hidden states forward and their gradients back.
  CHECK(all.stages.inside == Approx(2.0 * 2 * kBatch * kSequence * kHidden).epsilon(1e-12));
  strategy.schedule = workload::schedule_by_name("zb_h1");
  CHECK(step_volumes(model, strategy, 8, balance).bubble_share < 0.7 * all.bubble_share);
  for (const std::int64_t zero : {0, 3})
    for (const char* schedule : {"1f1b", "gpipe", "zb_h1", "dualpipe"}) {
      workload::Strategy sharded = layout(1, 4, 2);
      sharded.zero = zero;
      sharded.schedule = workload::schedule_by_name(schedule);
      sharded.virtual_stages = schedule == std::string("dualpipe") ? 2 : 1;
      CAPTURE(zero, schedule);
      CHECK(step_volumes(model, sharded, 8, {}).bubble_share > 0);
    }
}

TEST_CASE("a step that sends for nothing and moves no memory weighs its FLOPs, and bytes add to it") {
  step::Balance balance{0, 0, 0, 0};
  const StepVolumes free = volumes(layout(2, 1, 2), 8, balance);
  CHECK(free.weight == Approx(free.flops).epsilon(1e-12));
  balance.flops_per_byte = 1000;
  const double sent = volumes(layout(2, 1, 2), 8, balance).weight;
  CHECK(sent > free.weight);
  balance.node_factor = 10;
  CHECK(volumes(layout(2, 1, 2), 2, balance).weight > sent);  // replicas in two nodes
  // A host that takes long for launches hides the rest: of 100 ms a kernel, forward and backward.
  workload::Strategy slow = layout(1, 1, 1);
  slow.stack.host_kernel_us = 1e5;
  balance = {0, 0, 0, 1e6};
  const StepVolumes launched = volumes(slow, 8, balance);
  CHECK(launched.launches > 10 * kLayers * kBatch);
  CHECK(launched.weight == Approx(launched.launches * 1e5 * 1e6).epsilon(0.02));
  // A GPU's numbers are asked nowhere: an 8-bit FLOP weighs half by its width.
  workload::Strategy narrow = layout(1, 1, 1);
  narrow.stack.precision = compute::Precision::fp8;
  balance = {0, 0, 0, 0};
  CHECK(volumes(narrow, 8, balance).weight < 0.7 * volumes(layout(1, 1, 1), 8, balance).weight);
}

TEST_CASE("libraries for tokens send one once to each node that has some of its experts") {
  workload::Model model = gpt();
  model.experts = 16;
  model.experts_per_token = 4;
  model.expert_ffn_hidden = 2 * kHidden;
  workload::Strategy strategy = layout(1, 1, 16);
  strategy.ep = 16;
  const StepVolumes pairwise = step_volumes(model, strategy, 8, {});
  strategy.stack.dispatcher = workload::Dispatcher::hybrid_ep;
  const StepVolumes once = step_volumes(model, strategy, 8, {});
  // All to all: four rows a token, 8 of 16 parts to the other node, out and back, forward and backward, in every layer.
  const double row = 2.0 * kHidden, tokens = kBatch / 16 * kSequence, exchanges = 4 * kLayers;
  CHECK(pairwise.experts.between == Approx(exchanges * tokens * row * 4 * 8 / 16).epsilon(1e-9));
  // Of 16 experts the 4 of a token leave out a node of 8 with probability (8 7 6 5) / (16 15 14 13).
  const double reached = 1 - 8.0 * 7 * 6 * 5 / (16.0 * 15 * 14 * 13);
  CHECK(once.experts.between == Approx(exchanges * tokens * row * reached).epsilon(2e-3));
  // A router that takes one of two groups: a token goes to one node, half of them to the other one.
  model.expert_groups = 2, model.groups_per_token = 1;
  CHECK(step_volumes(model, strategy, 8, {}).experts.between == Approx(exchanges * tokens * row / 2).epsilon(2e-3));
  strategy.stack.dispatcher = workload::Dispatcher::all_to_all;
  CHECK(step_volumes(model, strategy, 8, {}).experts.between == pairwise.experts.between);
}
