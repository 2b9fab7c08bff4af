// Putting a stage's program together: slots of the schedule in order, each with its receive, its pieces and its send;
// then gradients, optimizer and parameters.
#include "core/workload/build/build_program.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/workload/build/host_traffic.hpp"
#include "core/workload/build/issuer.hpp"
#include "core/workload/build/pieces.hpp"
#include "core/workload/build/replica_traffic.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/schedule/eager.hpp"
#include "core/workload/schedule/schedule.hpp"
#include "core/workload/strategy/cut.hpp"
#include "core/workload/strategy/parameters.hpp"

namespace manyworlds::core::workload {
namespace {

/// What a chunk runs, compiled once and played for each micro-batch.
class Chunk {
 public:
  Chunk(const StageWork& work, const std::vector<Part>& parts, const compute::Gpu& gpu, std::int64_t micro_batches)
      : work_(work), parts_(parts), gpu_(gpu), left_(micro_batches) {}

  std::size_t parts() const { return parts_.size(); }
  PassOfStep begin(const Slot& slot) {
    const bool first = slot.forward() && !std::exchange(begun_, true);
    return {slot, first, slot.ends_backward() && --left_ == 0};
  }
  const std::vector<Piece>& pieces(PassKind kind, bool split) {
    auto& made = made_[{kind, split}];
    if (made.empty()) made = pieces_of(work_, parts_, kind, gpu_, split);
    return made;
  }

 private:
  const StageWork& work_;
  const std::vector<Part>& parts_;
  const compute::Gpu& gpu_;
  std::int64_t left_;  // micro-batches whose backward pass has not ended
  bool begun_ = false;
  std::map<std::pair<PassKind, bool>, std::vector<Piece>> made_;
};

/// The role and stream of what travels between pipeline ranks.
struct Way {
  Stream stream;
  Role role;
  std::string_view name;
};
Way way(bool forward, bool back, bool sends) {
  using S = Stream;
  using R = Role;
  static constexpr Way kForward[2][2] = {{{S::recv_forward, R::recv_forward, "receive activations"},
                                          {S::recv_forward_back, R::recv_forward_back, "receive activations"}},
                                         {{S::send_forward, R::send_forward, "send activations"},
                                          {S::send_forward_back, R::send_forward_back, "send activations"}}};
  static constexpr Way kBackward[2][2] = {{{S::recv_backward, R::recv_backward, "receive gradients"},
                                           {S::recv_backward_on, R::recv_backward_on, "receive gradients"}},
                                          {{S::send_backward, R::send_backward, "send gradients"},
                                           {S::send_backward_on, R::send_backward_on, "send gradients"}}};
  return (forward ? kForward : kBackward)[sends][back];
}

class Builder {
 public:
  Builder(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, const std::vector<Schedule>& orders,
          RankClass of)
      : model_(model),
        strategy_(strategy),
        gpu_(gpu),
        orders_(orders),
        stage_(of.stage),
        sections_(strategy.sections()),
        rank_(cut(model, strategy)),
        work_(stage_work(model, strategy, gpu, of)),
        replicas_(make_replica_traffic(model, strategy, work_, issuer_)),
        host_(work_, gpu, orders[static_cast<std::size_t>(stage_)], issuer_) {
    for (const auto& parts : work_.chunks) chunks_.emplace_back(work_, parts, gpu, strategy.chunk_micro_batches());
  }

  Program build() {
    replicas_->begin_step();
    const Schedule& slots = orders_[static_cast<std::size_t>(stage_)];
    for (std::size_t i = 0; i < slots.size(); ++i) {
      Strand one = strand(slots[i]);
      if (hands_on_pairs() && slots[i].forward() && i + 1 < slots.size() && slots[i + 1].kind == PassKind::backward) {
        Strand other = strand(slots[++i]);
        play_pair(one, other);
        continue;
      }
      const bool next_forward = slots[i].kind == PassKind::backward && i + 1 < slots.size() && slots[i + 1].forward();
      const bool together = slots[i].beside_next || (strategy_.stack.overlap_experts && next_forward);
      if (!together || one.split) {
        play(one);
        continue;
      }
      Strand other = strand(slots[++i]);
      if (other.split)
        play(one), play(other);
      else
        play_beside(one, other, slots[i - 1].beside_next);
    }
    finish_gradients();
    run_optimizer();
    replicas_->finish_step();
    return issuer_.take();
  }

 private:
  /// A slot of the schedule while it is played.
  struct Strand {
    PassOfStep pass;
    Chunk* chunk = nullptr;
    bool split = false;
    std::size_t at = 0;                    // the next piece
    std::uint32_t name = 0;                // of its kernels
    std::size_t place = 0;                 // of the part at work
    Issuer::Waits waits;                   // while another strand is at work
    std::vector<Issuer::Started> started;  // collectives that kernels do not wait for yet
    bool travels = false;                  // tokens of the last piece are on their way
  };

  Strand strand(const Slot& slot) {
    Strand made;
    made.chunk = &chunks_.at(static_cast<std::size_t>(slot.chunk));
    made.pass = made.chunk->begin(slot);
    made.split = replicas_->splits(made.pass) || host_.splits(slot);
    return made;
  }
  const std::vector<Piece>& pieces_of(const Strand& of) { return of.chunk->pieces(of.pass.slot.kind, of.split); }

  void play(Strand& one) {
    play_parts(one);
    hand_on(one);
  }
  /// `other` has what it needs by then, too.
  void play_parts(Strand& one, const Strand* other = nullptr) {
    issuer_.wait_for_nothing();
    begin(one);
    if (other != nullptr) receive_for(other->pass.slot);
    while (one.at < pieces_of(one).size()) play_next(one);
    while (one.place < one.chunk->parts()) after_part(one, one.place++);
  }

  /// Where ranks wait for transfers, and pairs are exchanged: a forward pass and the backward pass behind it begin when
  /// the rank has what either needs, and hand on what they made when both are done (Megatron-LM,
  /// send_forward_backward_recv_forward_backward()). With no more micro-batches than ranks there are none.
  bool hands_on_pairs() const {
    return schedule_type(strategy_.schedule).exchanges_pairs && !strategy_.stack.overlap_transfers &&
           !strategy_.stack.overlap_experts && strategy_.micro_batches() > strategy_.pp;
  }
  void play_pair(Strand& forward, Strand& backward) {
    play_parts(forward, &backward);
    play_parts(backward);
    hand_on(forward);
    hand_on(backward);
  }

  /// Two passes of different micro-batches, one of them forward: whenever one waits for tokens to travel, the other
  /// goes on (Megatron-Core's schedule for overlap_moe_expert_parallel_comm). As one they begin when both have what
  /// they need and hand on when both are done (DualPipe's overlapped_forward_backward).
  void play_beside(Strand& first, Strand& second, bool as_one) {
    Strand* now = &first;
    Strand* other = &second;
    issuer_.wait_for_nothing();
    begin(*now);
    if (!as_one) now->waits = issuer_.exchange_waits({});
    begin(*other);
    if (!as_one) other->waits = issuer_.exchange_waits(std::move(now->waits));
    for (bool both = true; both || now->at < pieces_of(*now).size();) {
      if (now->at == pieces_of(*now).size()) {
        both = false;
        if (!as_one) end(*now);
        now->waits = issuer_.exchange_waits(std::move(other->waits));
        std::swap(now, other);
        continue;
      }
      const Piece& next = pieces_of(*now)[now->at];
      if (both && now->travels && next.joined && !next.awaited.role) {
        now->travels = false;
        now->waits = issuer_.exchange_waits(std::move(other->waits));
        std::swap(now, other);
        if (now->at == pieces_of(*now).size()) continue;
      }
      play_next(*now);
    }
    end(*now);
    if (!as_one) return;
    for (const std::uint32_t op : other->waits) issuer_.wait_for(op);
    end(*other);
  }

  void begin(Strand& of) {
    const Slot& slot = of.pass.slot;
    for (const std::uint32_t sent : std::exchange(sent_, {})) issuer_.wait_for(sent);
    receive_for(slot);
    of.name = issuer_.new_label(name_of(slot), slot);
    for (std::size_t place = 0; place < (of.split ? std::min<std::size_t>(1, of.chunk->parts()) : of.chunk->parts());
         ++place)
      before_part(of, place);
  }

  void before_part(Strand& of, std::size_t place) {
    replicas_->before_part(of.pass, place);
    host_.before_part(of.pass.slot, place);
  }
  void after_part(Strand& of, std::size_t place) {
    host_.after_part(of.pass.slot, place);
    replicas_->after_part(of.pass, place);
  }

  void play_next(Strand& of) {
    const Piece& piece = pieces_of(of)[of.at++];
    play(piece, of);
    for (std::int32_t part = 0; part < piece.finished_parts; ++part) {
      after_part(of, of.place++);
      if (of.place < of.chunk->parts()) before_part(of, of.place);
    }
  }

  void end(Strand& of) {
    while (of.place < of.chunk->parts()) after_part(of, of.place++);
    hand_on(of);
  }

  void hand_on(const Strand& of) {
    const Slot& slot = of.pass.slot;
    const auto to = slot.forward()           ? sections_.after(stage_, slot.chunk)
                    : slot.begins_backward() ? sections_.before(stage_, slot.chunk)
                                             : std::nullopt;
    if (!to || to->rank == stage_) return;
    const auto sent = transfer(way(slot.forward(), sections_.goes_back(slot.forward() ? slot.chunk : to->chunk), true),
                               issuer_.all_so_far());
    if (!strategy_.stack.overlap_transfers) sent_.push_back(sent);
  }

  /// The chunk of another rank that a pass has its input from.
  std::optional<ChunkAt> source_of(const Slot& slot) const {
    std::optional<ChunkAt> from;
    if (slot.forward()) from = sections_.before(stage_, slot.chunk);
    if (slot.begins_backward()) from = sections_.after(stage_, slot.chunk);
    return from && from->rank != stage_ ? from : std::nullopt;
  }

  void receive_for(const Slot& slot) {
    if (const auto from = source_of(slot)) receive(slot, *from);
  }

  /// Receives are posted in the order in which the other rank sends, up to the one that `slot` needs, unless they are.
  void receive(const Slot& slot, const ChunkAt& from) {
    const bool back = sections_.goes_back(slot.forward() ? from.chunk : slot.chunk);
    const Way by = way(slot.forward(), back, false);
    auto [known, is_new] = arrivals_.try_emplace(by.role);
    Arrivals& arrivals = known->second;
    if (is_new) arrivals.due = sent_to_here(slot.forward(), back, from.rank);
    auto& posted = arrivals.posted;
    while (!posted.contains({slot.micro_batch, slot.chunk}) && posted.size() < arrivals.due.size()) {
      const auto& next = arrivals.due[posted.size()];
      posted.emplace(next, transfer(by, {}));
    }
    issuer_.wait_for(posted.at({slot.micro_batch, slot.chunk}));
  }

  /// By micro-batch and chunk of this rank, what `from` sends on one way, in its order.
  std::vector<std::pair<std::int32_t, std::int64_t>> sent_to_here(bool forward, bool back, std::int64_t from) const {
    std::vector<std::pair<std::int32_t, std::int64_t>> sent;
    for (const Slot& slot : orders_[static_cast<std::size_t>(from)]) {
      if (forward ? !slot.forward() : !slot.begins_backward()) continue;
      const auto to = forward ? sections_.after(from, slot.chunk) : sections_.before(from, slot.chunk);
      if (!to || to->rank != stage_ || sections_.goes_back(forward ? slot.chunk : to->chunk) != back) continue;
      sent.emplace_back(slot.micro_batch, to->chunk);
    }
    return sent;
  }

  std::uint32_t transfer(const Way& by, const Issuer::Waits& waits) {
    return issuer_.collective(by.stream, by.role, collective::Kind::send, rank_.boundary_bytes(), by.name, waits);
  }

  void play(const Piece& piece, Strand& of) {
    if (piece.joined) await(piece.awaited, of);
    if (piece.kind != Piece::Kind::start) return issuer_.compute(piece.booking, piece.duration_ps, of.name);
    if (piece.role == Role::send_context) start(Stream::recv_context, Role::recv_context, piece, of);
    start(stream_of(piece.role), piece.role, piece, of);
    of.travels |= piece.role == Role::expert;
  }

  void await(const Awaited& awaited, Strand& of) {
    const auto before = std::max<std::int64_t>(std::ssize(of.started) - awaited.but, 0);
    std::vector<Issuer::Started> left;
    for (std::int64_t i = 0; i < std::ssize(of.started); ++i) {
      Issuer::Started& one = of.started[static_cast<std::size_t>(i)];
      if (i < before && (!awaited.role || issuer_.role_of(one.op) == *awaited.role))
        issuer_.wait_for_instead(one);
      else
        left.push_back(std::move(one));
    }
    of.started = std::move(left);
  }

  static Stream stream_of(Role role) {
    if (role == Role::expert || role == Role::expert_tensor) return Stream::expert;
    return role == Role::send_context || role == Role::context ? Stream::send_context : Stream::tensor;
  }
  void start(Stream stream, Role role, const Piece& piece, Strand& of) {
    of.started.push_back(issuer_.start(stream, role, piece.collective, piece.bytes, piece.name, piece.split));
  }

  /// Whatever of the gradients is still to be added up once the last backward pass is done.
  void finish_gradients() {
    Issuer::Waits gradients = replicas_->finish_gradients();
    if (rank_.sequence_parallel) {
      Issuer::Waits waits = issuer_.all_so_far();  // Megatron-LM adds these up after the buckets
      waits.insert(waits.end(), gradients.begin(), gradients.end());
      issuer_.wait_for(issuer_.collective(Stream::tensor, Role::tensor, collective::Kind::all_reduce,
                                          gradient_bytes(strategy_) * work_.replicated_parameters, "norm gradients",
                                          waits));
    }
    const bool holds_table = sections_.has_first(stage_) || sections_.has_last(stage_);
    if (model_.tied_embeddings && !sections_.ends_meet() && holds_table) {
      const std::int64_t bytes = gradient_bytes(strategy_) * token_table_parameters(model_, strategy_.tp);
      // From ZeRO 2 on a rank has its share of the gradients.
      const std::int64_t shares = strategy_.zero >= 2 ? strategy_.shards() : 1;
      gradients.push_back(issuer_.collective(Stream::data, Role::embedding, collective::Kind::all_reduce,
                                             (bytes + shares - 1) / shares, "embedding gradients",
                                             issuer_.all_so_far()));
    }
    for (const std::uint32_t op : gradients) issuer_.wait_for(op);
  }

  void run_optimizer() {
    Time duration_ps = 0;
    for (const compute::Kernel& kernel : optimizer_kernels(strategy_, stage_parameters(model_, strategy_, stage_)))
      duration_ps += compute::price(kernel, gpu_).ps;
    issuer_.compute(Booking::optimizer, duration_ps, issuer_.label("optimizer"));
  }

  const Model& model_;
  const Strategy& strategy_;
  const compute::Gpu& gpu_;
  const std::vector<Schedule>& orders_;
  const std::int64_t stage_;
  const Sections sections_;
  const Cut rank_;
  const StageWork work_;
  Issuer issuer_;
  std::unique_ptr<ReplicaTraffic> replicas_;
  HostTraffic host_;
  std::vector<Chunk> chunks_;
  struct Arrivals {
    std::vector<std::pair<std::int32_t, std::int64_t>> due;  // micro-batches and chunks, in the sender's order
    std::map<std::pair<std::int32_t, std::int64_t>, std::uint32_t> posted;
  };
  std::map<Role, Arrivals> arrivals_;
  Issuer::Waits sent_;  // by the last passes, where the next one waits for it
};

/// A pass through all parts of a chunk.
Time lasts(const StageWork& work, const std::vector<Part>& chunk, PassKind kind, const compute::Gpu& gpu) {
  Time sum = 0;
  for (const Piece& piece : pieces_of(work, chunk, kind, gpu, false)) sum += piece.duration_ps;
  return sum;
}

/// Of a rank on the average, as those were that such orders were published with (Qi et al. 2024, table 9).
PassCosts mean_costs(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  PassCosts sum{0, 0, 0, 0, 0};
  for (std::int64_t stage = 0; stage < strategy.pp; ++stage) {
    const StageWork work = stage_work(model, strategy, gpu, stage);
    const std::vector<Part>& chunk = work.chunks.at(0);
    sum.forward_ps += lasts(work, chunk, PassKind::forward, gpu);
    sum.input_gradient_ps += lasts(work, chunk, PassKind::input_gradient, gpu);
    sum.weight_gradient_ps += lasts(work, chunk, PassKind::weight_gradient, gpu);
    for (const Part part : chunk) {
      sum.kept_bytes += work.of(part).kept_bytes;
      sum.held_bytes += std::min(work.of(part).held_bytes, work.of(part).kept_bytes);
    }
  }
  for (std::int64_t* figure :
       {&sum.forward_ps, &sum.input_gradient_ps, &sum.weight_gradient_ps, &sum.kept_bytes, &sum.held_bytes})
    *figure /= strategy.pp;
  return sum;
}

}  // namespace

std::vector<Schedule> pipeline_orders(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  MANYWORLDS_CHECK(strategy.micro_batches() > 0, "global batch {} over dp {} x micro-batch {}", strategy.global_batch,
                   strategy.dp, strategy.micro_batch);
  const ScheduleType& type = schedule_type(strategy.schedule);
  Pipeline pipeline = strategy.pipeline();
  const std::string fault = schedule_fault(type, pipeline);
  MANYWORLDS_CHECK(fault.empty(), "{}", fault);
  if (type.asks_costs) pipeline.costs = mean_costs(model, strategy, gpu);
  return type.orders(pipeline);
}

Program build_program(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                      const std::vector<Schedule>& orders, RankClass of) {
  return Builder(model, strategy, gpu, orders, of).build();
}

Program build_program(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass of) {
  return build_program(model, strategy, gpu, pipeline_orders(model, strategy, gpu), of);
}

}  // namespace manyworlds::core::workload
