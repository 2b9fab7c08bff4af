// Steps that are forward passes alone: FLOPs, bytes and traffic against plain loops, closed forms and published sizes
// of caches.
#include <catch2/catch.hpp>
#include <set>

#include "core/compute/gemm.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/replica_traffic.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/parts/registry.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

Model scoring(Model model) {
  model.inference = Inference::scoring;
  return model;
}
Model generating(Model model, std::int64_t tokens, std::int64_t cached) {
  model.inference = Inference::generation;
  model.sequence = tokens, model.cached_tokens = cached;
  return model;
}
Model llama3_8b() {
  return llama(32, 4'096, 32, 8, 14'336, 128'256);
}

Strategy fused(std::int64_t tp, std::int64_t pp, std::int64_t micro_batch, std::int64_t global_batch) {
  Strategy strategy = layout(tp, pp, micro_batch, global_batch);
  strategy.stack.attention = AttentionKernel::cudnn;
  return strategy;
}

std::int64_t flops_of(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    for (const WorkItem& work : each.forward)
      if (const KernelWork* kernel = work.kernel()) sum += kernel->shape.flops;
  return sum;
}

std::int64_t layer_flops(const Model& model) {
  std::int64_t sum = 0;
  const Strategy strategy = fused(1, 1, 1, 1);
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    sum += flops_of(layer_operators(model, strategy, model.layer_kind(layer)));
  return sum;
}

/// Bytes that a rank keeps of a micro-batch.
std::int64_t cache_of(const Model& model, const Strategy& strategy) {
  std::int64_t sum = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for_each_branch(model, model.layer_kind(layer), [&](const LayerBranch& branch) {
      sum += branch.part.cached_bytes(part_on_rank(branch, strategy, 0)).value();
    });
  return sum;
}

const compute::Kernel& kernel_named(const std::vector<Operator>& operators, std::string_view name) {
  for (const Operator& each : operators)
    for (const WorkItem& work : each.forward)
      if (work.kernel() != nullptr && work.kernel()->shape.name == name) return work.kernel()->shape;
  throw std::runtime_error("no such kernel");
}

}  // namespace

TEST_CASE("inference: FLOPs of decoding are those of a loop over the keys of each new token") {
  for (const std::int64_t tokens : {1, 3, 17})
    for (const std::int64_t cached : {0, 1, 100, 4'000}) {
      const Model model = generating(llama3_8b(), tokens, cached);
      std::int64_t pairs = 0;
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t key = 0; key < cached + tokens; ++key) pairs += key <= cached + i ? 1 : 0;
      const std::int64_t weights = 4'096 * (32 + 2 * 8) * 128 + 4'096 * 4'096 + 3 * 4'096 * 14'336;
      CHECK(layer_flops(model) == 32 * (2 * tokens * weights + 2 * pairs * 32 * (128 + 128)));
      // The head sees one token.
      CHECK(model_flops_per_sequence(model) == layer_flops(model) + 2 * 4'096 * 128'256);
    }
}

TEST_CASE("inference: a prompt at once has the FLOPs of its tokens one after the other") {
  Model model = llama(4, 256, 8, 2, 512, 1'024);
  model.window = 8, model.window_every = 2;
  constexpr std::int64_t kPrompt = 37;
  std::int64_t decoded = 0;
  for (std::int64_t token = 0; token < kPrompt; ++token) decoded += layer_flops(generating(model, 1, token));
  CHECK(decoded == layer_flops(generating(model, kPrompt, 0)));
  std::int64_t in_two = layer_flops(generating(model, 20, 0)) + layer_flops(generating(model, kPrompt - 20, 20));
  CHECK(decoded == in_two);
}

TEST_CASE("inference: scoring has the FLOPs of a training step's forward pass") {
  for (const Model& model : {llama3_8b(), qwen3_30b_a3b(), deepseek_v3(), gpt_oss_120b()}) {
    std::int64_t forward = 0;
    for (std::int64_t layer = 0; layer < model.layers; ++layer)
      forward += flops_of(layer_operators(model, layout(1, 1, 1, 1), model.layer_kind(layer)));
    CHECK(model_flops_per_sequence(scoring(model)) == forward + 2 * model.sequence * model.hidden * model.vocabulary);
    CHECK(3 * model_flops_per_sequence(scoring(model)) == model_flops_per_sequence(model));
    CHECK(trained_parameters(scoring(model)) == 0);
  }
}

TEST_CASE("inference: caches of Llama 3 and DeepSeek-V3 have their published sizes") {
  // Keys and values of 8 heads of 128, in 16 bits, 32 layers; tensor ranks share out the heads.
  const Model llama = generating(llama3_8b(), 1, 999);
  CHECK(cache_of(llama, fused(1, 1, 1, 1)) == 131'072 * 1'000);
  CHECK(cache_of(llama, fused(4, 1, 3, 3)) == 3 * 131'072 * 1'000 / 4);
  // 512 + 64 numbers in 61 layers (DeepSeek-AI 2025, arXiv 2505.09343, table 1: 70.272 KB per token), on every rank.
  const Model deepseek = generating(deepseek_v3(), 1, 999);
  CHECK(cache_of(deepseek, fused(1, 1, 1, 1)) == 70'272 * 1'000);
  CHECK(cache_of(deepseek, fused(8, 1, 1, 1)) == 70'272 * 1'000);
  // gpt-oss: every other of 36 layers has the last 128 tokens alone.
  const Model windowed = generating(gpt_oss_120b(), 1, 999);
  CHECK(cache_of(windowed, fused(1, 1, 1, 1)) == 2 * 2 * 8 * 64 * (18 * 128 + 18 * 1'000));
}

TEST_CASE("inference: experts of tensor ranks that have all tokens compute them once, and sum their results") {
  const Model model = generating(qwen3_30b_a3b(), 1, 500);
  constexpr std::int64_t kTokens = 64, kRanks = 4, kWhole = 2 * 8 * kTokens * 3 * 2'048 * 768;
  for (const bool whole_experts : {true, false}) {
    Strategy strategy = fused(kRanks, 1, kTokens, kTokens);
    (whole_experts ? strategy.ep : strategy.etp) = kRanks;
    std::int64_t flops = 0, all_reduces = 0;
    for (const Operator& each : layer_operators(model, strategy, model.layer_kind(0)))
      for (const WorkItem& work : each.forward) {
        if (work.kernel() != nullptr && each.name.starts_with("expert_")) flops += work.kernel()->shape.flops;
        if (work.start() == nullptr) continue;
        CHECK(work.start()->role == Role::tensor);
        CHECK(work.start()->kind == collective::Kind::all_reduce);
        CHECK(work.start()->bytes == 2 * kTokens * 2'048);
        ++all_reduces;
      }
    CHECK(flops == kWhole / kRanks);
    CHECK(all_reduces == 2);  // behind attention and behind experts
  }
}

TEST_CASE("inference: parts without a cache of tokens cannot generate") {
  std::set<std::string> able;
  for (const PartType& type : part_types()) {
    Model model = llama3_8b();
    for (const auto& [name, value] : type.example_model)
      for (const auto& row : model_options().rows())
        if (row.info.name == name) row.set(model, value);
    model.experts = 8;
    model = generating(model, 1, 10);
    const auto part = type.make(type.example);
    if (part->cached_bytes(PartOnRank(model, fused(1, 1, 1, 1), {}, 0))) able.insert(type.name);
  }
  CHECK(able == std::set<std::string>{"attention", "mlp", "experts", "parallel_attention"});
}

TEST_CASE("inference: attention of a new token reads each key and value once for all heads that share them") {
  const Model model = generating(llama3_8b(), 1, 8'191);
  const auto operators = layer_operators(model, fused(1, 1, 4, 4), {});
  const compute::Kernel& attention = kernel_named(operators, "attention");
  CHECK(attention.bytes == 2 * 4 * (8 * 8'192 * (128 + 128) + 32 * (128 + 128)));
  CHECK(attention.flops == 2LL * 4 * 32 * 8'192 * (128 + 128));
  CHECK(kernel_named(operators, "cache_write").bytes == 2 * 2 * 4 * 8 * (128 + 128));
  // Narrow keys are the values of latent attention.
  const auto latent = layer_operators(generating(deepseek_v3(), 1, 8'191), fused(1, 1, 4, 4), {});
  CHECK(kernel_named(latent, "attention").bytes == 2 * 4 * (8'192 * 576 + 128 * (576 + 512)));
  CHECK(kernel_named(latent, "attention").flops == 2LL * 4 * 128 * 8'192 * (576 + 512));
}

TEST_CASE("inference: of few tokens only the experts that they go to are read") {
  const auto weights_of = [](std::int64_t samples) {
    const auto operators = layer_operators(generating(qwen3_30b_a3b(), 1, 100), fused(1, 1, samples, samples), {true});
    const compute::Kernel& up = kernel_named(operators, "expert_up");
    return up.bytes - 2 * samples * 8 * (2'048 + 2 * 768);  // without rows read and written
  };
  constexpr std::int64_t kExpert = 2 * 2'048 * 2 * 768;
  CHECK(weights_of(1) == 8 * kExpert);
  CHECK(weights_of(4) == 32 * kExpert);
  CHECK(weights_of(16) == 128 * kExpert);
  CHECK(weights_of(64) == 128 * kExpert);
}

TEST_CASE("inference: experts of a rank are one kernel where they generate, and one for each where they score") {
  Strategy strategy = fused(1, 1, 16, 16);
  for (const Model& model : {generating(qwen3_30b_a3b(), 1, 100), generating(qwen3_30b_a3b(), 64, 0)}) {
    const auto operators = layer_operators(model, strategy, {true});
    for (const char* name : {"expert_up", "expert_down"}) CHECK_FALSE(kernel_named(operators, name).one_by_one);
  }
  const auto scored = layer_operators(scoring(qwen3_30b_a3b()), strategy, {true});
  CHECK(kernel_named(scored, "expert_up").one_by_one);
  // One kernel for all takes what reading their weights takes, where GEMMs one after the other wait for their launches.
  compute::Kernel one =
      kernel_named(layer_operators(generating(qwen3_30b_a3b(), 1, 100), strategy, {true}), "expert_up");
  const Time together = compute::modelled_time(one, round_gpu());
  one.one_by_one = true;
  CHECK(compute::modelled_time(one, round_gpu()) >= together);
}

TEST_CASE("inference: ranks run forward passes in the schedule's order, and send nothing back") {
  for (const char* name : {"1f1b", "gpipe", "interleaved"}) {
    Strategy strategy = fused(1, 4, 1, 8);
    strategy.schedule = schedule_by_name(name);
    if (std::string(name) == "interleaved") strategy.virtual_stages = 2;
    const Model trained = llama(8, 256, 8, 2, 512, 1'024), model = scoring(trained);
    const auto all = pipeline_orders(trained, strategy, round_gpu()),
               forward = pipeline_orders(model, strategy, round_gpu());
    for (std::size_t rank = 0; rank < 4; ++rank) {
      PassOrder expected;
      for (const PipelinePass& pass : all[rank])
        if (pass.forward()) expected.push_back(pass);
      CHECK(forward[rank] == expected);
      const Program program = build_program(model, strategy, round_gpu(), RankClass{static_cast<std::int64_t>(rank)});
      for (const Op& op : program.ops) {
        if (const KernelOp* kernel = op.kernel()) CHECK(kernel->category == StepPart::forward);
        if (op.collective() == nullptr) continue;
        const Role role = op.collective()->role;
        CHECK((role == Role::send_forward || role == Role::recv_forward));
      }
    }
  }
}

TEST_CASE("inference: replicas send nothing, but under ZeRO 3 what forward passes gather") {
  const Model model = scoring(llama(8, 256, 8, 2, 512, 1'024));
  for (const std::int64_t zero : {0, 1, 2, 3}) {
    Strategy strategy = fused(2, 1, 1, 8);
    strategy.dp = 4, strategy.zero = zero;
    std::int64_t gathered = 0;
    for (const Op& op : build_program(model, strategy, round_gpu(), RankClass{0}).ops) {
      const CollectiveCall* call = call_of(op, Role::data);
      if (call == nullptr) continue;
      CHECK(call->kind == collective::Kind::all_gather);
      gathered += call->bytes;
    }
    // All weights of a rank, 2 bytes each, for both of its micro-batches; shares are padded.
    const std::int64_t weights = stage_parameters(model, strategy, 0).total();
    CHECK(gathered >= (zero == 3 ? 2 * 2 * weights : 0));
    CHECK(gathered <= (zero == 3 ? 2 * 2 * (weights + 10 * 4 * kShardAlignment) : 0));
  }
}

TEST_CASE("inference: GEMMs of few rows take about as long as their weights take to be read") {
  compute::Gpu gpu;
  gpu.matrix_tflops = 989, gpu.memory_gb_per_s = 3'350, gpu.compute_units = 132, gpu.clock_ghz = 1.7;
  for (const std::int64_t rows : {1, 8, 32}) {
    const compute::Kernel kernel = compute::gemm("mlp_up", rows, 57'344, 8'192);
    const compute::GemmRates& rates = compute::gemm_rates(kernel.dtype, gpu);
    const double read_us = 2.0 * 57'344 * 8'192 / (gpu.memory_gb_per_s * rates.memory_efficiency * 1e3);
    const double us = static_cast<double>(compute::kernel_cost(kernel, gpu).ps) * 1e-6;
    CHECK(us > read_us);
    // The power limit, at which GPUs are taken to be as in training, does not slow the memory.
    CHECK(us < 1.02 * read_us + gpu.launch_us);
  }
}
