#include "core/step/estimate/volumes.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/compute/host.hpp"
#include "core/step/estimate/strided_collectives.hpp"
#include "core/workload/activations/activation_policy.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/parts/routed_experts.hpp"
#include "core/workload/schedule/simulate_schedule.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/stage_boundaries.hpp"

namespace manyworlds::core::step {
namespace {

using collective::Kind;
using workload::kParameterBytes;
using workload::ModelPart;
using workload::Parameters;
using workload::PassKind;
using workload::Role;
using workload::StageWork;

/// A FLOP of 8 bits weighs half of one of 16, and so on.
double width_of(compute::Dtype dtype) {
  return dtype == compute::Dtype::fp8 ? 0.5 : dtype == compute::Dtype::fp4 ? 0.25 : 1;
}

class Weigher {
 public:
  Weigher(const workload::Model& model, const workload::Strategy& strategy, std::int64_t gpus_per_node,
          const Balance& balance)
      : model_(model), strategy_(strategy), gpus_per_node_(gpus_per_node), balance_(balance) {}

  StepVolumes step() {
    std::map<Content, std::size_t> known;  // most stages of a pipeline have the same layers
    for (std::int64_t stage = 0; stage < strategy_.pp; ++stage) {
      const auto [rank, is_new] = known.try_emplace(content_of(stage), ranks_.size());
      if (is_new) ranks_.push_back(heaviest_of(stage));
      rank_of_stage_.push_back(rank->second);
    }
    double all = 0, replicas = 0, optimizer = 0;
    const Rank* heaviest = &ranks_.front();
    for (const std::size_t index : rank_of_stage_) {
      const Rank& rank = ranks_[index];
      all += rank.micro_batch();
      replicas = std::max(replicas, rank.replicas);
      optimizer = std::max(optimizer, rank.optimizer);
      if (rank.micro_batch() > heaviest->micro_batch()) heaviest = &rank;
    }
    const double busy = micro_batches() * heaviest->micro_batch();
    const double pipeline = busy + bubble(all, *heaviest);
    StepVolumes result = volumes_of(*heaviest);
    result.bubble_share = 1 - busy / pipeline;
    result.weight = pipeline + replicas + optimizer;
    return result;
  }

 private:
  /// The rank of a stage that the others wait for, and what its parts weigh.
  struct Rank {
    StageWork work;
    std::int64_t stage = 0;
    double forward = 0, backward = 0;  // of a micro-batch through all chunks
    double passes = 0;                 // the same without what ZeRO 3 sends
    double replicas = 0;               // at the end of a step, beside nothing
    double optimizer = 0;
    double micro_batch() const { return forward + backward; }
  };

  /// What tells a stage from others: its layers and what they save, by chunk, and whether it has embedding and head.
  struct ChunkContent {
    bool is_first = false, is_last = false;
    std::vector<std::pair<workload::LayerKind, workload::ActivationPolicy>> layers;
    auto operator<=>(const ChunkContent&) const = default;
  };
  using Content = std::vector<ChunkContent>;

  Content content_of(std::int64_t stage) const {
    const workload::StageMap stages = strategy_.stages();
    Content content;
    for (std::int64_t chunk = 0; chunk < strategy_.virtual_stages; ++chunk) {
      auto& layers =
          content.emplace_back(ChunkContent{stages.is_first(stage, chunk), stages.is_last(stage, chunk), {}}).layers;
      for (const workload::LayerKind kind : workload::chunk_layers(model_, strategy_, stage, chunk))
        layers.emplace_back(kind, workload::activation_policy(strategy_, stage, chunk, std::ssize(layers), kind));
    }
    return content;
  }

  double micro_batches() const { return static_cast<double>(strategy_.chunk_micro_batches()); }

  const Rank& rank_of(std::int64_t stage) const { return ranks_[rank_of_stage_[static_cast<std::size_t>(stage)]]; }

  double weight_of(const SentBytes& sent) const {
    return balance_.flops_per_byte * std::max(sent.inside, balance_.node_factor * sent.between);
  }
  double weight_of(const compute::Kernel& kernel) const {
    return std::max(static_cast<double>(kernel.flops) * width_of(kernel.dtype),
                    balance_.flops_per_memory_byte * static_cast<double>(kernel.bytes));
  }

  SentBytes sent(Kind kind, std::int64_t bytes, std::int64_t members, std::int64_t stride) const {
    return sent_bytes(kind, static_cast<double>(bytes), members, stride, gpus_per_node_);
  }
  /// Returns what a rank sends to those that share its micro-batch.
  SentBytes sent(const workload::CollectiveStart& start) const {
    switch (start.role) {
      case Role::expert:
        return exchanged(start);
      case Role::expert_tensor:
        return sent(start.kind, start.bytes, strategy_.etp, 1);
      case Role::context:
        return sent(start.kind, start.bytes, strategy_.cp, strategy_.tp);
      case Role::data:
        return sent(start.kind, start.bytes, strategy_.shards(), strategy_.tp);
      case Role::send_context:
        return sent(Kind::send, start.bytes, 2, strategy_.tp);
      default:
        return sent(start.kind, start.bytes, strategy_.tp, 1);
    }
  }
  /// Returns what a rank sends to the ranks with a token's experts. Libraries for it send a token once to each node
  /// that has some of its experts, along the sender's rail, and on inside that node.
  SentBytes exchanged(const workload::CollectiveStart& start) const {
    const SentBytes pairwise = sent(start.kind, start.bytes, strategy_.ep, strategy_.etp);
    if (strategy_.stack.dispatcher == workload::Dispatcher::all_to_all || pairwise.between == 0) return pairwise;
    const std::int64_t local = std::clamp<std::int64_t>(gpus_per_node_ / strategy_.etp, 1, strategy_.ep);
    if (strategy_.ep % local != 0) return pairwise;
    const auto nodes = static_cast<double>(strategy_.ep / local), near = static_cast<double>(local);
    const double of_all = workload::mean_parts_reached(model_, strategy_.ep);
    const double to_nodes = workload::mean_parts_reached(model_, strategy_.ep / local) / of_all;
    const auto bytes = static_cast<double>(start.bytes);
    return {bytes * (near - 1) / near, bytes * to_nodes * (nodes - 1) / nodes};
  }
  static SentBytes& counted_as(Role role, StepVolumes& to) {
    if (role == Role::expert || role == Role::expert_tensor) return to.experts;
    if (role == Role::data) return to.replicas;
    return role == Role::context || role == Role::send_context ? to.context : to.tensor;
  }

  /// Returns what replicas send once: `bytes` of each parameter, within the groups that ZeRO shards over.
  SentBytes among_replicas(Kind kind, std::int64_t bytes, const Parameters& parameters) const {
    SentBytes sum = sent(kind, bytes * parameters.dense, strategy_.shards(), strategy_.tp);
    sum += sent(kind, bytes * parameters.experts, strategy_.expert_shards(), strategy_.ep * strategy_.etp);
    return sum;
  }
  /// Returns what the same shards send across these groups.
  SentBytes across_groups(const Parameters& parameters) const {
    const std::int64_t bytes = workload::gradient_bytes(strategy_), shards = strategy_.shards();
    SentBytes sum =
        sent(Kind::all_reduce, bytes * parameters.dense / shards, strategy_.zero_groups(), strategy_.tp * shards);
    if (parameters.experts > 0)
      sum += sent(Kind::all_reduce, bytes * parameters.experts / strategy_.expert_shards(), strategy_.zero_groups(),
                  strategy_.ep * strategy_.etp * strategy_.expert_shards());
    return sum;
  }
  SentBytes gathered(const Parameters& parameters) const {
    return among_replicas(Kind::all_gather, kParameterBytes, parameters);
  }
  /// Returns what replicas send of the factors of weights, each once.
  SentBytes gathered_factors(const StageWork& work) const {
    SentBytes sum;
    for (const auto& chunk : work.chunks)
      for (const ModelPart part : chunk)
        sum += sent(Kind::all_gather, work.of(part).gathered_factor_bytes(), strategy_.replicas(), strategy_.tp);
    return sum;
  }
  SentBytes reduced(const Parameters& parameters) const {
    return among_replicas(strategy_.zero > 0 ? Kind::reduce_scatter : Kind::all_reduce,
                          workload::gradient_bytes(strategy_), parameters);
  }

  /// Returns the weight of a pass: kernels run in order, collectives in order beside them until a kernel needs them.
  /// The host launches both meanwhile, after it has waited for the tokens of experts.
  double weight_of(const workload::PhaseList& pass, const StageWork& stage) const {
    double now = 0, last = 0, section_begin = 0;
    std::array<double, 2> stream_free{};  // of the experts' collectives, and of all others
    std::vector<std::pair<Role, double>> started;
    compute::HostWork launches;
    const auto end_section = [&] {
      const Time host_ps = stage.launch_times.of(std::exchange(launches, {}));
      now = std::max(now, section_begin + balance_.flops_per_us * static_cast<double>(host_ps) / kMicrosecond);
      section_begin = now;
    };
    bool knows_counts = false;
    for (const workload::Phase& phase : pass)
      for (const workload::WorkItem& work : phase.ops) {
        const bool launched = stage.launched_by_host(work);
        if (!knows_counts && work.needs_token_counts && launched) end_section(), knows_counts = true;
        if (const workload::KernelWork* kernel = work.kernel()) {
          if (launched) launches.kernels += kernel->launches;
          now += weight_of(kernel->shape);
        } else if (const workload::CollectiveStart* start = work.start()) {
          launches.collectives += launched ? 1 : 0;
          const bool of_experts = start->role == Role::expert || start->role == Role::expert_tensor;
          const bool hidden = of_experts && strategy_.stack.overlap_experts;  // behind another micro-batch
          double& free = stream_free.at(of_experts ? 0 : 1);
          free = std::max(now, free) + (hidden ? 0 : weight_of(sent(*start)));
          last = std::max(last, free);
          started.emplace_back(start->role, free);
        } else {
          now = after_join(now, std::get<workload::Join>(work.action), started);
        }
      }
    now = std::max(now, last);
    end_section();
    return now;
  }

  Rank heaviest_of(std::int64_t stage) {
    Rank heaviest;
    for (const workload::RankClass& rank_class : workload::rank_classes(model_, strategy_)) {
      if (rank_class.stage != stage) continue;
      Rank rank;
      rank.work = workload::stage_work_without_costs(model_, strategy_, rank_class);
      rank.stage = stage;
      for (const auto& chunk : rank.work.chunks) add_chunk(rank, chunk);
      if (rank.micro_batch() > heaviest.micro_batch()) heaviest = std::move(rank);
    }
    const Parameters parameters = workload::trained_stage_parameters(model_, strategy_, stage);
    heaviest.replicas =
        strategy_.zero == 3 ? weight_of(across_groups(parameters)) : exposed_replicas(parameters, heaviest);
    workload::for_each_factor_kernel(
        heaviest.work, [&](const workload::KernelWork& kernel) { heaviest.replicas += weight_of(kernel.shape); });
    for (const compute::Kernel& kernel : workload::optimizer_kernels(strategy_, parameters))
      heaviest.optimizer += weight_of(kernel);
    return heaviest;
  }

  /// Under ZeRO 3 the parameters of the next part are gathered, and the gradients of the last one reduced, beside each
  /// part; the first gather and the last reduction are beside nothing.
  void add_chunk(Rank& rank, const std::vector<ModelPart>& chunk) const {
    const bool sharded = strategy_.zero == 3;
    const auto gather = [&](ModelPart part) { return weight_of(gathered(rank.work.of(part).parameters)); };
    const auto gather_again = [&](ModelPart part) { return rank.work.of(part).has_backward() ? gather(part) : 0; };
    const auto reduce = [&](ModelPart part) { return weight_of(reduced(rank.work.of(part).trained)); };
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const bool is_first = i == 0, is_last = i + 1 == chunk.size();
      const double forward = weight_of(rank.work.of(chunk[i]).forward, rank.work);
      const double backward = weight_of(rank.work.of(chunk[i]).backward, rank.work);
      const double next = sharded && !is_last ? gather(chunk[i + 1]) : 0;
      const double beside =
          sharded ? (is_first ? 0 : gather_again(chunk[i - 1])) + (is_last ? 0 : reduce(chunk[i + 1])) : 0;
      rank.passes += forward + backward;
      rank.forward += std::max(forward, next);
      rank.backward += std::max(backward, beside);
    }
    if (sharded) rank.forward += gather(chunk.front()), rank.backward += reduce(chunk.front());
  }

  /// Returns what of a step's gradients and parameters is beside no pass: the last bucket, and what is longer than the
  /// pass that it is beside.
  double exposed_replicas(const Parameters& parameters, const Rank& rank) const {
    const auto buckets =
        static_cast<double>(std::max<std::int64_t>(1, parameters.total() / strategy_.bucket_parameters));
    const auto exposed = [&](double all, bool overlaps, double pass) {
      return overlaps ? all - std::min(all - all / buckets, pass) : all;
    };
    const double reduces = weight_of(reduced(workload::summed_parameters(rank.work, parameters))) +
                           weight_of(gathered_factors(rank.work)) + weight_of(across_groups(parameters));
    double sum = exposed(reduces, strategy_.overlap_grad_reduce, rank.backward);
    if (strategy_.zero > 0)
      sum += exposed(weight_of(gathered(parameters)), strategy_.stack.overlap_parameters, rank.forward);
    return sum;
  }

  SentBytes transfer() const {
    if (strategy_.pp == 1) return {};
    return sent(Kind::send, workload::mean_boundary(model_, strategy_).transfer_bytes, 2,
                strategy_.tp * strategy_.cp * strategy_.dp);
  }

  /// Returns how often what a micro-batch has between two stages is sent: its activations, and their gradients back.
  double transfer_ways() const { return workload::is_inference(model_) ? 1 : 2; }

  /// Returns what the pipeline adds to the micro-batches of its heaviest rank, given one micro-batch of all ranks.
  double bubble(double all, const Rank& heaviest) const {
    const workload::ScheduleType& type = workload::schedule_type(strategy_.schedule);
    if (type.has_formula)
      return (all - heaviest.micro_batch()) / static_cast<double>(strategy_.virtual_stages) +
             transfer_ways() * static_cast<double>(strategy_.pp - 1) * weight_of(transfer());
    return simulated_pipeline(type) - micro_batches() * heaviest.passes;
  }

  /// Returns the weight of a pipeline whose passes run in its schedule's order, each as soon as its input is there.
  double simulated_pipeline(const workload::ScheduleType& type) const {
    constexpr double kUnit = 1e6;  // FLOPs: the unit of the schedule's integer time
    std::map<std::tuple<std::int64_t, std::int32_t, PassKind>, Time> known;
    const auto duration_of = [&](std::int64_t rank, std::int32_t chunk, PassKind kind) {
      const auto [found, is_new] = known.try_emplace({rank, chunk, kind}, Time{0});
      const StageWork& work = rank_of(rank).work;
      if (is_new)
        for (const ModelPart part : work.chunks[static_cast<std::size_t>(chunk)])
          found->second += round_half_up(weight_of(work.of(part).pass(kind), work) / kUnit);
      return found->second;
    };
    workload::Pipeline pipeline = strategy_.pipeline();
    if (type.needs_costs) pipeline.costs = mean_costs(duration_of);
    const auto run = workload::simulate_schedule(
        strategy_.stages(), workload::pass_orders(model_, type, pipeline),
        [&](std::int64_t rank, const workload::PipelinePass& pass) { return duration_of(rank, pass.chunk, pass.kind); },
        round_half_up(weight_of(transfer()) / kUnit));
    return kUnit * static_cast<double>(run.step_ps);
  }

  template <class DurationOf>
  workload::PassCosts mean_costs(const DurationOf& duration_of) const {
    workload::PassCosts sum{0, 0, 0, 0, 0};
    for (std::int64_t stage = 0; stage < strategy_.pp; ++stage) {
      sum.forward_ps += duration_of(stage, 0, PassKind::forward);
      sum.input_gradient_ps += duration_of(stage, 0, PassKind::input_gradient);
      sum.weight_gradient_ps += duration_of(stage, 0, PassKind::weight_gradient);
      for (const ModelPart part : rank_of(stage).work.chunks.at(0)) {
        const workload::PartWork& work = rank_of(stage).work.of(part);
        sum.saved_bytes += work.saved_bytes;
        sum.weight_gradient_input_bytes += std::min(work.weight_gradient_input_bytes, work.saved_bytes);
      }
    }
    for (std::int64_t* value : {&sum.forward_ps, &sum.input_gradient_ps, &sum.weight_gradient_ps, &sum.saved_bytes,
                                &sum.weight_gradient_input_bytes})
      *value /= strategy_.pp;
    return sum;
  }

  /// Returns what a rank computes and sends in a step.
  StepVolumes volumes_of(const Rank& rank) const {
    StepVolumes result;
    const double times = micro_batches();
    for (const auto& chunk : rank.work.chunks)
      for (const ModelPart part : chunk) {
        const workload::PartWork& work = rank.work.of(part);
        for (const workload::PhaseList* pass : {&work.forward, &work.backward})
          add_pass(result, *pass, rank.work, times);
        if (strategy_.zero == 3)
          result.replicas += gathered(work.parameters) * ((work.has_backward() ? 2 : 1) * times),
              result.replicas += reduced(work.trained) * times;
      }
    const Parameters parameters = workload::trained_stage_parameters(model_, strategy_, rank.stage);
    if (strategy_.zero < 3) result.replicas += reduced(workload::summed_parameters(rank.work, parameters));
    result.replicas += gathered_factors(rank.work);
    workload::for_each_factor_kernel(rank.work, [&](const workload::KernelWork& kernel) {
      result.flops += static_cast<double>(kernel.shape.flops);
      result.memory_bytes += static_cast<double>(kernel.shape.bytes);
      if (rank.work.launched_by_host({kernel})) result.launches += static_cast<double>(kernel.launches);
    });
    if (strategy_.zero == 1 || strategy_.zero == 2) result.replicas += gathered(parameters);
    result.replicas += across_groups(parameters);
    for (const compute::Kernel& kernel : workload::optimizer_kernels(strategy_, parameters))
      result.memory_bytes += static_cast<double>(kernel.bytes);
    result.stages = transfer() * (transfer_ways() * times * static_cast<double>(strategy_.virtual_stages));
    return result;
  }

  void add_pass(StepVolumes& to, const workload::PhaseList& pass, const StageWork& stage, double times) const {
    for (const workload::Phase& phase : pass)
      for (const workload::WorkItem& work : phase.ops)
        if (const workload::KernelWork* kernel = work.kernel()) {
          to.flops += times * static_cast<double>(kernel->shape.flops);
          to.memory_bytes += times * static_cast<double>(kernel->shape.bytes);
          if (stage.launched_by_host(work)) to.launches += times * static_cast<double>(kernel->launches);
        } else if (const workload::CollectiveStart* start = work.start()) {
          counted_as(start->role, to) += sent(*start) * times;
        }
  }

  const workload::Model& model_;
  const workload::Strategy& strategy_;
  const std::int64_t gpus_per_node_;
  const Balance& balance_;
  std::vector<Rank> ranks_;  // of stages that differ
  std::vector<std::size_t> rank_of_stage_;
};

}  // namespace

SentBytes sent_bytes(Kind kind, double bytes, std::int64_t members, std::int64_t stride, std::int64_t gpus_per_node) {
  if (members < 2) return {};
  std::int64_t local = std::clamp<std::int64_t>(gpus_per_node / stride, 1, members);
  if (members % local != 0) local = 1;
  const auto n = static_cast<double>(members), near = static_cast<double>(local);
  switch (kind) {
    case Kind::all_to_all:
      return {bytes * (near - 1) / n, bytes * (n - near) / n};
    case Kind::send:
      return local == members ? SentBytes{bytes, 0} : SentBytes{0, bytes};
    default:
      break;
  }
  const double shares = kind == Kind::all_reduce                                   ? 2 * (n - 1) / n
                        : kind == Kind::all_gather || kind == Kind::reduce_scatter ? (n - 1) / n
                                                                                   : 1;
  const double through_ring = shares * bytes;
  return {local > 1 ? through_ring : 0, local < members ? through_ring / near : 0};
}

StepVolumes step_volumes(const workload::Model& model, const workload::Strategy& strategy, std::int64_t gpus_per_node,
                         const Balance& balance) {
  return Weigher(model, strategy, gpus_per_node, balance).step();
}

}  // namespace manyworlds::core::step
