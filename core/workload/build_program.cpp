// Putting a stage's program together: slots of the schedule in order, each with its receive, its pieces and its send;
// then gradients, optimizer and parameters.
#include "core/workload/build_program.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/workload/cut.hpp"
#include "core/workload/issuer.hpp"
#include "core/workload/parameters.hpp"
#include "core/workload/pieces.hpp"
#include "core/workload/replica_traffic.hpp"
#include "core/workload/schedule.hpp"
#include "core/workload/stage_work.hpp"

namespace manyworlds::core::workload {
namespace {

/// What a chunk runs, compiled once and played for each micro-batch.
class Chunk {
 public:
  Chunk(const StageWork& work, const std::vector<Part>& parts, const compute::Gpu& gpu, std::int64_t micro_batches)
      : work_(work), parts_(parts), gpu_(gpu), left_(micro_batches) {}

  std::size_t parts() const { return parts_.size(); }
  PassOfStep begin(const Slot& slot) {
    const bool first = slot.forward && !std::exchange(begun_, true);
    return {slot, first, !slot.forward && --left_ == 0};
  }
  const std::vector<Piece>& pieces(bool forward, bool split) {
    auto& made = made_[{forward, split}];
    if (made.empty())
      made = forward ? forward_pieces(work_, parts_, gpu_, split) : backward_pieces(work_, parts_, gpu_, split);
    return made;
  }

 private:
  const StageWork& work_;
  const std::vector<Part>& parts_;
  const compute::Gpu& gpu_;
  std::int64_t left_;  // micro-batches whose backward has not begun
  bool begun_ = false;
  std::map<std::pair<bool, bool>, std::vector<Piece>> made_;
};

class Builder {
 public:
  Builder(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass of)
      : model_(model),
        strategy_(strategy),
        gpu_(gpu),
        stage_(of.stage),
        rank_(cut(model, strategy)),
        work_(stage_work(model, strategy, gpu, of)),
        replicas_(make_replica_traffic(model, strategy, work_, issuer_)) {
    for (const auto& parts : work_.chunks) chunks_.emplace_back(work_, parts, gpu, strategy.micro_batches());
  }

  Program build() {
    replicas_->begin_step();
    const std::vector<Slot> slots = schedule(strategy_, stage_);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      Strand one = strand(slots[i]);
      const bool next_forward = !slots[i].forward && i + 1 < slots.size() && slots[i + 1].forward;
      if (!strategy_.stack.overlap_experts || !next_forward || one.split) {
        play(one);
        continue;
      }
      Strand other = strand(slots[++i]);
      if (other.split)
        play(one), play(other);
      else
        play_beside(one, other);
    }
    finish_gradients();
    run_optimizer();
    replicas_->finish_step();
    return issuer_.take();
  }

 private:
  bool first_part(const Slot& slot) const { return stage_ == 0 && slot.chunk == 0; }
  bool last_part(const Slot& slot) const {
    return stage_ == strategy_.pp - 1 && slot.chunk == strategy_.virtual_stages - 1;
  }

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
    made.split = replicas_->splits(made.pass);
    return made;
  }
  const std::vector<Piece>& pieces_of(const Strand& of) { return of.chunk->pieces(of.pass.slot.forward, of.split); }

  void play(Strand& one) {
    issuer_.wait_for_nothing();
    begin(one);
    while (one.at < pieces_of(one).size()) play_next(one);
    end(one);
  }

  /// A backward pass and the forward pass after it, another micro-batch's: whenever one waits for tokens to travel, the
  /// other goes on (Megatron-Core's schedule for overlap_moe_expert_parallel_comm).
  void play_beside(Strand& backward, Strand& forward) {
    Strand* now = &backward;
    Strand* other = &forward;
    issuer_.wait_for_nothing();
    begin(*now);
    now->waits = issuer_.exchange_waits({});
    begin(*other);
    other->waits = issuer_.exchange_waits(std::move(now->waits));
    for (bool both = true; both || now->at < pieces_of(*now).size();) {
      if (now->at == pieces_of(*now).size()) {
        both = false;
        end(*now);
        issuer_.exchange_waits(std::move(other->waits));
        std::swap(now, other);
        continue;
      }
      if (both && std::exchange(now->travels, false) && pieces_of(*now)[now->at].joined) {
        now->waits = issuer_.exchange_waits(std::move(other->waits));
        std::swap(now, other);
        if (now->at == pieces_of(*now).size()) continue;
      }
      play_next(*now);
    }
    end(*now);
  }

  void begin(Strand& of) {
    const Slot& slot = of.pass.slot;
    if (strategy_.pp > 1 && !(slot.forward ? first_part(slot) : last_part(slot)))
      issuer_.wait_for(slot.forward ? transfer(Stream::recv_forward, Role::recv_forward, "receive activations", {})
                                    : transfer(Stream::recv_backward, Role::recv_backward, "receive gradients", {}));
    of.name = issuer_.new_label(fmt::format("{} of micro-batch {}, chunk {}", slot.forward ? "forward" : "backward",
                                            slot.micro_batch, slot.chunk),
                                slot);
    if (of.split) replicas_->before_part(of.pass, 0);
    for (std::size_t place = 0; !of.split && place < of.chunk->parts(); ++place) replicas_->before_part(of.pass, place);
  }

  void play_next(Strand& of) {
    const Piece& piece = pieces_of(of)[of.at++];
    play(piece, of);
    for (std::int32_t part = 0; part < piece.finished_parts; ++part) {
      replicas_->after_part(of.pass, of.place++);
      if (of.place < of.chunk->parts()) replicas_->before_part(of.pass, of.place);
    }
  }

  void end(Strand& of) {
    while (of.place < of.chunk->parts()) replicas_->after_part(of.pass, of.place++);
    const Slot& slot = of.pass.slot;
    if (strategy_.pp == 1 || (slot.forward ? last_part(slot) : first_part(slot))) return;
    if (slot.forward)
      transfer(Stream::send_forward, Role::send_forward, "send activations", issuer_.all_so_far());
    else
      transfer(Stream::send_backward, Role::send_backward, "send gradients", issuer_.all_so_far());
  }

  std::uint32_t transfer(Stream stream, Role role, std::string_view name, const Issuer::Waits& waits) {
    return issuer_.collective(stream, role, collective::Kind::send, rank_.boundary_bytes(), name, waits);
  }

  void play(const Piece& piece, Strand& of) {
    if (piece.joined)
      for (const Issuer::Started& one : std::exchange(of.started, {})) issuer_.wait_for_instead(one);
    if (piece.kind != Piece::Kind::start) return issuer_.compute(piece.booking, piece.duration_ps, of.name);
    if (piece.role == Role::send_context) start(Stream::recv_context, Role::recv_context, piece, of);
    start(stream_of(piece.role), piece.role, piece, of);
    of.travels |= piece.role == Role::expert;
  }

  static Stream stream_of(Role role) {
    if (role == Role::expert || role == Role::expert_tensor) return Stream::expert;
    return role == Role::send_context ? Stream::send_context : Stream::tensor;
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
    const bool holds_table = stage_ == 0 || stage_ == strategy_.pp - 1;
    if (model_.tied_embeddings && strategy_.pp > 1 && holds_table) {
      const std::int64_t bytes = gradient_bytes(strategy_) * token_table_parameters(model_, strategy_.tp);
      // From ZeRO 2 on a rank has its share of the gradients.
      const std::int64_t shares = strategy_.zero >= 2 ? strategy_.replicas() : 1;
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
  const std::int64_t stage_;
  const Cut rank_;
  const StageWork work_;
  Issuer issuer_;
  std::unique_ptr<ReplicaTraffic> replicas_;
  std::vector<Chunk> chunks_;
};

}  // namespace

Program build_program(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass of) {
  return Builder(model, strategy, gpu, of).build();
}

}  // namespace manyworlds::core::workload
