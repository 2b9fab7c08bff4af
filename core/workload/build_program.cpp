// Putting a stage's program together: slots of the schedule in order, each with its receive, its pieces and its send;
// then gradients, optimizer and parameters.
#include "core/workload/build_program.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>

#include "core/error.hpp"
#include "core/workload/buckets.hpp"
#include "core/workload/cut.hpp"
#include "core/workload/parameters.hpp"
#include "core/workload/pieces.hpp"
#include "core/workload/schedule.hpp"
#include "core/workload/stage_work.hpp"

namespace manyworlds::core::workload {
namespace {

constexpr std::int64_t kGradientBytes = 4;   // fp32 main gradients
constexpr std::int64_t kParameterBytes = 2;  // bf16

using Waits = std::vector<std::uint32_t>;

Op collective_op(Stream stream, Role role, collective::Kind kind, std::int64_t bytes) {
  Op op;
  op.is_collective = true;
  op.stream = stream;
  op.role = role;
  op.kind = kind;
  op.bytes = bytes;
  return op;
}

/// What a chunk runs, compiled once and played for each micro-batch.
struct Chunk {
  std::vector<Piece> forward, backward, last_backward;  // the last is split by part when gradients leave from it
  std::vector<Bucket> gradient_buckets;
  std::int64_t backward_left = 0;  // micro-batches whose backward has not been issued
};

class Builder {
 public:
  Builder(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, std::int64_t stage)
      : model_(model), strategy_(strategy), gpu_(gpu), stage_(stage), rank_(cut(model, strategy)) {
    const StageWork work = stage_work(model, strategy, stage);
    replicated_parameters_ = work.replicated_parameters;
    for (const auto& parts : work.chunks) {
      std::vector<std::int64_t> parameters;
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) parameters.push_back(work.of(*part).parameters);
      Chunk chunk;
      chunk.forward = forward_pieces(work, parts, gpu);
      chunk.backward = backward_pieces(work, parts, gpu, false);
      chunk.last_backward = early_gradients() ? backward_pieces(work, parts, gpu, true) : chunk.backward;
      chunk.gradient_buckets = buckets(parameters, strategy.bucket_parameters);
      chunk.backward_left = strategy.micro_batches();
      chunks_.push_back(std::move(chunk));
    }
  }

  Program build() {
    for (const Slot& slot : schedule(strategy_, stage_)) play(slot);
    finish_gradients();
    run_optimizer();
    return std::move(program_);
  }

 private:
  bool early_gradients() const { return strategy_.dp > 1 && strategy_.overlap_grad_reduce; }
  bool first_part(const Slot& slot) const { return stage_ == 0 && slot.chunk == 0; }
  bool last_part(const Slot& slot) const {
    return stage_ == strategy_.pp - 1 && slot.chunk == strategy_.virtual_stages - 1;
  }

  std::uint32_t issue(Op op, std::uint32_t label, std::span<const std::uint32_t> waits) {
    op.label = label;
    op.waits_begin = static_cast<std::uint32_t>(program_.waits.size());
    program_.waits.insert(program_.waits.end(), waits.begin(), waits.end());
    op.waits_end = static_cast<std::uint32_t>(program_.waits.size());
    program_.ops.push_back(op);
    return static_cast<std::uint32_t>(program_.ops.size() - 1);
  }

  std::uint32_t new_label(std::string text) {
    program_.labels.push_back(std::move(text));
    return static_cast<std::uint32_t>(program_.labels.size() - 1);
  }
  std::uint32_t label(std::string_view text) {
    const auto [at, added] = labels_.try_emplace(text, 0U);
    if (added) at->second = new_label(std::string(text));
    return at->second;
  }

  /// What communication that needs all work so far waits for: the last kernel, and what kernels still wait for.
  Waits all_so_far() const {
    Waits waits = pending_;
    if (last_compute_) waits.push_back(*last_compute_);
    return waits;
  }

  void play(const Slot& slot) {
    Chunk& chunk = chunks_.at(static_cast<std::size_t>(slot.chunk));
    pending_.clear();
    const bool neighbours = strategy_.pp > 1;
    if (neighbours && !(slot.forward ? first_part(slot) : last_part(slot)))
      pending_.push_back(slot.forward ? transfer(Stream::recv_forward, Role::recv_forward, "receive activations", {})
                                      : transfer(Stream::recv_backward, Role::recv_backward, "receive gradients", {}));

    const bool last = !slot.forward && --chunk.backward_left == 0;
    const std::uint32_t name = new_label(fmt::format(
        "{} of micro-batch {}, chunk {}", slot.forward ? "forward" : "backward", slot.micro_batch, slot.chunk));
    std::size_t finished = 0, bucket = 0;
    for (const Piece& piece : slot.forward ? chunk.forward : last ? chunk.last_backward : chunk.backward) {
      play(piece, name);
      finished += static_cast<std::size_t>(piece.finished_parts);
      while (last && early_gradients() && bucket < chunk.gradient_buckets.size() &&
             chunk.gradient_buckets[bucket].ready_after < finished)
        reduce(chunk.gradient_buckets[bucket++]);
    }
    if (neighbours && !(slot.forward ? last_part(slot) : first_part(slot))) {
      if (slot.forward)
        transfer(Stream::send_forward, Role::send_forward, "send activations", all_so_far());
      else
        transfer(Stream::send_backward, Role::send_backward, "send gradients", all_so_far());
    }
  }

  std::uint32_t transfer(Stream stream, Role role, std::string_view name, const Waits& waits) {
    return issue(collective_op(stream, role, collective::Kind::send, rank_.boundary_bytes()), label(name), waits);
  }

  void play(const Piece& piece, std::uint32_t name) {
    if (piece.joined && last_tensor_) pending_ = {*last_tensor_};
    if (piece.kind == Piece::Kind::start) {
      const Op op = collective_op(Stream::tensor, Role::tensor, piece.collective, piece.bytes);
      Waits waits = all_so_far();  // its own stream keeps the order
      if (last_tensor_) std::erase(waits, *last_tensor_);
      last_tensor_ = issue(op, label(piece.name), waits);
    } else {
      compute(piece.booking, piece.duration_ps, name);
    }
  }

  void compute(Booking booking, Time duration_ps, std::uint32_t name) {
    Op op;
    op.booking = booking;
    op.duration_ps = duration_ps;
    last_compute_ = issue(op, name, pending_);
    pending_.clear();
  }

  void reduce(const Bucket& bucket) {
    const auto kind = strategy_.zero > 0 ? collective::Kind::reduce_scatter : collective::Kind::all_reduce;
    const Op op = collective_op(Stream::data, Role::data, kind, kGradientBytes * bucket.parameters);
    last_data_ = issue(op, label("gradient bucket"), all_so_far());
  }

  /// Whatever of the gradients is still to be added up once the last backward pass is done.
  void finish_gradients() {
    if (strategy_.dp > 1 && !strategy_.overlap_grad_reduce)
      for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk)
        for (const Bucket& bucket : chunk->gradient_buckets) reduce(bucket);
    if (rank_.sequence_parallel) {
      const Op op = collective_op(Stream::tensor, Role::tensor, collective::Kind::all_reduce,
                                  kGradientBytes * replicated_parameters_);
      Waits waits = all_so_far();
      if (last_data_) waits.push_back(*last_data_);  // Megatron-LM adds these up after the buckets
      last_tensor_ = issue(op, label("norm gradients"), waits);
      pending_.push_back(*last_tensor_);
    }
    const bool holds_table = stage_ == 0 || stage_ == strategy_.pp - 1;
    if (model_.tied_embeddings && strategy_.pp > 1 && holds_table) {
      const std::int64_t bytes = kGradientBytes * token_table_parameters(model_, strategy_.tp);
      const Op op = collective_op(Stream::data, Role::embedding, collective::Kind::all_reduce, bytes);
      last_data_ = issue(op, label("embedding gradients"), all_so_far());
    }
    if (last_data_) pending_.push_back(*last_data_);
  }

  void run_optimizer() {
    Time duration_ps = 0;
    for (const compute::Kernel& kernel :
         optimizer_kernels(strategy_, stage_parameters(model_, strategy_, stage_).total()))
      duration_ps += compute::cost(kernel, gpu_);
    compute(Booking::optimizer, duration_ps, label("optimizer"));
    if (strategy_.zero == 0 || strategy_.dp == 1) return;
    for (const Chunk& chunk : chunks_)
      for (const Bucket& bucket : chunk.gradient_buckets) {
        const std::int64_t bytes = kParameterBytes * bucket.parameters;
        issue(collective_op(Stream::data, Role::data, collective::Kind::all_gather, bytes), label("parameter bucket"),
              all_so_far());
      }
  }

  const Model& model_;
  const Strategy& strategy_;
  const compute::Gpu& gpu_;
  const std::int64_t stage_;
  const Cut rank_;
  std::int64_t replicated_parameters_ = 0;
  std::vector<Chunk> chunks_;
  Program program_;
  std::map<std::string_view, std::uint32_t> labels_;  // of string literals
  Waits pending_;                                     // what the next kernel waits for
  std::optional<std::uint32_t> last_compute_, last_tensor_, last_data_;
};

}  // namespace

Program build_program(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, std::int64_t stage) {
  return Builder(model, strategy, gpu, stage).build();
}

}  // namespace manyworlds::core::workload
