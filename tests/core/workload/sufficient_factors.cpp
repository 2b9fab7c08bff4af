// Sufficient factors beside sums of gradients: bytes on the wire, the choice between them, and what a step then does.
#include "core/workload/weights/sufficient_factors.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <random>

#include "core/collective/dag/dag.hpp"
#include "core/memory/footprint.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_grid.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

/// Bytes that one member of a ring receives.
std::int64_t received_in_ring(collective::Kind kind, std::uint32_t members, std::int64_t bytes) {
  collective::Shape shape;
  shape.kind = kind;
  shape.members = members;
  shape.bytes = bytes;
  const collective::Dag dag = collective::build(shape);
  std::int64_t sum = 0;
  for (const collective::Transfer& one : dag.transfers)
    if (dag.pairs[one.pair].second == 0) sum += one.bytes;
  return sum;
}

/// GPT of two layers on `dp` replicas of one micro-batch; `tp` ranks share a layer.
struct Job {
  Model model = gpt(2, 256, 4, 512);
  Strategy strategy = layout(1, 1, 1, 1);

  explicit Job(std::int64_t dp, GradientExchange exchange, std::int64_t tp = 1) {
    model.sequence = 64;
    strategy.tp = tp;
    strategy.dp = strategy.global_batch = dp;
    strategy.gradient_exchange = exchange;
  }
  Program program() const { return build_program(model, strategy, round_gpu(), 0); }
  BytesByKind data() const { return bytes_by_kind(program(), Role::data); }
};

/// The weights of a GPT layer on one rank: h x 3h and h x 4h by columns, h x h and 4h x h by rows.
std::vector<DenseWeight> weights_of(const Job& job) {
  const std::int64_t h = job.model.hidden, t = job.strategy.tp, b = job.model.sequence;
  return {{h, 3 * h / t, b}, {h / t, h, b}, {h, 4 * h / t, b}, {4 * h / t, h, b}};
}

}  // namespace

TEST_CASE("factors: a replica receives what the closed forms of factors and of sums say") {
  for (const std::int64_t replicas : {2, 3, 4, 8})
    for (const DenseWeight& weight : {DenseWeight{96, 480, 24}, DenseWeight{480, 96, 24}, DenseWeight{48, 48, 240}}) {
      const auto n = static_cast<std::uint32_t>(replicas);
      const std::int64_t factors = 2 * replicas * weight.tokens * (weight.in + weight.out);
      CHECK(received_in_ring(collective::Kind::all_gather, n, factors) ==
            2 * (replicas - 1) * weight.tokens * (weight.in + weight.out));
      CHECK(received_factor_bytes(weight, replicas) == received_in_ring(collective::Kind::all_gather, n, factors));
      for (const std::int64_t gradient : {2, 4})
        CHECK(received_sum_bytes(weight, replicas, gradient) ==
              Approx(received_in_ring(collective::Kind::all_reduce, n, gradient * weight.in * weight.out)));
    }
}

TEST_CASE("factors: of two replicas with gradients in 16 bits the choice is TAG's inequality") {
  std::mt19937_64 random(3);
  const auto drawn = [&](std::int64_t most) { return static_cast<std::int64_t>(1 + random() % most); };
  std::size_t chosen = 0;
  for (int i = 0; i < 2'000; ++i) {
    const DenseWeight weight{drawn(4'096), drawn(16'384), drawn(4'096)};
    const std::int64_t b = weight.tokens, in = weight.in, out = weight.out, n = 1 + drawn(15);
    CHECK(factors_take_fewer_bytes(weight, 2, 2) == (b * (in + out) < in * out));
    // Poseidon's comparison with parameter servers on all n nodes, algorithm 1: 2 K (P1 - 1) (M + N) against
    // 2 M N (P1 + P2 - 2) / P2, with P1 = P2 = n, sent and received together.
    CHECK(factors_take_fewer_bytes(weight, n, 2) == (2 * b * (n - 1) * (in + out) * n < 2 * in * out * (2 * n - 2)));
    // And of any precision it is fewer bytes received.
    for (const std::int64_t gradient : {2, 4}) {
      const double margin =
          received_sum_bytes(weight, n, gradient) - static_cast<double>(received_factor_bytes(weight, n));
      if (std::abs(margin) > 1e-3) CHECK(factors_take_fewer_bytes(weight, n, gradient) == (margin > 0));
    }
    chosen += factors_take_fewer_bytes(weight, 2, 2);
  }
  CHECK(chosen > 200);
  CHECK(chosen < 1'800);
}

TEST_CASE("factors: a step gathers 2 n b (in + out) bytes of every weight and reduces the gradients of all others") {
  for (const std::int64_t dp : {2, 4})
    for (const std::int64_t tp : {1, 2})
      for (const bool overlap : {true, false}) {
        Job sums(dp, GradientExchange::sums, tp), factors(dp, GradientExchange::factors, tp);
        sums.strategy.overlap_grad_reduce = factors.strategy.overlap_grad_reduce = overlap;
        std::int64_t parameters = 0, gathered = 0;  // of both layers
        for (const DenseWeight& weight : weights_of(factors)) {
          parameters += 2 * weight.in * weight.out;
          gathered += 2 * 2 * dp * weight.tokens * (weight.in + weight.out);
        }
        const std::int64_t all = 4 * stage_parameters(sums.model, sums.strategy, 0).total();
        CHECK(sums.data() == BytesByKind{{collective::Kind::all_reduce, all}});
        CHECK(factors.data() == BytesByKind{{collective::Kind::all_reduce, all - 4 * parameters},
                                            {collective::Kind::all_gather, gathered}});
      }
}

TEST_CASE("factors: each replica computes the weight gradients of all replicas' tokens, and nothing else more") {
  for (const bool fused : {true, false})
    for (const std::int64_t dp : {2, 4}) {
      Job sums(dp, GradientExchange::sums), factors(dp, GradientExchange::factors);
      sums.strategy.stack.gradient_accumulation_fusion = factors.strategy.stack.gradient_accumulation_fusion = fused;
      const auto flops_of = [](const Job& job) {
        std::int64_t flops = 0;
        for (const KernelUse& use : kernels_used(job.model, job.strategy, round_gpu(), 0))
          flops += use.times * use.kernel.flops;
        return flops;
      };
      std::int64_t own = 0;
      for (const DenseWeight& weight : weights_of(sums)) own += 2 * 2 * weight.tokens * weight.in * weight.out;
      CHECK(flops_of(factors) == flops_of(sums) + (dp - 1) * own);
      // The program runs the kernels that are counted.
      Time counted = 0, run = 0;
      for (const KernelUse& use : kernels_used(factors.model, factors.strategy, round_gpu(), 0))
        counted += use.times * use.cost_ps;
      for (const Op& op : factors.program().ops)
        if (op.kernel() && op.stream == Stream::compute) run += op.kernel()->duration_ps;
      CHECK(run == counted);
    }
}

TEST_CASE("factors: a layer's factors leave behind its backward pass, and their gradients wait for them") {
  const Job job(4, GradientExchange::factors);
  const Program program = job.program();
  std::vector<std::size_t> gathers, gradients;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const CollectiveCall* call = call_of(op, Role::data);
    if (call && call->kind == collective::Kind::all_gather) {
      CHECK(op.stream == Stream::data);
      gathers.push_back(i);
    }
    if (program.labels[op.label] == "gradients of factors" && op.kernel()) gradients.push_back(i);
  }
  REQUIRE(gathers.size() == 2);  // one for each layer
  REQUIRE(gradients.size() == 2);
  CHECK(gathers[0] < gathers[1]);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const Op& op = program.ops[gradients[layer]];
    const auto first = program.waits.begin() + op.waits_begin, last = program.waits.begin() + op.waits_end;
    CHECK(std::find(first, last, gathers[layer]) != last);
    CHECK(op.kernel()->category == StepPart::backward);
  }
  // The first gather is issued before the second layer's backward pass.
  const auto is_backward = [&](const Op& op) {
    return is_kernel_of(op, StepPart::backward) && program.labels[op.label] != "gradients of factors";
  };
  CHECK(std::count_if(program.ops.begin() + static_cast<std::ptrdiff_t>(gathers[0]),
                      program.ops.begin() + static_cast<std::ptrdiff_t>(gathers[1]), is_backward) > 0);
}

TEST_CASE("factors: cheapest takes those weights whose factors are fewer bytes, and a list takes those it names") {
  // Twice b n = 512 against 4 in out / (in + out), which is 3 h = 768 for qkv, 2 h = 512 for the output, 3.2 h for the
  // others: all but the output.
  Job cheapest(4, GradientExchange::cheapest);
  cheapest.model.sequence = 128;
  const std::int64_t h = cheapest.model.hidden, b = cheapest.model.sequence;
  const std::int64_t expected = 2 * 2 * 4 * b * (4 * h + 5 * h + 5 * h);
  CHECK(cheapest.data().at(collective::Kind::all_gather) == expected);
  Job listed = cheapest;
  listed.strategy.gradient_exchange = GradientExchange::factors;
  listed.strategy.factor_weights = factor_weight::qkv_linear | factor_weight::mlp_fc1 | factor_weight::mlp_fc2;
  CHECK(listed.data() == cheapest.data());
  // With gradients in 16 bits sums are half as long.
  cheapest.strategy.stack.reduce_in_16bit = true;
  CHECK(cheapest.data().count(collective::Kind::all_gather) == 0);
}

TEST_CASE("factors: layers with experts sum their gradients") {
  Job job(4, GradientExchange::factors);
  job.model.experts = 4, job.model.experts_per_token = 2, job.model.dense_layers = 1;
  std::int64_t gathered = 0;
  for (const DenseWeight& weight : weights_of(job))
    gathered += 2 * 4 * weight.tokens * (weight.in + weight.out);  // of the first layer alone
  CHECK(job.data().at(collective::Kind::all_gather) == gathered);
}

TEST_CASE("factors: their memory is that of all that a step gathers") {
  for (const std::int64_t dp : {2, 4}) {
    const Job sums(dp, GradientExchange::sums), factors(dp, GradientExchange::factors);
    std::int64_t gathered = 0;
    for (const DenseWeight& weight : weights_of(factors))
      gathered += 2 * 2 * dp * weight.tokens * (weight.in + weight.out);
    const memory::Footprint with = memory::footprint(factors.model, factors.strategy, round_gpu(), 0),
                            without = memory::footprint(sums.model, sums.strategy, round_gpu(), 0);
    CHECK(with.gathered == without.gathered + gathered);
    CHECK(with.allocated() == without.allocated() + gathered);
  }
}
