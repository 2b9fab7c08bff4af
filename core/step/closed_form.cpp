#include "core/step/closed_form.hpp"

#include <algorithm>
#include <vector>

#include "core/compute/host.hpp"
#include "core/workload/cut.hpp"
#include "core/workload/parameters.hpp"
#include "core/workload/stage_work.hpp"

namespace manyworlds::core::step {
namespace {

using collective::Communicator;
using collective::Kind;
using workload::Part;
using workload::Pass;
using workload::StageWork;

constexpr std::int64_t kGradientBytes = 4, kParameterBytes = 2;

class Form {
 public:
  Form(const Configuration& of, const Links& links) : of_(of), s_(of.strategy), links_(links) {}

  ClosedForm step() {
    ClosedForm made;
    std::vector<double> forward, backward;  // of a micro-batch through all chunks of a stage
    double last_backward = 0;
    for (std::int64_t stage = 0; stage < s_.pp; ++stage) {
      const StageWork work = workload::stage_work(of_.model, s_, stage);
      double f = 0, b = 0;
      for (const auto& chunk : work.chunks)
        for (const Part part : chunk) {
          f += pass_s(work.of(part).forward, work.cuda_graphs);
          b += pass_s(work.of(part).backward, work.cuda_graphs);
        }
      forward.push_back(f);
      backward.push_back(b);
      const double gradients = gradients_s(stage, b);
      double optimizer = 0;
      for (const auto& kernel :
           workload::optimizer_kernels(s_, workload::stage_parameters(of_.model, s_, stage)))
        optimizer += seconds(compute::cost(kernel, of_.gpu));
      made.gradients_s = std::max(made.gradients_s, gradients);
      made.optimizer_s = std::max(made.optimizer_s, optimizer);
      last_backward = std::max(last_backward, b);
    }
    // A micro-batch must pass all stages; then the slowest works off the others.
    double all = 0, slowest = 0;
    for (std::size_t i = 0; i < forward.size(); ++i) {
      all += forward[i] + backward[i];
      slowest = std::max(slowest, forward[i] + backward[i]);
    }
    const double transfers = s_.pp > 1 ? 2 * static_cast<double>(s_.pp - 1) * transfer_s() : 0;
    made.pipeline_s = static_cast<double>(s_.micro_batches()) * slowest;
    made.bubble_s = (all - slowest) / static_cast<double>(s_.virtual_stages) + transfers;
    made.step_s = made.pipeline_s + made.bubble_s + made.gradients_s + made.optimizer_s;
    return made;
  }

 private:
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

  double collective_s(std::int64_t members, std::int64_t stride, Kind kind, std::int64_t bytes) const {
    if (members < 2 || bytes == 0) return 0;
    const Communicator who = communicator(members, stride);
    return seconds(collective::predicted_ps(collective::choose(of_.collectives, who, kind, bytes), who));
  }

  double transfer_s() const {
    const std::int64_t bytes = workload::cut(of_.model, s_).boundary_bytes();
    const std::int64_t stride = s_.tp * s_.cp * s_.dp;
    return collective_s(2, stride, Kind::send, bytes);
  }

  /// A pass on one rank: kernels in order, collectives in order on a stream of their own, joins between them.
  double pass_s(const Pass& pass, bool cuda_graphs) const {
    double now = 0, network_free = 0;
    Time busy = 0;
    compute::HostWork host;
    for (const auto& phase : pass)
      for (const auto& work : phase.tape) {
        if (work.kind == workload::Work::Kind::join) {
          now = std::max(now, network_free);
        } else if (work.kind == workload::Work::Kind::start) {
          ++host.collectives;
          network_free = std::max(now, network_free) + collective_s(s_.tp, 1, work.collective, work.bytes);
        } else {
          ++host.kernels;
          const Time cost = compute::cost(work.kernel, of_.gpu);
          busy += cost;
          now = after_kernel(now, seconds(cost), network_free);
        }
      }
    now = std::max(now, network_free);
    return now + (cuda_graphs ? 0 : seconds(compute::host_wait(host, busy, of_.gpu)));
  }

  /// When a kernel of `work` seconds ends that runs beside communication until `until`.
  double after_kernel(double now, double work, double until) const {
    if (until <= now) return now + work;
    const double pace = 1 + of_.gpu.communication_slowdown;
    const double beside = (until - now) / pace;  // of the work
    return beside >= work ? now + work * pace : until + work - beside;
  }

  /// What is exposed of adding gradients up and gathering parameters. Gradients that leave early hide behind the last
  /// micro-batch's backward pass, which they slow down.
  double gradients_s(std::int64_t stage, double backward) const {
    const std::int64_t members = s_.dp, stride = s_.tp * s_.cp;
    if (members < 2) return 0;
    const std::int64_t parameters = workload::stage_parameters(of_.model, s_, stage).total();
    const Kind kind = s_.zero > 0 ? Kind::reduce_scatter : Kind::all_reduce;
    const std::int64_t buckets = std::max<std::int64_t>(1, parameters / s_.bucket_parameters);
    const double each = collective_s(members, stride, kind, kGradientBytes * parameters / buckets);
    double reduced = static_cast<double>(buckets) * each;
    if (s_.overlap_grad_reduce) {
      const double hidden = std::min(reduced - each, backward);
      const double pace = 1 + of_.gpu.communication_slowdown;
      reduced = reduced - hidden + hidden * (1 - 1 / pace);
    }
    if (s_.zero == 0) return reduced;
    return reduced + static_cast<double>(buckets) *
                         collective_s(members, stride, Kind::all_gather, kParameterBytes * parameters / buckets);
  }

  const Configuration& of_;
  const workload::Strategy& s_;
  const Links& links_;
};

}  // namespace

ClosedForm closed_form(const Configuration& of, const Links& links) {
  return Form(of, links).step();
}

}  // namespace manyworlds::core::step
