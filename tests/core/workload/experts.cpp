// Experts, latent attention, context parallelism and windows: bytes and FLOPs against closed forms.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "core/memory/activations.hpp"
#include "core/memory/footprint.hpp"
#include "core/workload/build/segments.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/parts/routed_experts.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_grid.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

std::int64_t flops_of(const std::vector<Operator>& operators, bool forward) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    for (const WorkItem& work : forward ? each.forward : each.backward)
      if (const KernelWork* kernel = work.kernel()) sum += kernel->shape.flops;
  return sum;
}

/// A small model with experts: 4 layers, the first of them dense.
Model small_experts() {
  Model model = llama(4, 512, 8, 4, 1'024, 3'000);
  model.experts = 16;
  model.experts_per_token = 2;
  model.expert_ffn_hidden = 256;
  model.dense_layers = 1;
  return model;
}

Strategy expert_layout(std::int64_t tp, std::int64_t cp, std::int64_t dp, std::int64_t ep, std::int64_t etp) {
  Strategy strategy = layout(tp, 1, 2, 2 * dp * 3);
  strategy.sequence_parallel = tp > 1;
  strategy.dp = dp, strategy.cp = cp, strategy.ep = ep, strategy.etp = etp;
  return strategy;
}

}  // namespace

TEST_CASE("tokens go to their experts and come back, in both passes of every layer with experts") {
  const Model model = small_experts();
  for (const auto& [tp, cp, dp, ep, etp] : {std::tuple{1, 1, 4, 4, 1},
                                            {2, 1, 4, 8, 1},
                                            {2, 1, 4, 2, 2},
                                            {4, 1, 2, 4, 2},
                                            {1, 2, 2, 4, 1},
                                            {1, 1, 4, 1, 1}}) {
    const Strategy strategy = expert_layout(tp, cp, dp, ep, etp);
    const Program program = build_program(model, strategy, round_gpu(), 0);
    const std::int64_t passes = 3 * 3, tokens = 2 * model.sequence / cp / tp;  // layers x micro-batches; a rank's own
    const std::int64_t copies = 2 * tokens * model.experts_per_token * model.hidden;
    CAPTURE(tp, cp, dp, ep, etp);
    const BytesByKind expected{{collective::Kind::all_to_all, 4 * passes * copies}};
    CHECK(bytes_by_kind(program, Role::expert) == (ep > 1 ? expected : BytesByKind{}));
    // An expert cut over tensor ranks sees the tokens of all of them: gathered and scattered, in both passes.
    const BytesByKind within{{collective::Kind::all_gather, 2 * passes * copies * etp},
                             {collective::Kind::reduce_scatter, 2 * passes * copies * etp}};
    CHECK(bytes_by_kind(program, Role::expert_tensor) == (etp > 1 ? within : BytesByKind{}));
  }
}

TEST_CASE("a token is sent once to each part of the experts that some of its own lie in") {
  const Model model = small_experts();
  for (const std::int64_t parts : {1, 2, 4, 8, 16}) {
    // Over all choices of two experts out of sixteen.
    std::int64_t reached = 0, choices = 0;
    for (std::int64_t a = 0; a < 16; ++a)
      for (std::int64_t b = 0; b < a; ++b, ++choices) reached += a * parts / 16 == b * parts / 16 ? 1 : 2;
    CHECK(mean_parts_reached(model, parts) == Approx(static_cast<double>(reached) / static_cast<double>(choices)));
  }
  Strategy strategy = expert_layout(1, 1, 4, 4, 1);
  strategy.stack.dispatcher = Dispatcher::hybrid_ep;
  // Three of fifteen second choices are in the first one's quarter: 1.8 quarters a token, 0.45 of a token to each.
  const std::int64_t tokens = 2 * model.sequence, sent = tokens * 9 / 20 + (tokens * 9 % 20 >= 10 ? 1 : 0);
  const BytesByKind expected{{collective::Kind::all_to_all, 4 * 9 * 2 * 4 * sent * model.hidden}};
  CHECK(bytes_by_kind(build_program(model, strategy, round_gpu(), 0), Role::expert) == expected);
}

TEST_CASE("with overlap tokens travel beside kernels of another micro-batch, and nothing else changes") {
  const Model model = small_experts();
  for (const std::int64_t pp : {1, 2})
    for (std::int64_t stage = 0; stage < pp; ++stage) {
      Strategy strategy = layout(1, pp, 2, 8 * 4);
      strategy.dp = 4, strategy.ep = 4;
      strategy.overlap_grad_reduce = false;
      const auto program_of = [&](bool overlap) {
        strategy.stack.overlap_experts = overlap;
        return build_program(model, strategy, round_gpu(), stage);
      };
      const Program apart = program_of(false), beside = program_of(true);
      const auto sums = [](const Program& program) {
        std::map<std::pair<bool, int>, std::int64_t> by;
        for (const Op& op : program.ops)
          if (const CollectiveCall* call = op.collective())
            by[{true, static_cast<int>(call->role)}] += call->bytes;
          else
            by[{false, static_cast<int>(op.kernel()->category)}] += op.kernel()->duration_ps;
        return by;
      };
      CHECK(sums(apart) == sums(beside));
      // Exchanges of tokens that the next kernel does not wait for.
      const auto hidden = [](const Program& program) {
        std::size_t count = 0;
        for (std::size_t i = 0; i + 1 < program.ops.size(); ++i) {
          if (!call_of(program.ops[i], Role::expert)) continue;
          const auto next = std::find_if(program.ops.begin() + static_cast<std::ptrdiff_t>(i), program.ops.end(),
                                         [](const Op& op) { return op.kernel() != nullptr; });
          count += std::find(program.waits.begin() + next->waits_begin, program.waits.begin() + next->waits_end, i) ==
                   program.waits.begin() + next->waits_end;
        }
        return count;
      };
      CHECK(hidden(apart) == 0);
      CHECK(hidden(beside) > 3);
    }
}

TEST_CASE("the host launches a kernel for each expert, unless a graph does") {
  const Model model = small_experts();
  Strategy strategy = expert_layout(1, 1, 4, 4, 1);
  strategy.stack.host_kernel_us = 1'000;  // slower than any kernel
  const auto launch_ps = [&](CudaGraphs graphs) {
    strategy.stack.cuda_graphs = graphs;
    const StageWork work = stage_work(model, strategy, round_gpu(), 0);
    Time sum = 0;
    for (const Segment& segment : segments_of(work, work.chunks[0], PassKind::forward, false)) sum += segment.launch_ps;
    return sum;
  };
  const Time all_by_host = launch_ps(CudaGraphs::none), experts_by_host = launch_ps(CudaGraphs::all_but_experts);
  CHECK(launch_ps(CudaGraphs::all) == 0);
  // Three layers: two grouped GEMMs of four experts, and each way a permutation, a sort and the activation between.
  CHECK(experts_by_host == 3 * (2 * 4 + 5) * kMillisecond);
  CHECK(all_by_host > experts_by_host);
  strategy.stack.router_fusion = false;
  CHECK(launch_ps(CudaGraphs::none) == all_by_host + 3 * (72 - 31) * kMillisecond);
}

TEST_CASE("the host waits once in each forward pass of a layer for the tokens of its experts") {
  const Model model = small_experts();
  Strategy strategy = expert_layout(1, 1, 4, 4, 1);
  strategy.stack.host_kernel_us = 1;
  const StageWork work = stage_work(model, strategy, round_gpu(), 0);
  const auto sections = [&](PassKind kind) {
    std::pair<int, int> begun_and_waiting;
    int open = 0;
    for (const Segment& segment : segments_of(work, work.chunks[0], kind, false)) {
      open += segment.launch_ps > 0 ? 1 : 0;
      begun_and_waiting.first += segment.launch_ps > 0 ? 1 : 0;
      begun_and_waiting.second += segment.launch_waits ? 1 : 0;
      open -= segment.ends_launch ? 1 : 0;
      REQUIRE((open == 0 || open == 1));
    }
    CHECK(open == 0);
    return begun_and_waiting;
  };
  CHECK(sections(PassKind::forward).second == model.layers - model.dense_layers);
  CHECK(sections(PassKind::backward) == std::pair{4, 0});  // head, layers of experts, the dense layer, embedding
}

TEST_CASE("gradients of experts are added up over those who hold the same, all others over every replica") {
  const Model model = small_experts();
  for (const std::int64_t zero : {0, 1, 2, 3}) {
    Strategy strategy = expert_layout(2, 1, 8, 4, 1);
    strategy.zero = zero;
    const Program program = build_program(model, strategy, round_gpu(), 0);
    const Parameters held = stage_parameters(model, strategy, 0);
    CHECK(held.experts == 3 * 16 / 4 * (3 * 512 * 256));
    const auto reduced = zero > 0 ? collective::Kind::reduce_scatter : collective::Kind::all_reduce;
    const std::int64_t times = zero >= 2 ? 3 : 1;
    const std::int64_t dense = bytes_by_kind(program, Role::data)[reduced], padding = dense - times * 4 * held.dense;
    CHECK(padding >= 0);
    CHECK(padding <= (zero == 0 ? 0 : times * 4 * 6 * 8 * 128));  // below 128 a replica for each of at most six units
    CHECK(bytes_by_kind(program, Role::expert_data)[reduced] == times * 4 * held.experts);
    // Under ZeRO 3 before both passes of each micro-batch; no expert is in the head, which stays.
    CHECK(bytes_by_kind(program, Role::expert_data)[collective::Kind::all_gather] == (zero == 0   ? 0
                                                                                      : zero == 3 ? 3 * 2 * 2
                                                                                                  : 2) *
                                                                                         held.experts);
  }
  // With all experts of a layer on each replica's ranks alone, nobody else has them.
  const Program alone = build_program(model, expert_layout(1, 1, 4, 4, 1), round_gpu(), 0);
  CHECK(bytes_by_kind(alone, Role::expert_data).empty());
}

TEST_CASE("a layer with experts multiplies for each token what a dense layer of its active width does, and routes") {
  Model model = small_experts();
  Model dense = model;
  dense.experts = dense.dense_layers = dense.expert_ffn_hidden = 0;
  dense.experts_per_token = 1;
  dense.ffn_hidden = 2 * 256;
  const LayerKind experts{true, false};
  for (const std::int64_t shared : {0, 128}) {
    model.shared_ffn_hidden = shared;
    dense.ffn_hidden = 2 * 256 + shared;
    const Strategy strategy = expert_layout(1, 1, 4, 4, 1);
    const std::int64_t tokens = 2 * model.sequence, router = 2 * tokens * model.hidden * model.experts;
    CHECK(flops_of(layer_operators(model, strategy, experts), true) ==
          flops_of(layer_operators(dense, strategy), true) + router);
    CHECK(flops_of(layer_operators(model, strategy, experts), false) ==
          flops_of(layer_operators(dense, strategy), false) + 2 * router);
  }
}

TEST_CASE("latent attention multiplies 2 FLOPs per token and parameter, and 2 per pair and width of a head") {
  Model model = small(true, 1);
  model.kv_heads = 0;
  model.attention = Attention::latent;
  model.query_rank = 192, model.kv_rank = 64, model.rotary_dim = 32, model.value_dim = 48;
  for (const std::int64_t query_rank : {0, 192}) {
    model.query_rank = query_rank;
    const Strategy strategy = layout(1, 1, 1, 1);
    const std::int64_t s = model.sequence, norms = 2 * model.hidden + query_rank + model.kv_rank;
    const std::int64_t weights = layer_parameters(model, strategy, {}).total() - norms;
    const std::int64_t core = 2 * s * s * 8 * (64 + 32 + 48);  // heads of 64 + 32 for keys, 48 for values
    CHECK(flops_of(layer_operators(model, strategy), true) == 2 * s * weights + core);
    CHECK(flops_of(layer_operators(model, strategy), false) == 2 * (2 * s * weights + core));
  }
}

TEST_CASE("context-parallel ranks share the FLOPs, and pass keys and values round the ring") {
  const Model model = small(true, 2);
  for (const AttentionKernel attention : {AttentionKernel::unfused, AttentionKernel::cudnn})
    for (const std::int64_t cp : {2, 4}) {
      Strategy one = layout(1, 1, 2, 6), many = one;
      one.stack.attention = many.stack.attention = attention;
      many.cp = cp;
      for (const bool forward : {true, false})
        CHECK(cp * flops_of(layer_operators(model, many), forward) == flops_of(layer_operators(model, one), forward));
      const Program program = build_program(model, many, round_gpu(), 0);
      // Forward cp - 1 blocks of keys and values; backward as many, their gradients with all but the first, and those
      // home: 3 (cp - 1) blocks in all. Four heads of 64 for keys and as many for values.
      const std::int64_t block = 2 * (2 * model.sequence / cp) * 2 * 4 * 64;
      const BytesByKind expected{{collective::Kind::send, 2 * 3 * 3 * (cp - 1) * block}};
      CHECK(bytes_by_kind(program, Role::send_context) == expected);
      CHECK(bytes_by_kind(program, Role::recv_context) == expected);
      // And its gradients are added up over all ranks that saw other tokens.
      CHECK(bytes_by_kind(program, Role::data)[collective::Kind::all_reduce] ==
            4 * stage_parameters(model, many, 0).total());
    }
}

TEST_CASE("context-parallel ranks gather keys and values, or trade tokens for heads, and share the FLOPs") {
  const Model model = small(true, 2);
  using collective::Kind;
  for (const AttentionKernel attention : {AttentionKernel::unfused, AttentionKernel::cudnn})
    for (const std::int64_t cp : {2, 4})
      for (const ContextExchange form : {ContextExchange::all_gather, ContextExchange::ulysses}) {
        Strategy one = layout(1, 1, 2, 6), ring = one;
        one.stack.attention = ring.stack.attention = attention;
        ring.cp = cp;
        Strategy many = ring;
        many.cp_comm = form;
        CAPTURE(attention, cp, form);
        for (const bool forward : {true, false})
          CHECK(cp * flops_of(layer_operators(model, many), forward) == flops_of(layer_operators(model, one), forward));
        const Program program = build_program(model, many, round_gpu(), 0);
        const std::int64_t passes = 2 * 3, tokens = 2 * model.sequence / cp;
        const std::int64_t keys = 2 * tokens * 4 * 64, queries = 2 * tokens * 8 * 64;  // values and outputs as wide
        // Gathered forward and again for the backward pass, whose gradients are scattered; or there and back, twice.
        const BytesByKind gathered{{Kind::all_gather, passes * 2 * cp * 2 * keys},
                                   {Kind::reduce_scatter, passes * cp * 2 * keys}};
        const BytesByKind turned{{Kind::all_to_all, passes * 2 * (2 * queries + 2 * keys)}};
        CHECK(bytes_by_kind(program, Role::context) == (form == ContextExchange::ulysses ? turned : gathered));
        CHECK(bytes_by_kind(program, Role::send_context).empty());
        // A rank keeps its own keys and values, or those of its heads.
        const auto kept = [&](const Strategy& given) { return memory::activation_bytes_per_layer(model, given); };
        CHECK(kept(many) == kept(ring));
        const auto working = [&](const Strategy& given) { return memory::layer_bytes(model, given, {}).working; };
        if (form == ContextExchange::ulysses) CHECK(working(many) == working(ring));
      }
}

TEST_CASE("gathered blocks share the FLOPs, are gathered once a pass, and send gradients on cp times in fp32") {
  const Model model = small(true, 2);
  using collective::Kind;
  for (const bool shared_keys : {true, false})
    for (const std::int64_t cp : {2, 4}) {
      Strategy one = layout(1, 1, 2, 6);
      one.stack.attention = AttentionKernel::flash2;
      one.stack.grouped_query_fusion = shared_keys;
      Strategy many = one;
      many.cp = cp, many.cp_comm = ContextExchange::gathered_blocks;
      CAPTURE(shared_keys, cp);
      for (const bool forward : {true, false})
        CHECK(cp * flops_of(layer_operators(model, many), forward) == flops_of(layer_operators(model, one), forward));
      const Program program = build_program(model, many, round_gpu(), 0);
      const std::int64_t passes = 2 * 3, tokens = 2 * model.sequence / cp;
      const std::int64_t keys_and_values = 2 * tokens * (shared_keys ? 4 : 8) * (64 + 64);
      CHECK(bytes_by_kind(program, Role::context) ==
            BytesByKind{{Kind::all_gather, passes * 2 * cp * keys_and_values}});
      CHECK(bytes_by_kind(program, Role::send_context) == BytesByKind{{Kind::send, passes * cp * 2 * keys_and_values}});
    }
}

TEST_CASE("keys and values that a rank has gathered, and their gradients, are in memory while it attends") {
  Model model = small(true, 2);
  model.sequence = 65'536, model.kv_heads = 8, model.ffn_hidden = 64;  // so that nothing else is as large
  Strategy ring = layout(1, 1, 1, 1);
  ring.stack.attention = AttentionKernel::cudnn;
  ring.cp = 8;
  Strategy gathered = ring;
  gathered.cp_comm = ContextExchange::all_gather;
  const std::int64_t hidden = 2 * 65'536 / 8 * 512;
  CHECK(memory::layer_bytes(model, gathered, {}).working == 2 * 2 * 65'536 * 2 * 512 + hidden);
  CHECK(memory::layer_bytes(model, ring, {}).working == 2 * 2 * 65'536 / 8 * 64 + hidden);
  gathered.cp_comm = ContextExchange::gathered_blocks;  // and of two blocks the gradients in fp32
  CHECK(memory::layer_bytes(model, gathered, {}).working == (2 + 2 * 4 / 8) * 65'536 * 2 * 512 + hidden);
}

TEST_CASE("heads take their tokens with two copies of each tensor on the way") {
  const Model model = small(true, 1);
  Strategy strategy = layout(1, 1, 1, 1);
  strategy.cp = 2, strategy.cp_comm = ContextExchange::ulysses;
  std::int64_t bytes = 0, copies = 0;
  for (const Operator& each : layer_operators(model, strategy))
    if (each.name == "tokens_to_heads" || each.name == "heads_to_tokens")
      for (const OpList* ops : {&each.forward, &each.backward})
        for (const WorkItem& work : *ops)
          if (const KernelWork* kernel = work.kernel()) bytes += kernel->shape.bytes, ++copies;
  CHECK(copies == 2 * 2 * 4);
  const std::int64_t elements = model.sequence / 2 * (8 + 4 + 4 + 8) * 64;
  CHECK(bytes == 2 * 2 * 4 * elements);  // there and back, before and after, read and written in 16 bits
}

TEST_CASE("a window of w tokens leaves w (2 s - w) / 2 of the pairs of a sample") {
  Model model = small(true, 4);
  model.sequence = 1'024;
  Strategy strategy = layout(1, 1, 1, 1);
  strategy.stack.attention = AttentionKernel::cudnn;
  const auto core_flops = [&](LayerKind kind) {
    for (const Operator& each : layer_operators(model, strategy, kind))
      if (each.in_modules & recompute::core_attn) return each.forward.front().kernel()->shape.flops;
    return std::int64_t{0};
  };
  const std::int64_t whole = core_flops({});
  model.window = 128, model.window_every = 2;
  CHECK(model.layer_kind(0).windowed);
  CHECK_FALSE(model.layer_kind(1).windowed);
  CHECK(core_flops({false, false}) == whole);
  CHECK(core_flops({false, true}) * 1'024 * 1'024 == whole * 128 * (2 * 1'024 - 128));
  model.window = 4'096;  // beyond the sample
  CHECK(core_flops({false, true}) == whole);
}
