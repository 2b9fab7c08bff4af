#include "core/step/estimate/closed_form.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/compute/host.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/replica_traffic.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/parts/expert_load.hpp"
#include "core/workload/schedule/simulate_schedule.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/stage_boundaries.hpp"

namespace manyworlds::core::step {
namespace {

using collective::Kind;
using workload::ModelPart;
using workload::PhaseList;
using workload::StageWork;

using workload::kParameterBytes;

class Estimator {
 public:
  Estimator(const Configuration& configuration, const Links& links)
      : configuration_(configuration), strategy_(configuration.strategy), links_(links) {}

  ClosedForm step() {
    ClosedForm result;
    double all = 0, slowest = 0;  // time of a micro-batch on all stages, and on the slowest
    std::vector<SlowestRank> slowest_ranks;
    for (std::int64_t stage = 0; stage < strategy_.pp; ++stage) {
      SlowestRank of_stage = slowest_of(stage);
      gpu_ = of_stage.gpu;
      const Passes& passes = of_stage.passes;
      all += passes.forward + passes.backward;
      slowest = std::max(slowest, passes.forward + passes.backward);
      const workload::Parameters parameters =
          workload::trained_stage_parameters(configuration_.model, strategy_, stage);
      result.gradients_s = std::max(
          result.gradients_s, strategy_.zero == 3 ? across_groups_s(parameters) : gradients_s(parameters, of_stage));
      double optimizer = 0;
      for (const auto& kernel : workload::optimizer_kernels(strategy_, parameters))
        optimizer += seconds(compute::kernel_cost(kernel, *gpu_).ps);
      result.optimizer_s = std::max(result.optimizer_s, optimizer);
      slowest_ranks.push_back(std::move(of_stage));
    }
    result.pipeline_s = static_cast<double>(strategy_.chunk_micro_batches()) * slowest;
    if (workload::schedule_type(strategy_.schedule).has_formula) {
      // One micro-batch passes through all stages, and its gradients back; the slowest stage then processes the others.
      const double ways = workload::is_inference(configuration_.model) ? 1 : 2;
      const double transfers = strategy_.pp > 1 ? ways * static_cast<double>(strategy_.pp - 1) * transfer_s() : 0;
      result.bubble_s = (all - slowest) / static_cast<double>(strategy_.virtual_stages) + transfers;
    } else {
      result.bubble_s = simulated_pipeline_s(slowest_ranks) - result.pipeline_s;
    }
    result.step_s = result.pipeline_s + result.bubble_s + result.gradients_s + result.optimizer_s;
    return result;
  }

 private:
  struct Passes {
    double forward = 0, backward = 0;
  };

  struct SlowestRank {
    Passes passes;
    StageWork work;
    const compute::Gpu* gpu = nullptr;
  };

  /// Returns the slowest rank of a stage. The other ranks wait for it in every token exchange and in the reduction of
  /// gradients.
  SlowestRank slowest_of(std::int64_t stage) {
    SlowestRank slowest_rank;
    for (const auto& [rank_class, ranks] : classes_) {
      if (rank_class.stage != stage) continue;
      gpu_ = &configuration_.gpu_of(rank_class);
      StageWork work = workload::stage_work(configuration_.model, strategy_, *gpu_, rank_class);
      const Passes one = passes_of(work);
      if (slowest_rank.gpu == nullptr ||
          one.forward + one.backward > slowest_rank.passes.forward + slowest_rank.passes.backward)
        slowest_rank = {one, std::move(work), gpu_};
    }
    return slowest_rank;
  }

  /// Returns the times of one micro-batch through all chunks of a stage.
  Passes passes_of(const StageWork& work) const {
    std::vector<Passes> of_part;
    for (const workload::PartWork& part : work.parts)
      of_part.push_back({pass_s(part.forward, work), pass_s(part.backward, work)});
    Passes sum;
    for (const auto& chunk : work.chunks)
      if (strategy_.zero == 3) {
        const Passes sharded = sharded_s(work, chunk, of_part);
        sum.forward += sharded.forward, sum.backward += sharded.backward;
      } else {
        for (const ModelPart part : chunk) sum.forward += of_part[part].forward, sum.backward += of_part[part].backward;
      }
    return sum;
  }

  /// Returns the step time of the pipeline with every pass run in its rank's order as soon as its inputs are available.
  double simulated_pipeline_s(const std::vector<SlowestRank>& slowest_ranks) {
    std::map<std::tuple<std::int64_t, std::int32_t, workload::PassKind>, Time> durations;
    const auto duration_of = [&](std::int64_t rank, const workload::PipelinePass& slot) {
      const auto [found, is_new] = durations.try_emplace({rank, slot.chunk, slot.kind}, Time{0});
      const StageWork& work = slowest_ranks[static_cast<std::size_t>(rank)].work;
      gpu_ = slowest_ranks[static_cast<std::size_t>(rank)].gpu;
      if (is_new)
        for (const ModelPart part : work.chunks[static_cast<std::size_t>(slot.chunk)])
          found->second += round_half_up(pass_s(work.of(part).pass(slot.kind), work) * 1e12);
      return found->second;
    };
    const auto run = workload::simulate_schedule(
        strategy_.stages(), workload::pipeline_orders(configuration_.model, strategy_, configuration_.gpu), duration_of,
        round_half_up(transfer_s() * 1e12));
    return seconds(strategy_.stack.post_validation ? run.longest_rank_ps : run.step_ps);
  }

  /// ZeRO 3: during each unit the parameters of the next one are gathered, and in the backward pass the gradients of
  /// the previous one are reduce-scattered. The first gather and the last reduce-scatter overlap with nothing.
  Passes sharded_s(const StageWork& work, const std::vector<ModelPart>& chunk,
                   const std::vector<Passes>& of_part) const {
    const auto gather = [&](ModelPart part) {
      return replicas_s(Kind::all_gather, kParameterBytes, work.of(part).parameters);
    };
    const auto scatter = [&](ModelPart part) {
      return replicas_s(Kind::reduce_scatter, workload::gradient_bytes(strategy_), work.of(part).trained);
    };
    const auto overlapped = [&](double compute, double network) {
      return std::max(after_kernel(0, compute, network), network);
    };
    Passes sum;
    sum.forward = gather(chunk.front());
    for (std::size_t i = 0; i < chunk.size(); ++i)
      sum.forward += overlapped(of_part[chunk[i]].forward, i + 1 < chunk.size() ? gather(chunk[i + 1]) : 0);
    for (std::size_t i = chunk.size(); i-- > 0;)
      sum.backward += overlapped(of_part[chunk[i]].backward,
                                 (i > 0 && work.of(chunk[i - 1]).has_backward() ? gather(chunk[i - 1]) : 0) +
                                     (i + 1 < chunk.size() ? scatter(chunk[i + 1]) : 0));
    sum.backward += scatter(chunk.front());
    return sum;
  }

  /// Returns the time of one collective among replicas over parameters of `bytes_each` bytes.
  double replicas_s(Kind kind, std::int64_t bytes_each, const workload::Parameters& parameters) const {
    double sum = collective_s(strategy_.shards(), strategy_.tp, kind, bytes_each * parameters.dense);
    if (parameters.experts > 0)
      sum +=
          collective_s(strategy_.expert_shards(), strategy_.ep * strategy_.etp, kind, bytes_each * parameters.experts);
    return sum;
  }

  /// Returns the time to all-reduce gradient shards across the groups within which ZeRO shards.
  double across_groups_s(const workload::Parameters& parameters) const {
    const std::int64_t each = workload::gradient_bytes(strategy_);
    double sum = collective_s(strategy_.zero_groups(), strategy_.tp * strategy_.shards(), Kind::all_reduce,
                              each * parameters.dense / strategy_.shards());
    if (parameters.experts > 0)
      sum += collective_s(strategy_.zero_groups(), strategy_.ep * strategy_.etp * strategy_.expert_shards(),
                          Kind::all_reduce, each * parameters.experts / strategy_.expert_shards());
    return sum;
  }

  double collective_s(std::int64_t members, std::int64_t stride, Kind kind, std::int64_t bytes,
                      workload::Role role = workload::Role::tensor, const collective::Split& split = {}) const {
    if (members < 2 || bytes == 0) return 0;
    const auto [shape, group] = strided_collective(configuration_, links_, members, stride, role, kind, bytes, split);
    return seconds(collective::predicted_ps(shape, group));
  }

  /// Returns the time of a collective among ranks that share a micro-batch.
  double shared_s(const workload::CollectiveStart& start) const {
    if (start.role == workload::Role::expert) {
      if (strategy_.stack.overlap_experts) return 0;  // hidden behind another micro-batch
      return collective_s(strategy_.ep, strategy_.etp, start.kind, start.bytes, start.role, start.split);
    }
    if (start.role == workload::Role::expert_tensor) return collective_s(strategy_.etp, 1, start.kind, start.bytes);
    if (start.role == workload::Role::data)
      return collective_s(strategy_.shards(), strategy_.tp, start.kind, start.bytes, start.role);
    if (start.role == workload::Role::context) return collective_s(strategy_.cp, strategy_.tp, start.kind, start.bytes);
    const bool in_ring = start.role == workload::Role::send_context;
    return collective_s(in_ring ? 2 : strategy_.tp, in_ring ? strategy_.tp : 1, start.kind, start.bytes);
  }

  double transfer_s() const {
    const workload::StageBoundary boundary = workload::mean_boundary(configuration_.model, strategy_);
    const std::int64_t stride = strategy_.tp * strategy_.cp * strategy_.dp;
    const double sent = collective_s(2, stride, Kind::send, boundary.transfer_bytes);
    if (!workload::rank_shapes(configuration_.model, strategy_).scatters_transfers()) return sent;
    return sent + collective_s(strategy_.tp, 1, Kind::all_gather, boundary.bytes);
  }

  /// Collectives not yet joined, and their ends.
  using StartedCollectives = std::vector<std::pair<workload::Role, double>>;

  /// Returns the time of a pass on one rank: kernels run in order, collectives in order on streams of their own, with
  /// joins between them. The host launches meanwhile, after it has waited for the tokens of experts.
  double pass_s(const PhaseList& pass, const workload::StageWork& stage) const {
    double now = 0, network_free = 0;
    std::array<double, 2> stream_free{};  // when the stream of other collectives and the experts' stream are free
    StartedCollectives started;
    double section_begin = 0;
    compute::HostWork launches;
    const auto end_section = [&] {
      now = std::max(now, section_begin + seconds(stage.launch_times.of(std::exchange(launches, {}))));
      section_begin = now;
    };
    bool knows_counts = false;
    for (const auto& phase : pass)
      for (const auto& work : phase.ops) {
        if (!knows_counts && work.needs_token_counts && stage.launched_by_host(work))
          end_section(), knows_counts = true;
        if (const workload::KernelWork* kernel = work.kernel()) {
          if (stage.launched_by_host(work)) launches.kernels += kernel->launches;
          now = after_kernel(now, seconds(kernel->cost.ps), network_free);
        } else if (const workload::CollectiveStart* start = work.start()) {
          launches.collectives += stage.launched_by_host(work) ? 1 : 0;
          const bool of_experts = start->role == workload::Role::expert || start->role == workload::Role::expert_tensor;
          double& free = stream_free.at(of_experts ? 1 : 0);
          free = std::max(now, free) + shared_s(*start);
          network_free = std::max(network_free, free);
          started.emplace_back(start->role, free);
        } else {
          now = after_join(now, std::get<workload::Join>(work.action), started);
        }
      }
    now = std::max(now, network_free);
    end_section();
    return now;
  }

  /// Returns the factor by which a concurrent collective slows kernels down.
  double kernel_slowdown(bool reduces) const {
    using workload::CommunicationEngine;
    const workload::Stack& stack = strategy_.stack;
    if (stack.communication_engine == CommunicationEngine::calibrated) return 1 + gpu_->communication_slowdown;
    if (stack.communication_engine == CommunicationEngine::copy && !reduces) return 1;
    const auto units = static_cast<double>(gpu_->compute_units);
    return units / (units - static_cast<double>(stack.communication_sms));
  }

  /// Returns the end of a kernel of `work` seconds that starts at `now`, with concurrent communication until `until`.
  double after_kernel(double now, double work, double until) const {
    if (until <= now) return now + work;
    const double pace = kernel_slowdown(false);
    const double overlapped = (until - now) / pace;  // the part of the work done by `until`
    return overlapped >= work ? now + work * pace : until + work - overlapped;
  }

  /// Returns the time of gathering the factors of weights, part by part.
  double factor_gathers_s(const StageWork& work) const {
    double sum = 0;
    for (const auto& chunk : work.chunks)
      for (const ModelPart part : chunk)
        sum +=
            collective_s(strategy_.replicas(), strategy_.tp, Kind::all_gather, work.of(part).gathered_factor_bytes());
    return sum;
  }

  /// Returns the exposed time of reducing gradients and gathering parameters. Gradients that are reduced early overlap
  /// with the last micro-batch's backward pass, and parameters that are gathered late with the first forward pass; both
  /// slow these passes down. Factors are gathered among the buckets, and gradients computed from them at the end.
  double gradients_s(const workload::Parameters& all, const SlowestRank& rank) const {
    const workload::Parameters parameters = workload::summed_parameters(rank.work, all);
    const std::int64_t buckets = std::max<std::int64_t>(1, parameters.total() / strategy_.bucket_parameters);
    const workload::Parameters bucket{parameters.dense / buckets, parameters.experts / buckets};
    const Passes& passes = rank.passes;
    const auto exposed = [&](Kind kind, std::int64_t bytes_each, bool overlaps, double overlapping_s, double across = 0,
                             double beside = 0) {
      const bool reduces = kind != Kind::all_gather;
      // A bucket's shards are all-reduced across groups while the next bucket is reduce-scattered.
      const double one = replicas_s(kind, bytes_each, bucket), each = one + across;
      const double total = static_cast<double>(buckets) * std::max(one, across) + std::min(one, across) + beside;
      if (!overlaps) return total;
      const double hidden = std::min(total - each, overlapping_s), pace = kernel_slowdown(reduces);
      return total - hidden + hidden * (1 - 1 / pace);
    };
    const Kind kind = strategy_.zero > 0 ? Kind::reduce_scatter : Kind::all_reduce;
    double sum = exposed(kind, workload::gradient_bytes(strategy_), strategy_.overlap_grad_reduce, passes.backward,
                         across_groups_s(bucket), factor_gathers_s(rank.work));
    workload::for_each_factor_kernel(rank.work,
                                     [&](const workload::KernelWork& kernel) { sum += seconds(kernel.cost.ps); });
    if (strategy_.zero > 0)
      sum += exposed(Kind::all_gather, kParameterBytes, strategy_.stack.overlap_parameters, passes.forward);
    return sum;
  }

  const Configuration& configuration_;
  const workload::Strategy& strategy_;
  const std::map<workload::RankClass, std::uint32_t> classes_ = classes_of(parallel_config_of(configuration_));
  const compute::Gpu* gpu_ = &configuration_.gpu;  // GPU of the ranks under consideration
  const Links& links_;
};

}  // namespace

ClosedForm closed_form(const Configuration& configuration, const Links& links) {
  return Estimator(configuration, links).step();
}

}  // namespace manyworlds::core::step
