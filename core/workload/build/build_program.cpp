// Assembly of a stage's program: the passes of its order, each with its receive, its segments and its send; then
// gradients, optimizer and parameters.
#include "core/workload/build/build_program.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/workload/build/host_traffic.hpp"
#include "core/workload/build/program_builder.hpp"
#include "core/workload/build/replica_traffic.hpp"
#include "core/workload/build/segments.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/multi_token_prediction.hpp"
#include "core/workload/schedule/schedule.hpp"
#include "core/workload/schedule/simulate_schedule.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/stage_boundaries.hpp"

namespace manyworlds::core::workload {
namespace {

/// The segments of one model chunk, built once and issued for each micro-batch.
class ChunkProgram {
 public:
  ChunkProgram(const StageWork& work, const std::vector<ModelPart>& parts, std::int64_t micro_batches)
      : work_(work), parts_(parts), backward_passes_left_(micro_batches) {}

  std::size_t parts() const { return parts_.size(); }
  StepPass begin(const PipelinePass& pass) {
    const bool first = pass.forward() && !std::exchange(begun_, true);
    return {pass, first, pass.ends_backward() && --backward_passes_left_ == 0};
  }
  const std::vector<Segment>& segments(PassKind kind, bool split) {
    auto& result = segments_[{kind, split}];
    if (result.empty()) result = segments_of(work_, parts_, kind, split);
    return result;
  }

 private:
  const StageWork& work_;
  const std::vector<ModelPart>& parts_;
  std::int64_t backward_passes_left_;  // micro-batches whose backward pass has not ended
  bool begun_ = false;
  std::map<std::pair<PassKind, bool>, std::vector<Segment>> segments_;
};

/// Stream, role and label of a transfer between pipeline ranks.
struct P2pChannel {
  Stream stream;
  Role role;
  std::string_view name;
};
P2pChannel p2p_channel(bool forward, bool reversed, bool sends) {
  using S = Stream;
  using R = Role;
  static constexpr P2pChannel kForward[2][2] = {
      {{S::recv_forward, R::recv_forward, "receive activations"},
       {S::recv_forward_reverse, R::recv_forward_reverse, "receive activations"}},
      {{S::send_forward, R::send_forward, "send activations"},
       {S::send_forward_reverse, R::send_forward_reverse, "send activations"}}};
  static constexpr P2pChannel kBackward[2][2] = {
      {{S::recv_backward, R::recv_backward, "receive gradients"},
       {S::recv_backward_reverse, R::recv_backward_reverse, "receive gradients"}},
      {{S::send_backward, R::send_backward, "send gradients"},
       {S::send_backward_reverse, R::send_backward_reverse, "send gradients"}}};
  return (forward ? kForward : kBackward)[sends][reversed];
}

class ProgramAssembler {
 public:
  ProgramAssembler(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                   const std::vector<PassOrder>& orders, RankClass rank_class)
      : model_(model),
        strategy_(strategy),
        gpu_(gpu),
        orders_(orders),
        stage_(rank_class.stage),
        stage_map_(strategy.stages()),
        shapes_(rank_shapes(model, strategy)),
        work_(stage_work(model, strategy, gpu, rank_class)),
        replicas_(make_replica_traffic(model, strategy, work_, builder_)),
        host_(work_, gpu, orders[static_cast<std::size_t>(stage_)], builder_) {
    for (const auto& parts : work_.chunks) chunks_.emplace_back(work_, parts, strategy.chunk_micro_batches());
    for (std::int64_t stage = 0; stage <= stage_map_.count(); ++stage)
      boundaries_.push_back(stage_boundary(model, strategy, stage));
  }

  Program build() {
    replicas_->begin_step();
    const PassOrder& order = orders_[static_cast<std::size_t>(stage_)];
    for (std::size_t i = 0; i < order.size(); ++i) {
      PassCursor one = cursor_of(order[i]);
      if (exchanges_in_pairs() && order[i].forward() && i + 1 < order.size() &&
          order[i + 1].kind == PassKind::backward) {
        PassCursor other = cursor_of(order[++i]);
        issue_pair(one, other);
        continue;
      }
      const bool next_forward = order[i].kind == PassKind::backward && i + 1 < order.size() && order[i + 1].forward();
      const bool together = order[i].overlaps_next || (strategy_.stack.overlap_experts && next_forward);
      if (!together || one.split) {
        issue(one);
        continue;
      }
      PassCursor other = cursor_of(order[++i]);
      if (other.split)
        issue(one), issue(other);
      else
        issue_interleaved(one, other, order[i - 1].overlaps_next);
    }
    finish_gradients();
    run_optimizer();
    replicas_->finish_step();
    return builder_.take();
  }

 private:
  /// A pass while its operations are issued.
  struct PassCursor {
    StepPass step_pass;
    ChunkProgram* chunk = nullptr;
    bool split = false;
    std::span<const Segment> segments;
    std::size_t at = 0;                            // the next segment
    std::uint32_t name = 0;                        // label of its kernels
    std::size_t part_index = 0;                    // index of the current part
    ProgramBuilder::Waits waits;                   // pending waits while another pass is being issued
    std::vector<ProgramBuilder::Started> started;  // collectives that kernels do not wait for yet
    bool exchange_in_flight = false;               // a token exchange of the last segment is in flight
    std::optional<std::uint32_t> input;            // the transfer that brings its input
    std::uint32_t launch = 0;                      // the host's launches of the current section

    bool has_next() const { return at < segments.size(); }
  };

  PassCursor cursor_of(const PipelinePass& pass) {
    PassCursor result;
    result.chunk = &chunks_.at(static_cast<std::size_t>(pass.chunk));
    result.step_pass = result.chunk->begin(pass);
    result.split = replicas_->splits(result.step_pass) || host_.splits(pass);
    result.segments = result.chunk->segments(pass.kind, result.split);
    return result;
  }

  void issue(PassCursor& one) {
    issue_parts(one);
    send_output(one);
  }
  /// Receives the input of `other` first as well, if it is given.
  void issue_parts(PassCursor& one, const PassCursor* other = nullptr) {
    builder_.clear_waits();
    begin(one);
    if (other != nullptr) receive_for(other->step_pass.pass);
    while (one.has_next()) issue_next(one);
    while (one.part_index < one.chunk->parts()) after_part(one, one.part_index++);
  }

  /// Whether a forward pass and the backward pass after it exchange in pairs, where kernels wait for transfers: both
  /// begin when the rank has the inputs of both, and send their outputs when both are done (Megatron-LM,
  /// send_forward_backward_recv_forward_backward()). With no more micro-batches than ranks there are no such pairs.
  bool exchanges_in_pairs() const {
    return schedule_type(strategy_.schedule).paired_exchange && !strategy_.stack.overlap_transfers &&
           !strategy_.stack.overlap_experts && strategy_.micro_batches() > strategy_.pp;
  }
  void issue_pair(PassCursor& forward, PassCursor& backward) {
    issue_parts(forward, &backward);
    issue_parts(backward);
    send_output(forward);
    send_output(backward);
  }

  /// Interleaves two passes of different micro-batches, one of them forward: whenever one waits for a token exchange,
  /// the other continues (Megatron-Core's schedule for overlap_moe_expert_parallel_comm). With `as_one` they begin when
  /// both have their inputs and send when both are done (DualPipe's overlapped_forward_backward).
  void issue_interleaved(PassCursor& first, PassCursor& second, bool as_one) {
    PassCursor* now = &first;
    PassCursor* other = &second;
    builder_.clear_waits();
    begin(*now);
    if (!as_one) now->waits = builder_.exchange_waits({});
    begin(*other);
    if (!as_one) other->waits = builder_.exchange_waits(std::move(now->waits));
    for (bool both = true; both || now->has_next();) {
      if (!now->has_next()) {
        both = false;
        if (!as_one) end(*now);
        now->waits = builder_.exchange_waits(std::move(other->waits));
        std::swap(now, other);
        continue;
      }
      const Segment& next = now->segments[now->at];
      if (both && now->exchange_in_flight && next.join && !next.join->role) {
        now->exchange_in_flight = false;
        now->waits = builder_.exchange_waits(std::move(other->waits));
        std::swap(now, other);
        if (!now->has_next()) continue;
      }
      issue_next(*now);
    }
    end(*now);
    if (!as_one) return;
    for (const std::uint32_t op : other->waits) builder_.wait_for(op);
    end(*other);
  }

  void begin(PassCursor& cursor) {
    const PipelinePass& pass = cursor.step_pass.pass;
    for (const std::uint32_t sent : std::exchange(pending_sends_, {})) builder_.wait_for(sent);
    cursor.input = receive_for(pass);
    cursor.name = builder_.new_label(name_of(pass), pass);
    for (std::size_t part_index = 0;
         part_index < (cursor.split ? std::min<std::size_t>(1, cursor.chunk->parts()) : cursor.chunk->parts());
         ++part_index)
      before_part(cursor, part_index);
  }

  void before_part(PassCursor& cursor, std::size_t part_index) {
    replicas_->before_part(cursor.step_pass, part_index);
    host_.before_part(cursor.step_pass.pass, part_index);
  }
  void after_part(PassCursor& cursor, std::size_t part_index) {
    host_.after_part(cursor.step_pass.pass, part_index);
    replicas_->after_part(cursor.step_pass, part_index);
  }

  void issue_next(PassCursor& cursor) {
    const Segment& segment = cursor.segments[cursor.at++];
    issue(segment, cursor);
    for (std::int32_t part = 0; part < segment.finished_parts; ++part) {
      after_part(cursor, cursor.part_index++);
      if (cursor.part_index < cursor.chunk->parts()) before_part(cursor, cursor.part_index);
    }
  }

  void end(PassCursor& cursor) {
    while (cursor.part_index < cursor.chunk->parts()) after_part(cursor, cursor.part_index++);
    send_output(cursor);
  }

  void send_output(const PassCursor& cursor) {
    const PipelinePass& pass = cursor.step_pass.pass;
    const auto to = pass.forward()           ? stage_map_.after(stage_, pass.chunk)
                    : pass.begins_backward() ? stage_map_.before(stage_, pass.chunk)
                                             : std::nullopt;
    if (!to || to->rank == stage_) return;
    const auto sent =
        transfer(p2p_channel(pass.forward(), stage_map_.is_reversed(pass.forward() ? pass.chunk : to->chunk), true),
                 boundary_of(!pass.forward(), pass.chunk), builder_.all_work_so_far());
    if (!strategy_.stack.overlap_transfers) pending_sends_.push_back(sent);
  }

  /// Returns the chunk on another rank that sends the input of a pass, if any.
  std::optional<ChunkLocation> source_of(const PipelinePass& pass) const {
    std::optional<ChunkLocation> from;
    if (pass.forward()) from = stage_map_.before(stage_, pass.chunk);
    if (pass.begins_backward()) from = stage_map_.after(stage_, pass.chunk);
    return from && from->rank != stage_ ? from : std::nullopt;
  }

  /// Returns the transfer, if the pass needs one.
  std::optional<std::uint32_t> receive_for(const PipelinePass& pass) {
    const auto from = source_of(pass);
    return from ? std::optional(receive(pass, *from)) : std::nullopt;
  }

  /// Posts receives in the order in which the other rank sends, up to the one that the pass needs, and waits for that
  /// one.
  std::uint32_t receive(const PipelinePass& pass, const ChunkLocation& from) {
    const bool reversed = stage_map_.is_reversed(pass.forward() ? from.chunk : pass.chunk);
    const P2pChannel channel = p2p_channel(pass.forward(), reversed, false);
    auto [known, is_new] = arrivals_.try_emplace(channel.role);
    Arrivals& arrivals = known->second;
    if (is_new) arrivals.expected = expected_transfers(pass.forward(), reversed, from.rank);
    auto& posted = arrivals.posted;
    while (!posted.contains({pass.micro_batch, pass.chunk}) && posted.size() < arrivals.expected.size()) {
      const auto& next = arrivals.expected[posted.size()];
      posted.emplace(next, transfer(channel, boundary_of(pass.forward(), next.second), {}));
    }
    std::uint32_t op = posted.at({pass.micro_batch, pass.chunk});
    if (shapes_.scatters_transfers())
      op = builder_.collective(Stream::tensor, Role::tensor, collective::Kind::all_gather,
                               boundary_of(pass.forward(), pass.chunk).bytes, "gather of a transfer", {op});
    builder_.wait_for(op);
    return op;
  }

  /// Returns the micro-batch and chunk of this rank of each transfer that `from` sends on one channel, in its order.
  std::vector<std::pair<std::int32_t, std::int64_t>> expected_transfers(bool forward, bool reversed,
                                                                        std::int64_t from) const {
    std::vector<std::pair<std::int32_t, std::int64_t>> sent;
    for (const PipelinePass& pass : orders_[static_cast<std::size_t>(from)]) {
      if (forward ? !pass.forward() : !pass.begins_backward()) continue;
      const auto to = forward ? stage_map_.after(from, pass.chunk) : stage_map_.before(from, pass.chunk);
      if (!to || to->rank != stage_ || stage_map_.is_reversed(forward ? pass.chunk : to->chunk) != reversed) continue;
      sent.emplace_back(pass.micro_batch, to->chunk);
    }
    return sent;
  }

  std::uint32_t transfer(const P2pChannel& channel, const StageBoundary& boundary, const ProgramBuilder::Waits& waits) {
    return builder_.collective(channel.stream, channel.role, collective::Kind::send, boundary.transfer_bytes,
                               channel.name, waits);
  }

  /// Returns the boundary in front of a chunk of this rank, or the one behind it.
  const StageBoundary& boundary_of(bool in_front, std::int64_t chunk) const {
    return boundaries_.at(static_cast<std::size_t>(stage_map_.of(stage_, chunk) + (in_front ? 0 : 1)));
  }

  void issue(const Segment& segment, PassCursor& cursor) {
    if (segment.join) wait_for_started(*segment.join, cursor);
    if (segment.launch_ps > 0) cursor.launch = builder_.launch(segment.launch_ps, launch_waits(segment, cursor));
    if (segment.ends_launch) builder_.wait_for(cursor.launch);
    if (const KernelOp* kernel = segment.kernel()) return builder_.compute(*kernel, cursor.name);
    start(std::get<CollectiveStart>(segment.action), cursor);
  }

  /// Returns what the host waits for before it launches a section: the kernels before it, if it needs their results,
  /// and the transfer that brings the input of a pass, after which pipeline software synchronises.
  ProgramBuilder::Waits launch_waits(const Segment& segment, PassCursor& cursor) {
    ProgramBuilder::Waits waits;
    if (segment.launch_waits) waits = builder_.last_kernel();
    if (const auto input = std::exchange(cursor.input, std::nullopt)) waits.push_back(*input);
    return waits;
  }

  void wait_for_started(const Join& join, PassCursor& cursor) {
    const auto before = std::max<std::int64_t>(std::ssize(cursor.started) - join.except_last, 0);
    auto remaining = cursor.started.begin();
    for (auto one = cursor.started.begin(); one != cursor.started.end(); ++one)
      if (one - cursor.started.begin() < before && (!join.role || builder_.role_of(one->op) == *join.role))
        builder_.replace_waits(*one);
      else if (remaining++ != one)
        *std::prev(remaining) = std::move(*one);
    cursor.started.erase(remaining, cursor.started.end());
  }

  static Stream stream_of(Role role) {
    if (role == Role::expert || role == Role::expert_tensor) return Stream::expert;
    if (role == Role::data) return Stream::data;  // statistics of synchronised batch norms
    return role == Role::send_context || role == Role::context ? Stream::send_context : Stream::tensor;
  }
  void start(const CollectiveStart& collective, PassCursor& cursor) {
    const Role role = collective.role;
    if (role == Role::send_context)
      cursor.started.push_back(builder_.start(Stream::recv_context, Role::recv_context, collective));
    cursor.started.push_back(builder_.start(stream_of(role), role, collective));
    cursor.exchange_in_flight |= role == Role::expert;
  }

  /// Issues the reductions of gradients that remain after the last backward pass, and waits for them.
  void finish_gradients() {
    ProgramBuilder::Waits gradients = replicas_->finish_gradients();
    if (shapes_.sequence_parallel && work_.replicated_parameters > 0) {
      ProgramBuilder::Waits waits = builder_.all_work_so_far();  // Megatron-LM reduces these after the buckets
      waits.insert(waits.end(), gradients.begin(), gradients.end());
      builder_.wait_for(builder_.collective(Stream::tensor, Role::tensor, collective::Kind::all_reduce,
                                            gradient_bytes(strategy_) * work_.replicated_parameters, "norm gradients",
                                            waits));
    }
    const bool holds_table = stage_map_.has_first(stage_) || stage_map_.has_last(stage_);
    if (stages_share_table(model_) && !is_frozen(model_) && !stage_map_.first_and_last_share_rank() && holds_table) {
      const std::int64_t bytes = gradient_bytes(strategy_) * token_table_parameters(model_, strategy_.tp);
      // From ZeRO 2 on a rank has only its shard of the gradients.
      const std::int64_t shares = strategy_.zero >= 2 ? strategy_.shards() : 1;
      gradients.push_back(builder_.collective(Stream::data, Role::embedding, collective::Kind::all_reduce,
                                              (bytes + shares - 1) / shares, "embedding gradients",
                                              builder_.all_work_so_far()));
    }
    for (const std::uint32_t op : gradients) builder_.wait_for(op);
  }

  void run_optimizer() {
    const std::vector<compute::Kernel> kernels =
        optimizer_kernels(strategy_, trained_stage_parameters(model_, strategy_, stage_));
    if (kernels.empty()) return;
    Time duration_ps = 0;
    for (const compute::Kernel& kernel : kernels) duration_ps += compute::kernel_cost(kernel, gpu_).ps;
    builder_.compute({StepPart::optimizer, duration_ps}, builder_.label("optimizer"));
  }

  const Model& model_;
  const Strategy& strategy_;
  const compute::Gpu& gpu_;
  const std::vector<PassOrder>& orders_;
  const std::int64_t stage_;
  const StageMap stage_map_;
  const RankShapes shapes_;
  std::vector<StageBoundary> boundaries_;  // by virtual stage behind it
  const StageWork work_;
  ProgramBuilder builder_;
  std::unique_ptr<ReplicaTraffic> replicas_;
  HostTraffic host_;
  std::vector<ChunkProgram> chunks_;
  struct Arrivals {
    std::vector<std::pair<std::int32_t, std::int64_t>> expected;  // micro-batches and chunks, in the sender's order
    std::map<std::pair<std::int32_t, std::int64_t>, std::uint32_t> posted;
  };
  std::map<Role, Arrivals> arrivals_;
  ProgramBuilder::Waits pending_sends_;  // sends of the last passes, if the next pass waits for them
};

/// Returns the duration of a pass through all parts of a chunk: that of its kernels or of their launches.
Time pass_duration(const StageWork& work, const std::vector<ModelPart>& chunk, PassKind kind) {
  Time kernels_ps = 0, launch_ps = 0;
  for (const Segment& segment : segments_of(work, chunk, kind, false)) {
    if (const KernelOp* kernel = segment.kernel()) kernels_ps += kernel->duration_ps;
    launch_ps += segment.launch_ps;
  }
  return std::max(kernels_ps, launch_ps);
}

/// Returns the costs averaged over the pipeline ranks, as the paper did for its published orders (Qi et al. 2024, table
/// 9).
PassCosts mean_costs(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  PassCosts sum{0, 0, 0, 0, 0};
  for (std::int64_t stage = 0; stage < strategy.pp; ++stage) {
    const StageWork work = stage_work(model, strategy, gpu, stage);
    const std::vector<ModelPart>& chunk = work.chunks.at(0);
    sum.forward_ps += pass_duration(work, chunk, PassKind::forward);
    sum.input_gradient_ps += pass_duration(work, chunk, PassKind::input_gradient);
    sum.weight_gradient_ps += pass_duration(work, chunk, PassKind::weight_gradient);
    for (const ModelPart part : chunk) {
      sum.saved_bytes += work.of(part).saved_bytes;
      sum.weight_gradient_input_bytes += std::min(work.of(part).weight_gradient_input_bytes, work.of(part).saved_bytes);
    }
  }
  for (std::int64_t* value : {&sum.forward_ps, &sum.input_gradient_ps, &sum.weight_gradient_ps, &sum.saved_bytes,
                              &sum.weight_gradient_input_bytes})
    *value /= strategy.pp;
  return sum;
}

}  // namespace

std::vector<PassOrder> pipeline_orders(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  MANYWORLDS_CHECK(strategy.micro_batches() > 0, "global batch {} over dp {} x micro-batch {}", strategy.global_batch,
                   strategy.dp, strategy.micro_batch);
  const ScheduleType& type = schedule_type(strategy.schedule);
  Pipeline pipeline = strategy.pipeline();
  const std::string infeasible_reason = schedule_infeasible_reason(type, pipeline);
  MANYWORLDS_CHECK(infeasible_reason.empty(), "{}", infeasible_reason);
  if (type.needs_costs) pipeline.costs = mean_costs(model, strategy, gpu);
  return pass_orders(model, type, pipeline);
}

std::vector<PassOrder> pass_orders(const Model& model, const ScheduleType& type, const Pipeline& pipeline) {
  std::vector<PassOrder> orders = type.orders(pipeline);
  if (!is_inference(model)) return orders;
  for (PassOrder& order : orders) std::erase_if(order, [](const PipelinePass& pass) { return !pass.forward(); });
  return orders;
}

Program build_program(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                      const std::vector<PassOrder>& orders, RankClass rank_class) {
  return ProgramAssembler(model, strategy, gpu, orders, rank_class).build();
}

Program build_program(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass rank_class) {
  return build_program(model, strategy, gpu, pipeline_orders(model, strategy, gpu), rank_class);
}

}  // namespace manyworlds::core::workload
