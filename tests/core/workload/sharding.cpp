// ZeRO stages 2 and 3, and parameters gathered beside the forward pass: what moves, when, and who waits.
#include <catch2/catch.hpp>
#include <map>
#include <utility>
#include <vector>

#include "core/stream/timeline.hpp"
#include "core/workload/build/buckets.hpp"
#include "core/workload/build/segments.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_grid.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

BytesByKind data_bytes(const Program& program) {
  return bytes_by_kind(program, Role::data);
}

/// The grid with these stages of ZeRO; every strategy of it has two replicas.
std::vector<std::pair<Model, Strategy>> grid_with(std::int64_t zero, bool overlap_parameters = false) {
  std::vector<std::pair<Model, Strategy>> all = grid();
  for (auto& [model, strategy] : all) strategy.zero = zero, strategy.stack.overlap_parameters = overlap_parameters;
  return all;
}

Strategy sharded(std::int64_t micro_batches) {
  Strategy strategy = layout(1, 1, 2, 2 * 4 * micro_batches);
  strategy.dp = 4;
  strategy.zero = 3;
  return strategy;
}

/// A step whose collectives last `ps_per_byte` for every byte.
Time play(const Program& program, Time ps_per_byte) {
  const std::vector<Program> programs{program};
  stream::Timeline timeline(programs, {0});
  std::vector<stream::Entry> entries;
  std::map<Time, std::vector<std::uint32_t>> ends;
  Time now = 0;
  const auto enter = [&] {
    for (const stream::Entry& entry : entries)
      ends[now + ps_per_byte * program.ops[entry.op].collective()->bytes].push_back(entry.op);
    entries.clear();
  };
  timeline.begin(entries);
  for (enter(); !timeline.finished(); enter()) {
    const Time collective = ends.empty() ? kNever : ends.begin()->first;
    now = std::min(collective, timeline.next_end());
    REQUIRE(now != kNever);
    if (collective == now) {
      for (const std::uint32_t op : ends.begin()->second) timeline.complete(stream::RepresentativeId(0), op, now);
      ends.erase(ends.begin());
    }
    timeline.advance(now, entries);
  }
  return timeline.end();
}

/// Parameters with what makes the shares of all replicas equal, in units of 128.
std::int64_t in_equal_shares(std::int64_t parameters, const Strategy& strategy) {
  const std::int64_t unit = 128 * strategy.replicas();
  return (parameters + unit - 1) / unit * unit;
}

/// What a micro-batch takes under FSDP, unit by unit: a unit is computed when it is gathered, and gathered when the one
/// two before it is computed; gathers and reductions take turns on one communicator.
class PlainSharding {
 public:
  PlainSharding(const Model& model, const Strategy& strategy, Time ps_per_byte) {
    const StageWork work = stage_work(model, strategy, round_gpu(), 0);
    const auto costs = [&](const std::vector<Segment>& segments) {
      std::vector<Time> by_unit(1);
      for (const Segment& segment : segments) {
        if (const KernelOp* kernel = segment.kernel()) by_unit.back() += kernel->duration_ps;
        if (segment.finished_parts > 0) by_unit.push_back(0);
      }
      return by_unit;
    };
    const std::vector<Time> forward = costs(segments_of(work, work.chunks[0], PassKind::forward, true));
    const std::vector<Time> backward = costs(segments_of(work, work.chunks[0], PassKind::backward, true));
    const std::size_t units = work.chunks[0].size();
    for (std::size_t i = 0; i < units; ++i) {
      std::int64_t parameters = work.of(work.chunks[0][i]).parameters.total();
      // Embedding and head are one unit when they share a table: it comes with the first and leaves with it.
      if (model.tied_embeddings && i == 0) parameters += work.of(work.chunks[0].back()).parameters.total();
      if (model.tied_embeddings && i + 1 == units) parameters = 0;
      units_.push_back(
          {forward[i], backward[units - 1 - i], 2 * parameters * ps_per_byte, 4 * parameters * ps_per_byte});
    }
    root_ = model.tied_embeddings;
  }

  Time run(std::int64_t micro_batches) {
    Time gradients = 0;  // when the last were reduced
    for (std::int64_t i = 0; i < micro_batches; ++i) {
      kernel_ = std::max(kernel_, gradients);
      pass(true);
      gradients = pass(false);
    }
    return std::max(kernel_, gradients);
  }

 private:
  struct Unit {
    Time forward, backward, gather, reduce;
  };

  Time pass(bool forward) {
    const std::size_t count = units_.size();
    std::vector<Time> gathered(count);
    Time kernel_before = last_kernel_;  // the kernel whose end the next gather waits for
    const auto gather = [&](std::size_t place) {
      if (place >= count) return;
      const Unit& unit = units_[forward ? place : count - 1 - place];
      const bool there = !forward && (place == 0 || (root_ && place + 1 == count));
      if (there || unit.gather == 0) return;
      channel_ = std::max(channel_, kernel_before) + unit.gather;
      gathered[place] = channel_;
    };
    Time reduced = 0;
    gather(0);
    for (std::size_t place = 0; place < count; ++place) {
      gather(place + 1);
      const Unit& unit = units_[forward ? place : count - 1 - place];
      kernel_ = std::max(kernel_, gathered[place]) + (forward ? unit.forward : unit.backward);
      kernel_before = kernel_;
      if (!forward && unit.reduce > 0) reduced = channel_ = std::max(channel_, kernel_) + unit.reduce;
    }
    last_kernel_ = kernel_;
    return reduced;
  }

  std::vector<Unit> units_;
  bool root_ = false;
  Time kernel_ = 0, channel_ = 0, last_kernel_ = 0;
};

}  // namespace

TEST_CASE("sharded programs have waits that point back, kernels that add up and collectives with bytes") {
  for (const std::int64_t zero : {1, 2, 3})
    for (const auto& [model, strategy] : grid_with(zero, zero < 3))
      for (std::int64_t stage = 0; stage < strategy.pp; ++stage) {
        const Program program = build_program(model, strategy, round_gpu(), stage);
        Time used = 0, run = 0;
        for (const KernelUse& use : kernels_used(model, strategy, round_gpu(), stage)) used += use.cost_ps * use.times;
        for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
          const Op& op = program.ops[i];
          const KernelOp* kernel = op.kernel();
          if (kernel && kernel->category != StepPart::host) run += kernel->duration_ps;
          REQUIRE((kernel ? kernel->duration_ps : op.collective()->bytes) > 0);
          for (std::uint32_t w = op.waits_begin; w < op.waits_end; ++w) {
            REQUIRE(program.waits[w] < i);
            REQUIRE(program.ops[program.waits[w]].stream != op.stream);
          }
        }
        REQUIRE(used == run);
      }
}

TEST_CASE("ZeRO 2 scatters gradients after every pass and gathers parameters once") {
  for (const bool overlap : {false, true})
    for (const auto& [model, strategy] : grid_with(2, overlap))
      for (std::int64_t stage = 0; stage < strategy.pp; ++stage) {
        const StageWork work = stage_work(model, strategy, round_gpu(), stage);
        std::int64_t parameters = 0;
        for (const std::vector<ModelPart>& chunk : work.chunks) {
          std::vector<std::int64_t> parts;
          for (auto part = chunk.rbegin(); part != chunk.rend(); ++part)
            parts.push_back(work.of(*part).parameters.total());
          for (const Bucket& bucket : buckets(parts, strategy.bucket_parameters))
            parameters += in_equal_shares(bucket.parameters, strategy);
        }
        const BytesByKind expected{{collective::Kind::reduce_scatter, strategy.chunk_micro_batches() * 4 * parameters},
                                   {collective::Kind::all_gather, 2 * parameters}};
        REQUIRE(data_bytes(build_program(model, strategy, round_gpu(), stage)) == expected);
      }
}

TEST_CASE("ZeRO 3 gathers a unit before every pass but where its backward follows at once, and scatters gradients") {
  for (const auto& [model, strategy] : grid_with(3)) {
    if (strategy.pp > 1 && strategy.schedule != schedule_by_name("1f1b")) continue;
    if (strategy.pp == 1 && strategy.schedule == schedule_by_name("gpipe") && strategy.micro_batches() > 1) continue;
    const std::int64_t stage = strategy.pp - 1, m = strategy.micro_batches();
    const StageWork work = stage_work(model, strategy, round_gpu(), stage);
    std::vector<std::int64_t> units;
    for (const auto& chunk : work.chunks)
      for (const ModelPart part : chunk) units.push_back(work.of(part).parameters.total());
    if (strategy.pp == 1 && model.tied_embeddings) units.back() += std::exchange(units.front(), 0);
    std::int64_t parameters = 0;
    for (const std::int64_t unit : units) parameters += in_equal_shares(unit, strategy);
    // The head stays, and with it a table that it shares.
    const std::int64_t stays = in_equal_shares(units.back(), strategy);
    const BytesByKind expected{{collective::Kind::reduce_scatter, m * 4 * parameters},
                               {collective::Kind::all_gather, m * 2 * (2 * parameters - stays)}};
    CAPTURE(strategy.pp, m, strategy.tp, model.tied_embeddings);
    REQUIRE(data_bytes(build_program(model, strategy, round_gpu(), stage)) == expected);
  }
}

TEST_CASE("a sharded step takes what a plain walk over its units says, compute-bound, network-bound and between") {
  for (const bool llama_style : {false, true})
    for (const std::int64_t micro_batches : {1, 3})
      for (const Recompute recompute : {Recompute::none, Recompute::full})
        for (const Time ps_per_byte : {0, 1, 20, 50, 1'000}) {
          const Model model = small(llama_style, 6);
          Strategy strategy = sharded(micro_batches);
          strategy.recompute = recompute;
          const Program program = build_program(model, strategy, round_gpu(), 0);
          const Time optimizer = kernel_time(program, StepPart::optimizer);
          CAPTURE(llama_style, micro_batches, ps_per_byte);
          CHECK(play(program, ps_per_byte) ==
                PlainSharding(model, strategy, ps_per_byte).run(micro_batches) + optimizer);
        }
}

TEST_CASE("a sharded step that does not overlap its reductions waits for each of them") {
  const Model model = small(true, 4);
  Strategy strategy = sharded(2);
  const auto time = [&](bool overlap) {
    strategy.overlap_grad_reduce = overlap;
    return play(build_program(model, strategy, round_gpu(), 0), 20);
  };
  CHECK(time(false) > time(true));
}

TEST_CASE("a step of ZeRO 2 that does not overlap its reductions is the sum of its kernels and collectives") {
  for (const std::int64_t micro_batches : {1, 3}) {
    Strategy strategy = sharded(micro_batches);
    strategy.zero = 2;
    strategy.overlap_grad_reduce = false;
    const Program program = build_program(small(true, 4), strategy, round_gpu(), 0);
    Time kernels = 0;
    for (const Op& op : program.ops)
      if (const KernelOp* kernel = op.kernel()) kernels += kernel->duration_ps;
    std::int64_t bytes = 0;
    for (const auto& [kind, sum] : data_bytes(program)) bytes += sum;
    for (const Time ps_per_byte : {1, 20, 1'000}) CHECK(play(program, ps_per_byte) == kernels + bytes * ps_per_byte);
  }
}

TEST_CASE("with overlap_parameters a layer's first forward waits for its own parameters and no others") {
  const Model model = small(false, 4);
  Strategy strategy = layout(1, 1, 1, 8);
  strategy.dp = 2;
  strategy.zero = 1;
  strategy.stack.overlap_parameters = true;
  strategy.bucket_parameters = layer_parameters(model, strategy, {}).total();  // a bucket per layer, from the last on
  const Program program = build_program(model, strategy, round_gpu(), 0);
  // Backward order: head's norm and layer 3 to layer 0 and the embedding: a bucket ends a norm before its layer does.
  const std::int64_t rest = embedding_parameters(model, 1) + final_norm_parameters(model);
  const auto size =
      static_cast<std::uint32_t>(4 + (rest + strategy.bucket_parameters - 1) / strategy.bucket_parameters);
  std::vector<std::uint32_t> waits;  // of the compute operations of the first forward pass
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (i < size) {
      CHECK((op.collective()->kind == collective::Kind::all_gather && op.waits_begin == op.waits_end));
    } else if (program.labels[op.label] == "forward of micro-batch 0, chunk 0") {
      REQUIRE(op.waits_end == op.waits_begin + 1);
      waits.push_back(program.waits[op.waits_begin]);
    }
  }
  // Gathers run from the last bucket to the first. Bucket k ends inside layer 3 - k, but for the norm before it.
  REQUIRE(waits.size() == 6);
  CHECK(waits[0] == size - 5);
  for (std::uint32_t layer = 0; layer < 4; ++layer) CHECK(waits[1 + layer] == size - 4 + layer);
  CHECK(waits[5] == size - 1);
  CHECK(data_bytes(program)[collective::Kind::all_gather] == 2 * stage_parameters(model, strategy, 0).total());
}

TEST_CASE("gradients added up in 16 bits are half as many bytes") {
  for (const std::int64_t zero : {0, 1, 2, 3}) {
    const Model model = small(true, 4);
    Strategy strategy = sharded(2);
    strategy.zero = zero;
    const auto kind = zero > 0 ? collective::Kind::reduce_scatter : collective::Kind::all_reduce;
    const BytesByKind whole = data_bytes(build_program(model, strategy, round_gpu(), 0));
    strategy.stack.reduce_in_16bit = true;
    BytesByKind half = data_bytes(build_program(model, strategy, round_gpu(), 0));
    CHECK(2 * half[kind] == whole.at(kind));
    half[kind] *= 2;
    CHECK(half == whole);
  }
}
