// Communication of tensor and expert parallelism beside kernels, on the streams, against closed forms.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "core/stream/timeline.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_grid.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

Strategy chunked(std::int64_t chunks) {
  Strategy strategy = layout(8, 1, 1, 1);
  strategy.sequence_parallel = true;
  strategy.stack.overlap_tensor = true;
  strategy.stack.tensor_chunks = chunks;
  return strategy;
}

/// How long a step takes in which nothing costs anything but one GEMM, `gemm` in all, and its collectives of one kind
/// and direction, `collective` in all.
Time played(std::int64_t chunks, const std::string& name, collective::Kind kind, bool forward, Time gemm,
            Time collective) {
  std::vector<Program> played;
  played.push_back(build_program(gpt(1, 512, 8), chunked(chunks), round_gpu(), 0));
  std::map<std::uint32_t, Time> lasts;
  std::vector<Op>& ops = played[0].ops;
  bool backward = false;  // a kernel of the backward pass has been met
  KernelOp* last_kernel = nullptr;
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    if (auto* kernel = std::get_if<KernelOp>(&ops[i].action)) {
      kernel->duration_ps = 0;
      if (kernel->category == StepPart::backward) backward = true;
      for (std::uint32_t wait = ops[i].waits_begin; wait < ops[i].waits_end; ++wait)
        if (lasts.count(played[0].waits[wait]) > 0 && kind == collective::Kind::all_gather)
          kernel->duration_ps = gemm / chunks;
      last_kernel = kernel;
      continue;
    }
    if (played[0].labels[ops[i].label] != name || ops[i].collective()->kind != kind) continue;
    if (static_cast<std::int64_t>(lasts.size()) == chunks || (!forward && !backward)) continue;
    lasts[i] = collective / chunks;
    if (kind == collective::Kind::reduce_scatter) last_kernel->duration_ps = gemm / chunks;
  }
  REQUIRE(static_cast<std::int64_t>(lasts.size()) == chunks);
  stream::Timeline timeline(played, {0});
  std::multimap<Time, std::uint32_t> ends;
  std::vector<stream::Entry> entries;
  timeline.begin(entries);
  for (Time now = 0; !timeline.finished(); timeline.advance(now, entries)) {
    for (const stream::Entry& entry : entries)
      ends.emplace(now + (lasts.count(entry.op) ? lasts[entry.op] : 0), entry.op);
    entries.clear();
    now = std::min(timeline.next_end(), ends.empty() ? kNever : ends.begin()->first);
    REQUIRE(now != kNever);
    for (; !ends.empty() && ends.begin()->first == now; ends.erase(ends.begin()))
      timeline.complete(stream::RepresentativeId(0), ends.begin()->second, now);
  }
  timeline.close_accounts();
  const std::vector<stream::Account> accounts = timeline.accounts();
  Time busy = 0;
  for (const StepPart part : {StepPart::forward, StepPart::backward, StepPart::recompute, StepPart::optimizer})
    busy += accounts[0][part];
  REQUIRE(busy == gemm);
  return timeline.end();
}

}  // namespace

TEST_CASE("a GEMM and its collective in n chunks take (g + c) / n + (n - 1) / n max(g, c)") {
  using collective::Kind;
  struct Place {
    const char* name;
    Kind kind;
    bool forward;
  };
  for (const Place& at : {Place{"qkv", Kind::all_gather, true}, Place{"attention_output", Kind::reduce_scatter, true},
                          Place{"mlp_up", Kind::all_gather, true}, Place{"mlp_down", Kind::reduce_scatter, true},
                          Place{"mlp_down", Kind::all_gather, false}}) {
    CAPTURE(at.name, at.forward);
    const auto steps = [&](std::int64_t n, Time g, Time c) { return played(n, at.name, at.kind, at.forward, g, c); };
    CHECK(steps(1, 1'000, 600) == 1'600);
    CHECK(steps(2, 1'000, 600) == 1'300);
    CHECK(steps(4, 1'000, 600) == 1'150);
    CHECK(steps(8, 1'000, 600) == 1'075);
    for (const std::int64_t n : {2, 4, 16, 32})
      for (const auto& [g, c] : {std::pair<Time, Time>{3'200, 6'400}, {6'400, 3'200}, {3'200, 3'200}, {32, 96'000}})
        CHECK(steps(n, g, c) == (g + c) / n + (n - 1) * std::max(g, c) / n);
  }
}

TEST_CASE("chunks move the bytes and multiply the rows of the whole, each with a launch of its own") {
  for (const Model& model : {gpt(1, 1'024, 8), small(true, 1)})
    for (const std::int64_t chunks : {1, 2, 8}) {
      Strategy whole = chunked(0);
      whole.tp = 4;
      Strategy cut = whole;
      cut.stack.tensor_chunks = chunks;
      const auto one = layer_operators(model, whole), many = layer_operators(model, cut);
      REQUIRE(one.size() == many.size());
      for (std::size_t i = 0; i < one.size(); ++i)
        for (const bool forward : {true, false}) {
          struct Sum {
            std::map<collective::Kind, std::int64_t> bytes;
            std::int64_t flops = 0, gemms = 0;
          };
          const auto sum = [&](const Operator& each) {
            Sum result;
            for (const WorkItem& work : forward ? each.forward : each.backward) {
              if (const CollectiveStart* start = work.start()) result.bytes[start->kind] += start->bytes;
              const KernelWork* kernel = work.kernel();
              if (kernel == nullptr) continue;
              result.flops += kernel->shape.flops;
              result.gemms += kernel->shape.kernel_class == compute::KernelClass::gemm;
            }
            return result;
          };
          const Sum a = sum(one[i]), b = sum(many[i]);
          CAPTURE(one[i].name, forward, chunks);
          CHECK(a.bytes == b.bytes);
          CHECK(a.flops == b.flops);
          CHECK(one[i].saved_bytes == many[i].saved_bytes);
          if (b.gemms == a.gemms) continue;
          // With a ring's steps a GEMM is in two kernels, in chunks in as many.
          CHECK(b.gemms - a.gemms == chunks - 2);
        }
    }
}

TEST_CASE("a chunk's tiles fill whole waves of its own and its kernel is launched, so that chunks never take less") {
  const compute::Gpu gpu = round_gpu();
  for (const std::int64_t tokens : {2'048, 8'192})
    for (const std::int64_t out : {1'536, 6'144, 5'000}) {
      Time before = 0;
      for (const std::int64_t chunks : {1, 2, 4, 8, 16}) {
        const Time all = chunks * compute::modelled_time(compute::gemm("mlp_up", tokens / chunks, out, 4'096), gpu);
        CAPTURE(tokens, out, chunks);
        CHECK(all >= before + (chunks > 1 ? chunks / 2 : 0) * 2 * kMicrosecond);
        before = all;
      }
    }
}

namespace {

/// Times of the shared expert's kernels, and of those that make gradients of the experts' weights, where all stand in
/// a row.
struct Windows {
  Time forward = 0, backward = 0, weights = 0;
};
Windows windows_of(const std::vector<Operator>& layer) {
  Windows result;
  bool inside = false;
  const auto modelled_time = [](const WorkItem& work) {
    return work.kernel() ? compute::modelled_time(work.kernel()->shape, round_gpu()) : 0;
  };
  for (const Operator& each : layer) {
    inside |= each.name == "shared_up";
    for (const WorkItem& work : each.forward)
      if (inside) result.forward += modelled_time(work);
    for (const WorkItem& work : each.backward) {
      if (inside) result.backward += modelled_time(work);
      if ((each.name == "expert_up" || each.name == "expert_down") && work.computes_weight_gradient())
        result.weights += modelled_time(work);
    }
    if (each.name == "shared_down") inside = false;
  }
  return result;
}

/// What a step waits for tokens that travel, `exchange` for each all-to-all.
Time exposed(const Program& program, Time exchange) {
  const std::vector<Program> programs{program};
  stream::Timeline timeline(programs, {0});
  std::multimap<Time, std::uint32_t> ends;
  std::vector<stream::Entry> entries;
  std::map<std::uint32_t, Time> began;
  timeline.begin(entries);
  for (Time now = 0; !timeline.finished(); timeline.advance(now, entries)) {
    for (const stream::Entry& entry : entries) {
      began[entry.op] = now;
      ends.emplace(now + (call_of(programs[0].ops[entry.op], Role::expert) ? exchange : 0), entry.op);
    }
    entries.clear();
    now = std::min(timeline.next_end(), ends.empty() ? kNever : ends.begin()->first);
    REQUIRE(now != kNever);
    for (; !ends.empty() && ends.begin()->first == now; ends.erase(ends.begin()))
      timeline.complete(stream::RepresentativeId(0), ends.begin()->second, began.at(ends.begin()->second));
  }
  timeline.close_accounts();
  return timeline.accounts()[0][StepPart::exposed_ep];
}

}  // namespace

TEST_CASE("of four all-to-alls the shared expert hides two, late gradients of weights one, and one is exposed") {
  Model model = small(true, 2);
  model.experts = 8, model.experts_per_token = 2, model.expert_ffn_hidden = 256, model.shared_ffn_hidden = 1'024;
  for (const std::int64_t tp : {1, 2}) {
    Strategy strategy = layout(tp, 1, 1, 12);
    strategy.dp = 4, strategy.ep = 4;
    strategy.sequence_parallel = tp > 1;
    const std::int64_t layers = 2 * 3;  // and micro-batches
    const Windows windows = windows_of(layer_operators(model, strategy, {.experts = true}));
    REQUIRE(windows.weights > 3 * kMicrosecond);
    for (const bool shared : {false, true})
      for (const bool weights : {false, true}) {
        strategy.stack.overlap_shared_expert = shared;
        strategy.stack.delay_expert_weights = weights;
        CAPTURE(tp, shared, weights);
        const Program program = build_program(model, strategy, round_gpu(), 0);
        for (const Time exchange : {Time{1}, 1 * kMicrosecond, 3 * kMicrosecond})
          CHECK(exposed(program, exchange) == layers * (4 - 2 * shared - weights) * exchange);
        for (const Time exchange : {kMillisecond, 7 * kMillisecond})
          CHECK(exposed(program, exchange) ==
                layers * (4 * exchange - shared * (windows.forward + windows.backward) - weights * windows.weights));
      }
  }
}
