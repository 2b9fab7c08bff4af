#include "core/step/estimate/closed_form.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/compute/host.hpp"
#include "core/step/world/layout.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/replica_traffic.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/expert_load.hpp"
#include "core/workload/schedule/eager.hpp"
#include "core/workload/strategy/cut.hpp"
#include "core/workload/strategy/parameters.hpp"

namespace manyworlds::core::step {
namespace {

using collective::Communicator;
using collective::Kind;
using workload::Part;
using workload::Pass;
using workload::StageWork;

using workload::kParameterBytes;

class Form {
 public:
  Form(const Configuration& of, const Links& links) : of_(of), s_(of.strategy), links_(links) {}

  ClosedForm step() {
    ClosedForm made;
    double all = 0, slowest = 0;  // of a micro-batch through all stages, and through the slowest
    std::vector<SlowestRank> works;
    for (std::int64_t stage = 0; stage < s_.pp; ++stage) {
      SlowestRank of_stage = slowest_of(stage);
      gpu_ = of_stage.gpu;
      const Passes& passes = of_stage.passes;
      all += passes.forward + passes.backward;
      slowest = std::max(slowest, passes.forward + passes.backward);
      const workload::Parameters parameters = workload::stage_parameters(of_.model, s_, stage);
      made.gradients_s =
          std::max(made.gradients_s, s_.zero == 3 ? across_s(parameters) : gradients_s(parameters, passes));
      double optimizer = 0;
      for (const auto& kernel : workload::optimizer_kernels(s_, parameters))
        optimizer += seconds(compute::price(kernel, *gpu_).ps);
      made.optimizer_s = std::max(made.optimizer_s, optimizer);
      works.push_back(std::move(of_stage));
    }
    made.pipeline_s = static_cast<double>(s_.chunk_micro_batches()) * slowest;
    if (workload::schedule_type(s_.schedule).has_formula) {
      // A micro-batch must pass all stages; then the slowest works off the others.
      const double transfers = s_.pp > 1 ? 2 * static_cast<double>(s_.pp - 1) * transfer_s() : 0;
      made.bubble_s = (all - slowest) / static_cast<double>(s_.virtual_stages) + transfers;
    } else {
      made.bubble_s = eager_s(works) - made.pipeline_s;
    }
    made.step_s = made.pipeline_s + made.bubble_s + made.gradients_s + made.optimizer_s;
    return made;
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

  /// Of the ranks of a stage one that takes longest: the others wait for it in every exchange of tokens, and where
  /// gradients are added up.
  SlowestRank slowest_of(std::int64_t stage) {
    SlowestRank most;
    for (const auto& [of, ranks] : classes_) {
      if (of.stage != stage) continue;
      gpu_ = &of_.gpu_of(of);
      StageWork work = workload::stage_work(of_.model, s_, *gpu_, of);
      const Passes one = passes_of(work);
      if (most.gpu == nullptr || one.forward + one.backward > most.passes.forward + most.passes.backward)
        most = {one, std::move(work), gpu_};
    }
    return most;
  }

  /// Of one micro-batch through all chunks of a stage.
  Passes passes_of(const StageWork& work) const {
    std::vector<Passes> of_part;
    for (const workload::PartWork& part : work.parts)
      of_part.push_back({pass_s(part.forward, work), pass_s(part.backward, work)});
    Passes sum;
    for (const auto& chunk : work.chunks)
      if (s_.zero == 3) {
        const Passes sharded = sharded_s(work, chunk, of_part);
        sum.forward += sharded.forward, sum.backward += sharded.backward;
      } else {
        for (const Part part : chunk) sum.forward += of_part[part].forward, sum.backward += of_part[part].backward;
      }
    return sum;
  }

  /// All passes in their orders, as soon as they can run.
  double eager_s(const std::vector<SlowestRank>& works) {
    std::map<std::tuple<std::int64_t, std::int32_t, workload::PassKind>, Time> known;
    const auto lasts = [&](std::int64_t rank, const workload::Slot& slot) {
      const auto [found, is_new] = known.try_emplace({rank, slot.chunk, slot.kind}, Time{0});
      const StageWork& work = works[static_cast<std::size_t>(rank)].work;
      gpu_ = works[static_cast<std::size_t>(rank)].gpu;
      if (is_new)
        for (const Part part : work.chunks[static_cast<std::size_t>(slot.chunk)])
          found->second += round_half_up(pass_s(work.of(part).pass(slot.kind), work) * 1e12);
      return found->second;
    };
    const auto run = workload::run_eagerly(s_.sections(), workload::pipeline_orders(of_.model, s_, of_.gpu), lasts,
                                           round_half_up(transfer_s() * 1e12));
    return seconds(s_.stack.post_validation ? run.longest_ps : run.step_ps);
  }

  /// ZeRO 3: beside each unit the next one is gathered, and in the backward pass the gradients of the one before are
  /// scattered. The first gather and the last scatter stand alone.
  Passes sharded_s(const StageWork& work, const std::vector<Part>& chunk, const std::vector<Passes>& of_part) const {
    const auto gather = [&](Part part) {
      return replicas_s(Kind::all_gather, kParameterBytes, work.of(part).parameters);
    };
    const auto scatter = [&](Part part) {
      return replicas_s(Kind::reduce_scatter, workload::gradient_bytes(s_), work.of(part).parameters);
    };
    const auto beside = [&](double compute, double network) {
      return std::max(after_kernel(0, compute, network), network);
    };
    Passes sum;
    sum.forward = gather(chunk.front());
    for (std::size_t i = 0; i < chunk.size(); ++i)
      sum.forward += beside(of_part[chunk[i]].forward, i + 1 < chunk.size() ? gather(chunk[i + 1]) : 0);
    for (std::size_t i = chunk.size(); i-- > 0;)
      sum.backward += beside(of_part[chunk[i]].backward,
                             (i > 0 ? gather(chunk[i - 1]) : 0) + (i + 1 < chunk.size() ? scatter(chunk[i + 1]) : 0));
    sum.backward += scatter(chunk.front());
    return sum;
  }

  /// One collective of the replicas over parameters of which each takes so many bytes.
  double replicas_s(Kind kind, std::int64_t bytes_each, const workload::Parameters& parameters) const {
    double sum = collective_s(s_.shards(), s_.tp, kind, bytes_each * parameters.dense);
    if (parameters.experts > 0)
      sum += collective_s(s_.expert_shards(), s_.ep * s_.etp, kind, bytes_each * parameters.experts);
    return sum;
  }

  /// Adding up the shares of gradients over the groups among whose replicas ZeRO shares out.
  double across_s(const workload::Parameters& parameters) const {
    const std::int64_t each = workload::gradient_bytes(s_);
    double sum =
        collective_s(s_.zero_groups(), s_.tp * s_.shards(), Kind::all_reduce, each * parameters.dense / s_.shards());
    if (parameters.experts > 0)
      sum += collective_s(s_.zero_groups(), s_.ep * s_.etp * s_.expert_shards(), Kind::all_reduce,
                          each * parameters.experts / s_.expert_shards());
    return sum;
  }

  /// GPUs of a group that are `stride` apart, node by node.
  Communicator communicator(std::int64_t members, std::int64_t stride) const {
    Communicator made;
    made.members = static_cast<std::uint32_t>(members);
    const std::int64_t local = std::clamp<std::int64_t>(of_.gpus_per_node / stride, 1, members);
    made.per_node = static_cast<std::uint32_t>(members % local == 0 ? local : 1);
    made.inside = links_.inside;
    made.between = links_.between;
    made.node_switches = made.rail_switches = true;
    return made;
  }

  double collective_s(std::int64_t members, std::int64_t stride, Kind kind, std::int64_t bytes,
                      workload::Role role = workload::Role::tensor, const collective::Split& split = {}) const {
    if (members < 2 || bytes == 0) return 0;
    const Communicator who = communicator(members, stride);
    collective::Shape shape = shape_of(of_, {0, role, who}, kind, bytes, split);
    shape.per_node = who.per_node;  // left out where the DAG does not depend on it
    return seconds(collective::predicted_ps(shape, who));
  }

  /// A collective among ranks that share a micro-batch.
  double shared_s(const workload::Work& work) const {
    if (work.role == workload::Role::expert) {
      if (s_.stack.overlap_experts) return 0;  // beside another micro-batch
      return collective_s(s_.ep, s_.etp, work.collective, work.bytes, work.role, work.split);
    }
    if (work.role == workload::Role::expert_tensor) return collective_s(s_.etp, 1, work.collective, work.bytes);
    if (work.role == workload::Role::context) return collective_s(s_.cp, s_.tp, work.collective, work.bytes);
    const bool in_ring = work.role == workload::Role::send_context;
    return collective_s(in_ring ? 2 : s_.tp, in_ring ? s_.tp : 1, work.collective, work.bytes);
  }

  double transfer_s() const {
    const std::int64_t bytes = workload::cut(of_.model, s_).boundary_bytes();
    const std::int64_t stride = s_.tp * s_.cp * s_.dp;
    return collective_s(2, stride, Kind::send, bytes);
  }

  /// A pass on one rank: kernels in order, collectives in order on a stream of their own, joins between them.
  double pass_s(const Pass& pass, const workload::StageWork& of) const {
    double now = 0, network_free = 0;
    std::array<double, 2> stream_free{};                     // of experts' exchanges, and of all others
    std::vector<std::pair<workload::Role, double>> started;  // and when they end
    Time busy = 0;
    compute::HostWork host;
    for (const auto& phase : pass)
      for (const auto& work : phase.tape) {
        if (work.kind == workload::Work::Kind::join) {
          const auto but = std::min<std::int64_t>(work.awaited.but, std::ssize(started));
          const auto end = std::remove_if(started.begin(), started.end() - but, [&](const auto& one) {
            if (work.awaited.role && *work.awaited.role != one.first) return false;
            now = std::max(now, one.second);
            return true;
          });
          started.erase(end, started.end() - but);
        } else if (work.kind == workload::Work::Kind::start) {
          host.collectives += of.by_host(work) ? 1 : 0;
          const bool of_experts = work.role == workload::Role::expert || work.role == workload::Role::expert_tensor;
          double& free = stream_free.at(of_experts ? 1 : 0);
          free = std::max(now, free) + shared_s(work);
          network_free = std::max(network_free, free);
          started.emplace_back(work.role, free);
        } else {
          const Time cost = work.price.ps;
          if (of.by_host(work)) host.kernels += work.launches, busy += cost;
          now = after_kernel(now, seconds(cost), network_free);
        }
      }
    now = std::max(now, network_free);
    return now + seconds(compute::host_wait(host, busy, *gpu_));
  }

  /// How much longer kernels take beside a collective.
  double pace_beside(bool adds) const {
    using workload::CommunicationEngine;
    const workload::Stack& stack = s_.stack;
    if (stack.communication_engine == CommunicationEngine::calibrated) return 1 + gpu_->communication_slowdown;
    if (stack.communication_engine == CommunicationEngine::copy && !adds) return 1;
    const auto units = static_cast<double>(gpu_->compute_units);
    return units / (units - static_cast<double>(stack.communication_sms));
  }

  /// When a kernel of `work` seconds ends that runs beside communication until `until`.
  double after_kernel(double now, double work, double until) const {
    if (until <= now) return now + work;
    const double pace = pace_beside(false);
    const double beside = (until - now) / pace;  // of the work
    return beside >= work ? now + work * pace : until + work - beside;
  }

  /// What is exposed of adding gradients up and gathering parameters. Gradients that leave early hide behind the last
  /// micro-batch's backward pass and parameters that are gathered late behind the first forward pass, which they slow.
  double gradients_s(const workload::Parameters& parameters, const Passes& passes) const {
    const std::int64_t buckets = std::max<std::int64_t>(1, parameters.total() / s_.bucket_parameters);
    const workload::Parameters bucket{parameters.dense / buckets, parameters.experts / buckets};
    const auto exposed = [&](Kind kind, std::int64_t bytes_each, bool hides, double behind, double across = 0) {
      const bool adds = kind != Kind::all_gather;
      // Groups add up a bucket's shares while the next one is scattered.
      const double one = replicas_s(kind, bytes_each, bucket), each = one + across;
      const double whole = static_cast<double>(buckets) * std::max(one, across) + std::min(one, across);
      if (!hides) return whole;
      const double hidden = std::min(whole - each, behind), pace = pace_beside(adds);
      return whole - hidden + hidden * (1 - 1 / pace);
    };
    const Kind kind = s_.zero > 0 ? Kind::reduce_scatter : Kind::all_reduce;
    double sum = exposed(kind, workload::gradient_bytes(s_), s_.overlap_grad_reduce, passes.backward, across_s(bucket));
    if (s_.zero > 0) sum += exposed(Kind::all_gather, kParameterBytes, s_.stack.overlap_parameters, passes.forward);
    return sum;
  }

  const Configuration& of_;
  const workload::Strategy& s_;
  const std::map<workload::RankClass, std::uint32_t> classes_ = classes_of(arrangement_of(of_));
  const compute::Gpu* gpu_ = &of_.gpu;  // of the ranks that are looked at
  const Links& links_;
};

}  // namespace

ClosedForm closed_form(const Configuration& of, const Links& links) {
  return Form(of, links).step();
}

}  // namespace manyworlds::core::step
