// The program of a stage: waits, kernels, recomputation, gradients and the optimizer.
#include "core/workload/build/build_program.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <tuple>
#include <vector>

#include "core/stream/timeline.hpp"
#include "core/workload/build/buckets.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_grid.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

TEST_CASE("every wait points back, every label exists and compute never waits on its own stream") {
  for (const auto& [model, strategy] : grid())
    for (const Program& program : programs(model, strategy)) {
      std::size_t used = 0;
      for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
        const Op& op = program.ops[i];
        REQUIRE(op.waits_begin == used);
        used = op.waits_end;
        REQUIRE(op.label < program.labels.size());
        REQUIRE((op.collective() ? op.collective()->bytes > 0 : op.kernel()->duration_ps > 0));
        for (std::uint32_t w = op.waits_begin; w < op.waits_end; ++w) {
          REQUIRE(program.waits.at(w) < i);
          REQUIRE(program.ops[program.waits[w]].stream != op.stream);
        }
      }
      REQUIRE(used == program.waits.size());
    }
}

TEST_CASE("the kernels used add up to the compute operations of the program") {
  for (const auto& [model, strategy] : grid())
    for (std::int64_t stage = 0; stage < strategy.pp; ++stage) {
      Time used = 0;
      for (const KernelUse& use : kernels_used(model, strategy, round_gpu(), stage)) used += use.cost_ps * use.times;
      const Program program = build_program(model, strategy, round_gpu(), stage);
      REQUIRE(used == kernel_time(program, StepPart::forward) + kernel_time(program, StepPart::backward) +
                          kernel_time(program, StepPart::recompute) + kernel_time(program, StepPart::optimizer));
    }
}

TEST_CASE("full recompute repeats a middle stage's forward, kernels and collectives, selective the attention core") {
  for (const bool llama_style : {false, true})
    for (const bool sequence_parallel : {false, true}) {
      const Model model = small(llama_style, 16);
      Strategy strategy = layout(4, 4, 2, 16);
      strategy.sequence_parallel = sequence_parallel;
      const Program none = build_program(model, strategy, round_gpu(), 1);
      strategy.recompute = Recompute::full;
      const Program full = build_program(model, strategy, round_gpu(), 1);
      strategy.recompute = Recompute::selective;
      const Program selective = build_program(model, strategy, round_gpu(), 1);
      for (const Program* program : {&full, &selective}) {
        CHECK(kernel_time(*program, StepPart::forward) == kernel_time(none, StepPart::forward));
        CHECK(kernel_time(*program, StepPart::backward) == kernel_time(none, StepPart::backward));
      }
      CHECK(kernel_time(none, StepPart::recompute) == 0);
      CHECK(kernel_time(full, StepPart::recompute) == kernel_time(none, StepPart::forward));

      const std::int64_t s = model.sequence, batch = 2 * 8 / 4, scores = batch * s * s;
      using compute::modelled_time;
      Time core = modelled_time(compute::batched_gemm("scores", s, s, 64, batch), round_gpu()) +
                  modelled_time(compute::memory_bound("softmax", 4 * scores), round_gpu()) +
                  modelled_time(compute::batched_gemm("values", s, 64, s, batch), round_gpu());
      if (model.dropout) core += modelled_time(compute::memory_bound("dropout", 5 * scores), round_gpu());
      CHECK(kernel_time(selective, StepPart::recompute) == 4 * 8 * core);  // layers of the stage x micro-batches

      // Forward collectives of a layer: 4 of 2sbh bytes with gathers, else 2; plus the norm gradients, which stay.
      const auto total = [](const Program& program) {
        std::int64_t sum = 0;
        for (const auto& [kind, bytes] : bytes_by_kind(program, Role::tensor)) sum += bytes;
        return sum;
      };
      CHECK(total(selective) == total(none));
      CHECK(total(full) - total(none) == (sequence_parallel ? 4 : 2) * 4 * 8 * (2 * 2 * s * 512));
    }
}

TEST_CASE("gradients leave once, in fp32, in buckets, and with ZeRO 1 the parameters are gathered in bf16") {
  using collective::Kind;
  for (const auto& [model, strategy] : grid())
    for (std::int64_t stage = 0; stage < strategy.pp; ++stage) {
      const Program program = build_program(model, strategy, round_gpu(), stage);
      const std::int64_t parameters = stage_parameters(model, strategy, stage).total();
      auto bytes = bytes_by_kind(program, Role::data);
      if (strategy.zero == 0) {
        REQUIRE(bytes == std::map<Kind, std::int64_t>{{Kind::all_reduce, 4 * parameters}});
      } else {
        // Replicas have equal shares of a bucket, multiples of 128 parameters: it is filled up for that.
        const std::int64_t unit = 128 * strategy.replicas();
        std::int64_t buckets = 0;
        for (const Op& op : program.ops)
          if (const auto* call = call_of(op, Role::data); call && call->kind == Kind::reduce_scatter) {
            REQUIRE(call->bytes % (4 * unit) == 0);
            ++buckets;
          }
        REQUIRE(bytes.size() == 2);
        REQUIRE(bytes[Kind::reduce_scatter] >= 4 * parameters);
        REQUIRE(bytes[Kind::reduce_scatter] < 4 * (parameters + buckets * unit));
        REQUIRE(bytes[Kind::all_gather] == bytes[Kind::reduce_scatter] / 2);
      }
      for (const Op& op : program.ops)
        if (const auto* call = call_of(op, Role::data))
          REQUIRE(call->bytes < 4 * (1'000'000 + 128 * strategy.replicas()));
    }
  Strategy alone = layout(1, 2, 1, 4);
  CHECK(bytes_by_kind(build_program(small(false, 4), alone, round_gpu(), 0), Role::data).empty());
}

TEST_CASE("overlapped buckets leave while the last backward pass goes on, in the order its layers end") {
  const Model model = small(false, 8);
  Strategy strategy = layout(1, 2, 1, 8);
  strategy.dp = 2;
  strategy.bucket_parameters =
      layer_parameters(model, strategy, {}).total();  // a bucket per layer, and the embedding's
  const auto bucket_waits = [&](bool overlap) {
    strategy.overlap_grad_reduce = overlap;
    const Program program = build_program(model, strategy, round_gpu(), 0);
    std::vector<std::uint32_t> waits;
    for (const Op& op : program.ops)
      if (call_of(op, Role::data)) {
        REQUIRE(op.waits_end == op.waits_begin + 1);
        waits.push_back(program.waits[op.waits_begin]);
        REQUIRE(program.labels[program.ops[waits.back()].label] == "backward of micro-batch 3, chunk 0");
      }
    return waits;
  };
  const std::vector<std::uint32_t> early = bucket_waits(true), late = bucket_waits(false);
  const std::int64_t rest = embedding_parameters(model, 1);
  const auto buckets_expected = 4 + (rest + strategy.bucket_parameters - 1) / strategy.bucket_parameters;
  REQUIRE(early.size() == static_cast<std::size_t>(buckets_expected));
  REQUIRE(late.size() == early.size());
  for (std::size_t i = 0; i + 1 < 5; ++i) CHECK(early[i] < early[i + 1]);  // four layers, then the embedding
  for (const std::uint32_t wait : late) CHECK(wait == late.front());
}

TEST_CASE("buckets are cut where their parameters are full and leave with the part that fills them") {
  const std::vector<Bucket> all = buckets({10, 25, 5}, 12);
  REQUIRE(all.size() == 4);
  const std::int64_t sizes[] = {12, 12, 12, 4};
  const std::size_t ready[] = {1, 1, 2, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(all[i].parameters == sizes[i]);
    CHECK(all[i].ready_after == ready[i]);
  }
  CHECK(buckets({6, 6}, 12).size() == 1);
  CHECK(buckets({6, 6}, 12).front().ready_after == 1);
  CHECK(buckets({24}, 12).size() == 2);
}

TEST_CASE("a tied table on two stages has its gradients added up before the optimizer") {
  const Model model = small(false, 8);
  const auto embedding_bytes = [](const Model& given, std::int64_t pp, std::int64_t stage) {
    const Program program = build_program(given, layout(4, pp, 1, 4), round_gpu(), stage);
    return bytes_by_kind(program, Role::embedding)[collective::Kind::all_reduce];
  };
  const std::int64_t table = 4 * (3'072 / 4) * 512;  // 3000 padded to a multiple of 128 x 4
  CHECK(embedding_bytes(model, 4, 0) == table);
  CHECK(embedding_bytes(model, 4, 3) == table);
  CHECK(embedding_bytes(model, 4, 1) == 0);
  CHECK(embedding_bytes(model, 1, 0) == 0);
  CHECK(embedding_bytes(small(true, 8), 4, 0) == 0);
}

TEST_CASE("the optimizer waits for the last gradients and moves 38 bytes a parameter, 34 of them shared under ZeRO 1") {
  const Model model = small(false, 8);
  Strategy strategy = layout(1, 1, 1, 8);
  strategy.dp = 4;
  for (const std::int64_t zero : {0, 1}) {
    strategy.zero = zero;
    const Program program = build_program(model, strategy, round_gpu(), 0);
    const std::int64_t parameters = stage_parameters(model, strategy, 0).total();
    const std::int64_t share = zero ? (parameters + 3) / 4 : parameters;
    // One byte takes one picosecond on this GPU; three launches.
    CHECK(kernel_time(program, StepPart::optimizer) == 34 * share + 4 * parameters + 3 * 2'000'000);
    std::uint32_t last_bucket = 0, optimizer = 0;
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      if (is_kernel_of(program.ops[i], StepPart::optimizer)) optimizer = i;
      if (program.ops[i].collective() && optimizer == 0) last_bucket = i;
    }
    const Op& op = program.ops[optimizer];
    REQUIRE(op.waits_end == op.waits_begin + 1);
    CHECK(program.waits[op.waits_begin] == last_bucket);
  }
}

TEST_CASE("without communication a micro-batch is one forward and one backward operation") {
  const Program program = build_program(small(false, 8), layout(1, 1, 1, 5), round_gpu(), 0);
  CHECK(program.ops.size() == 2 * 5 + 1);  // and the optimizer
}

TEST_CASE("the input gathered again in the backward pass hides behind the input gradient's GEMM") {
  Strategy strategy = layout(4, 4, 2, 16);
  strategy.sequence_parallel = true;
  const Program program = build_program(small(true, 4), strategy, round_gpu(), 1);
  // One layer a stage: per micro-batch two column-parallel linears, whose first GEMM starts beside a gather.
  std::int64_t beside = 0;
  for (std::uint32_t i = 1; i < program.ops.size(); ++i) {
    const Op &op = program.ops[i], &before = program.ops[i - 1];
    if (op.stream != Stream::compute || before.stream != Stream::tensor) continue;
    if (op.waits_begin == op.waits_end) {
      CHECK(before.collective()->kind == collective::Kind::all_gather);
      ++beside;
    } else {
      CHECK(program.waits[op.waits_begin] == i - 1);
    }
  }
  CHECK(beside == 2 * 8);
}

TEST_CASE("a step whose host is slow takes as long as its launches, and one whose GPU is slow as long as its kernels") {
  const Model model = gpt(4, 512, 8, 512);
  Strategy strategy = layout(1, 1, 1, 3);
  const auto step = [&](double kernel_us) {
    strategy.stack.host_kernel_us = kernel_us;
    const std::vector<Program> programs{build_program(model, strategy, round_gpu(), 0)};
    stream::Timeline timeline(programs, {0});
    std::vector<stream::Entry> entries;
    timeline.begin(entries);
    while (!timeline.finished()) timeline.advance(timeline.next_end(), entries);
    timeline.close_accounts();
    const Time launches = kernel_time(programs[0], StepPart::host);
    return std::tuple{timeline.end(), launches, timeline.accounts()[0]};
  };
  const auto [free, none, kernels] = step(0);
  CHECK(none == 0);
  CHECK(kernels[StepPart::host] == 0);

  const auto [slow, launches, waits] = step(10'000);  // a kernel takes less than a millisecond
  CHECK(launches > 10 * free);
  CHECK(slow == launches + kernels[StepPart::optimizer]);
  CHECK(waits[StepPart::host] == slow - free);

  const auto [hidden, few, little] = step(0.01);
  CHECK(few > 0);
  CHECK(hidden == free);
}
