// Programs of neighbouring stages against each other: transfers meet in order, and together the programs end.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <tuple>

#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_grid.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

struct Place {
  int micro_batch = -1, section = -1;
  bool operator==(const Place&) const = default;
};
/// Of a pass, and of the one that runs with it as one.
using Places = std::vector<Place>;

/// Which pass an op belongs to.
Places places(const Program& program, const Op& op, const Strategy& strategy, const PassOrder& order,
              std::size_t stage) {
  const PipelinePass* pass = program.pass_of(op);
  if (pass == nullptr) return {};
  const auto place = [&](const PipelinePass& slot) {
    return Place{slot.micro_batch,
                 static_cast<int>(strategy.stages().of(static_cast<std::int64_t>(stage), slot.chunk))};
  };
  Places all{place(*pass)};
  const auto at = std::find(order.begin(), order.end(), *pass);
  if (at->overlaps_next) all.push_back(place(*(at + 1)));
  if (at != order.begin() && (at - 1)->overlaps_next) all.push_back(place(*(at - 1)));
  return all;
}

struct Transfer {
  Places at;
  std::int64_t bytes = 0;
};

/// What a rank sends: the pass that each send waits for.
std::vector<Transfer> sends(const Program& program, Role role, const Strategy& strategy, const PassOrder& order,
                            std::size_t stage) {
  std::vector<Transfer> all;
  for (const Op& op : program.ops) {
    const CollectiveCall* call = call_of(op, role);
    if (call == nullptr) continue;
    REQUIRE(call->kind == collective::Kind::send);
    REQUIRE(op.waits_end > op.waits_begin);
    const Op& producer = program.ops.at(program.waits.at(op.waits_end - 1));
    REQUIRE(producer.stream == Stream::compute);
    all.push_back({places(program, producer, strategy, order, stage), call->bytes});
  }
  return all;
}

/// What a rank receives: the pass of the first kernel after whatever waits for it.
std::vector<Transfer> receives(const Program& program, Role role, const Strategy& strategy, const PassOrder& order,
                               std::size_t stage) {
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const CollectiveCall* call = call_of(op, role);
    if (call == nullptr) continue;
    REQUIRE(call->kind == collective::Kind::send);
    REQUIRE(op.waits_end == op.waits_begin);  // posted early
    std::size_t user = i + 1;
    const auto waits_for_it = [&](const Op& other) {
      for (std::uint32_t w = other.waits_begin; w < other.waits_end; ++w)
        if (program.waits[w] == i) return true;
      return false;
    };
    while (user < program.ops.size() && !waits_for_it(program.ops[user])) ++user;
    REQUIRE(user < program.ops.size());
    while (program.ops.at(user).stream != Stream::compute) ++user;
    all.push_back({places(program, program.ops[user], strategy, order, stage), call->bytes});
  }
  return all;
}

/// Runs all stages' programs by CUDA's rules, transfers in lockstep by order; true when every op of every stage ran.
bool runs_to_the_end(const std::vector<Program>& all) {
  const std::size_t stages = all.size();
  using Lane = std::vector<std::uint32_t>;
  std::vector<std::array<Lane, kStreams>> lanes(stages);
  std::vector<std::array<std::size_t, kStreams>> next(stages, std::array<std::size_t, kStreams>{});
  std::vector<std::vector<bool>> done(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    done[s].resize(all[s].ops.size());
    for (std::uint32_t i = 0; i < all[s].ops.size(); ++i)
      lanes[s][static_cast<std::size_t>(all[s].ops[i].stream)].push_back(i);
  }
  const auto head = [&](std::size_t s, Stream stream) -> std::int64_t {  // ready op, or -1
    const auto lane = static_cast<std::size_t>(stream);
    if (next[s][lane] == lanes[s][lane].size()) return -1;
    const std::uint32_t i = lanes[s][lane][next[s][lane]];
    const Op& op = all[s].ops[i];
    for (std::uint32_t w = op.waits_begin; w < op.waits_end; ++w)
      if (!done[s][all[s].waits[w]]) return -1;
    return i;
  };
  const auto finish = [&](std::size_t s, Stream stream) {
    done[s][static_cast<std::size_t>(head(s, stream))] = true;
    ++next[s][static_cast<std::size_t>(stream)];
  };
  const auto meet = [&](std::size_t from, Stream out, std::size_t to, Stream in) {
    if (head(from, out) < 0 || head(to, in) < 0) return false;
    finish(from, out);
    finish(to, in);
    return true;
  };
  const auto pass = [&] {
    bool moved = false;
    for (std::size_t s = 0; s < stages; ++s) {
      const std::size_t following = (s + 1) % stages;
      while (meet(s, Stream::send_forward, following, Stream::recv_forward)) moved = true;
      while (meet(following, Stream::send_backward, s, Stream::recv_backward)) moved = true;
      while (meet(following, Stream::send_forward_reverse, s, Stream::recv_forward_reverse)) moved = true;
      while (meet(s, Stream::send_backward_reverse, following, Stream::recv_backward_reverse)) moved = true;
      for (const Stream stream : {Stream::compute, Stream::tensor})
        while (head(s, stream) >= 0) finish(s, stream), moved = true;
      for (std::int64_t i;
           (i = head(s, Stream::data)) >= 0 && call_of(all[s].ops[static_cast<std::size_t>(i)], Role::data);)
        finish(s, Stream::data), moved = true;
    }
    const auto at_embedding = [&](std::size_t s) {
      const std::int64_t i = head(s, Stream::data);
      return i >= 0 && call_of(all[s].ops[static_cast<std::size_t>(i)], Role::embedding);
    };
    if (at_embedding(0) && at_embedding(stages - 1))
      finish(0, Stream::data), finish(stages - 1, Stream::data), moved = true;
    return moved;
  };
  while (pass()) continue;
  for (const auto& stage : done)
    for (const bool op : stage)
      if (!op) return false;
  return true;
}

}  // namespace

TEST_CASE("the n-th send of a rank is the n-th receive of its neighbour: same micro-batch, next part, same bytes") {
  for (const auto& [model, strategy] : grid()) {
    const std::vector<Program> all = programs(model, strategy);
    const std::size_t stages = all.size();
    CAPTURE(strategy.pp, strategy.virtual_stages, strategy.micro_batches(), schedule_type(strategy.schedule).name);
    const auto orders = pipeline_orders(model, strategy, round_gpu());
    std::size_t transfers = 0;
    for (std::size_t s = 0; s < stages; ++s) {
      const std::size_t following = (s + 1) % stages;
      for (const auto& [out, from, in, to, step] :
           {std::tuple{Role::send_forward, s, Role::recv_forward, following, 1},
            std::tuple{Role::send_backward, following, Role::recv_backward, s, -1},
            std::tuple{Role::send_forward_reverse, following, Role::recv_forward_reverse, s, 1},
            std::tuple{Role::send_backward_reverse, s, Role::recv_backward_reverse, following, -1}}) {
        const std::vector<Transfer> sent = sends(all[from], out, strategy, orders[from], from);
        const std::vector<Transfer> received = receives(all[to], in, strategy, orders[to], to);
        REQUIRE(sent.size() == received.size());
        transfers += sent.size();
        for (std::size_t n = 0; n < sent.size(); ++n) {
          bool same = false;
          for (const Place& one : sent[n].at)
            for (const Place& other : received[n].at)
              same |= one.micro_batch == other.micro_batch && one.section + step == other.section;
          REQUIRE(same);
          REQUIRE(sent[n].bytes == received[n].bytes);
          REQUIRE(sent[n].bytes == 2 * 2 * model.sequence * 512 / (strategy.sequence_parallel ? strategy.tp : 1));
        }
      }
    }
    // The fold of a V is on one rank.
    const std::int64_t boundaries =
        strategy.pp > 1 ? strategy.stages().count() - (strategy.stage_placement() == StagePlacement::v_shape ? 2 : 1)
                        : 0;
    REQUIRE(transfers == static_cast<std::size_t>(2 * boundaries * strategy.micro_batches()));
  }
}

TEST_CASE("the programs of all stages run to their end together") {
  for (const auto& [model, strategy] : grid()) {
    CAPTURE(strategy.pp, strategy.virtual_stages, strategy.micro_batches(), schedule_type(strategy.schedule).name);
    REQUIRE(runs_to_the_end(programs(model, strategy)));
  }
}

TEST_CASE("a pipeline whose neighbours take transfers in another order is seen to hang") {
  const Model model = small(false, 4);
  std::vector<Program> all = programs(model, layout(1, 2, 1, 4));
  for (Op& op : all[1].ops)  // the first kernel waits for the last receive
    if (op.stream == Stream::compute && op.waits_end > op.waits_begin) {
      for (std::uint32_t i = 0; i < all[1].ops.size(); ++i)
        if (all[1].ops[i].stream == Stream::recv_forward) all[1].waits[op.waits_begin] = i;
      break;
    }
  CHECK_FALSE(runs_to_the_end(all));
}

TEST_CASE(
    "where ranks wait for transfers, interleaved 1F1B exchanges what a forward and a backward pass made together") {
  for (const std::int64_t micro_batches : {4, 8, 12}) {
    CAPTURE(micro_batches);
    const Model model = gpt(8, 512, 8, 512);
    Strategy strategy;
    strategy.pp = 4, strategy.virtual_stages = 2, strategy.global_batch = micro_batches;
    strategy.schedule = schedule_by_name("interleaved");
    strategy.stack.overlap_transfers = false;
    const std::vector<Program> all = programs(model, strategy);
    const auto orders = pipeline_orders(model, strategy, round_gpu());
    std::size_t pairs = 0;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const auto sent = sends(all[rank], Role::send_forward, strategy, orders[rank], rank);
      std::size_t number = 0;
      for (std::size_t i = 0; i < orders[rank].size(); ++i) {
        const PipelinePass& slot = orders[rank][i];
        const auto section = static_cast<int>(strategy.stages().of(static_cast<std::int64_t>(rank), slot.chunk));
        if (!slot.forward() || section == 7) continue;
        // With as many micro-batches as ranks some of these do nothing but warm up, and nothing is exchanged in pairs.
        const bool paired = micro_batches > 4 && i + 1 < orders[rank].size() && !orders[rank][i + 1].forward();
        const PipelinePass& made_by = paired ? orders[rank][i + 1] : slot;
        const Place producer{made_by.micro_batch,
                             static_cast<int>(strategy.stages().of(static_cast<std::int64_t>(rank), made_by.chunk))};
        REQUIRE(sent.at(number++).at == Places{producer});
        pairs += paired;
      }
      REQUIRE(number == sent.size());
    }
    CHECK((pairs > 0) == (micro_batches > 4));
  }
}

TEST_CASE("tensor ranks that share out a transfer send a part each, which the receivers gather before their kernels") {
  const Model model = small(false, 4);
  for (const std::int64_t tp : {1, 2, 4})
    for (const bool sequence_parallel : {false, true}) {
      Strategy whole = layout(tp, 4, 2, 12), shared = whole;
      whole.sequence_parallel = shared.sequence_parallel = sequence_parallel;
      shared.stack.scatter_transfers = true;
      const auto before = programs(model, whole), after = programs(model, shared);
      const std::int64_t output = 2 * 2 * model.sequence * model.hidden;  // two samples in 16 bits
      const bool cut = tp > 1 && !sequence_parallel;
      for (std::size_t stage = 0; stage < before.size(); ++stage) {
        CAPTURE(tp, sequence_parallel, stage);
        std::int64_t received = 0;
        for (const auto& [role, from_before] :
             {std::pair{Role::recv_forward, stage > 0}, std::pair{Role::recv_backward, stage + 1 < before.size()}}) {
          const std::int64_t transfers = from_before ? 6 : 0;
          received += transfers;
          if (transfers == 0) continue;
          CHECK(bytes_by_kind(before[stage], role).at(collective::Kind::send) ==
                transfers * (sequence_parallel ? output / tp : output));
          CHECK(bytes_by_kind(after[stage], role).at(collective::Kind::send) == transfers * output / (tp > 1 ? tp : 1));
        }
        const auto gathered = [&](const Program& program) {
          const BytesByKind bytes = bytes_by_kind(program, Role::tensor);
          const auto found = bytes.find(collective::Kind::all_gather);
          return found == bytes.end() ? 0 : found->second;
        };
        CHECK(gathered(after[stage]) - gathered(before[stage]) == (cut ? received * output : 0));
      }
    }
}
