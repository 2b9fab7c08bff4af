#include "experiments/analysis/stragglers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/step/layout/role_name.hpp"

namespace manyworlds::experiments {
namespace {

using core::Time;
using core::network::Router;
using core::step::CompiledStep;
using core::step::GroupId;
using core::step::RankId;
using core::step::Recording;
using core::workload::Op;
using core::workload::StepPart;

constexpr std::size_t kMinPeers = 3;
constexpr double kDeviationPerMad = 1.4826;  // standard deviation of a normal distribution over its MAD
constexpr double kMinDeviation = 0.01;       // of the median: error that clocks and schedulers cause anyway
constexpr double kSpikeProbability = 0.01, kSpikeFactor = 1.5;
constexpr std::int64_t kProbeBytes = 4 << 20;
constexpr std::size_t kPartnersPerSide = 8;  // that a rank sends to, inside and outside its node each

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// Returns a uniform number in [0, 1) from a counter.
double uniform(std::uint64_t& state) {
  const double drawn = core::unit_interval(core::splitmix64(state));
  state += core::kSplitMixIncrement;
  return drawn;
}

/// Returns a nearly normal number: the sum of twelve uniform ones.
double normal(std::uint64_t& state) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform(state);
  return sum;
}

/// Returns the group of ranks that take equally long on a healthy cluster: machines that differ only in speed are one
/// kind.
std::string peers_of(const CompiledStep& compiled, const core::workload::RankClass& key,
                     const ProgramsOfFile& programs) {
  const core::step::Configuration& configuration = compiled.configuration();
  std::uint32_t kind = 0;
  const auto& figures = core::compute::gpu_options();
  const auto is_like = [&](std::uint32_t other) {
    return figures.read(configuration.gpu_of({0, 0, other})) == figures.read(configuration.gpu_of(key));
  };
  while (kind < key.machine_kind && !is_like(kind)) ++kind;
  if (!programs.empty())
    return fmt::format("program {}, machine {}", programs.at(static_cast<std::size_t>(key.stage)), kind);
  return fmt::format("stage {}, expert rank {}, machine {}", key.stage, key.expert_rank, kind);
}

/// Recomputation counts as backward; kernels of given programs may be of no known pass, and copies are told apart.
const char* phase_of(StepPart category, bool is_given) {
  if (category == StepPart::forward) return "forward";
  if (category == StepPart::kernels) return "kernels";
  if (is_given && category == StepPart::exposed_offload) return "copies";
  return category == StepPart::optimizer ? "optimizer" : "backward";
}

/// Returns the time from the last member's entry to the last completion, summed by communicator and kind of collective.
std::vector<Sample<GroupId>> communication_samples(const CompiledStep& compiled, const Recording& recording,
                                                   const ProgramsOfFile& programs) {
  std::map<std::pair<GroupId, std::string>, Time> durations;
  for (const core::step::InstanceId instance : compiled.instance_ids()) {
    const core::step::CollectiveInterval& course = recording.intervals[instance];
    const GroupId group = compiled.group_of(instance);
    const std::string role = core::step::role_name(compiled.configuration(), compiled.layout().groups()[group].role);
    const char* kind = core::collective::name_of(compiled.collective_op_of(instance).shape.kind);
    durations[{group, fmt::format("{} {}", role, kind)}] += course.ended - course.last;
  }
  std::vector<Sample<GroupId>> samples;
  for (const auto& [key, time] : durations) {
    const core::step::Group& group = compiled.layout().groups()[key.first];
    const auto& first = compiled.layout().classes()[compiled.layout().class_of(group.ranks[0])];
    samples.push_back({key.first, StragglerLevel::communication, key.second,
                       fmt::format("{}: {}, {} members, {} in a node", key.second, peers_of(compiled, first, programs),
                                   group.ranks.size(), group.per_node),
                       core::seconds(time)});
  }
  return samples;
}

/// Simulates sends between pairs of ranks, each alone in the network.
class PairProbes {
 public:
  explicit PairProbes(const CompiledStep& compiled)
      : compiled_(compiled),
        router_(compiled.configuration().graph, core::network::path_choice_of(compiled.transport())) {}

  /// Returns for each rank the median time of its sends to and from others, separately inside its node and beyond.
  std::vector<Sample<RankId>> samples_among(const std::vector<RankId>& ranks) {
    std::vector<Sample<RankId>> samples;
    const auto node = [&](RankId rank) {
      return compiled_.layout().gpu_of(rank).value() / compiled_.configuration().gpus_per_node;
    };
    for (const bool inside : {true, false})
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        std::vector<double> times;
        for (std::size_t step = 1; step < ranks.size() && times.size() < 2 * kPartnersPerSide; ++step) {
          const RankId other = ranks[(i + step) % ranks.size()];
          if ((node(other) == node(ranks[i])) != inside) continue;
          times.push_back(seconds(ranks[i], other));
          times.push_back(seconds(other, ranks[i]));
        }
        if (times.empty()) continue;
        const char* where = inside ? "sends inside the node" : "sends between nodes";
        samples.push_back({ranks[i], StragglerLevel::communication, where, where, median(times)});
      }
    return samples;
  }

 private:
  double seconds(RankId from, RankId to) {
    const auto [known, is_new] = known_.try_emplace({from, to}, 0);
    if (!is_new) return known->second;
    const auto flows = core::network::make_flows(compiled_.transport());
    core::network::Route route;
    const std::uint32_t from_gpu = compiled_.layout().gpu_of(from).value(),
                        to_gpu = compiled_.layout().gpu_of(to).value();
    for (const std::uint32_t link : router_.route(from_gpu, to_gpu, std::uint64_t{from.value()} << 32 | to.value()))
      route.push_back(flows->add_link(core::network::spec_of(router_.graph(), link)));
    flows->set_tie_order({0});
    flows->start({0, 0}, flows->add_route(route), kProbeBytes);
    std::vector<core::network::FlowId> finished;
    flows->advance(core::kNever, finished);
    return known->second = core::seconds(flows->now());
  }

  const CompiledStep& compiled_;
  Router router_;
  std::map<std::pair<RankId, RankId>, double> known_;
};

}  // namespace

template <class Subject>
std::vector<Outlier<Subject>> outliers(const std::vector<Sample<Subject>>& samples,
                                       const MeasurementModel& measurement) {
  std::map<std::string, std::vector<double>> times_of_peers;
  for (const Sample<Subject>& one : samples) times_of_peers[one.activity + "|" + one.peers].push_back(one.seconds);
  std::vector<Outlier<Subject>> found;
  for (const Sample<Subject>& one : samples) {
    const std::vector<double>& times = times_of_peers.at(one.activity + "|" + one.peers);
    if (times.size() < kMinPeers) continue;
    const double middle = median(times);
    std::vector<double> distances;
    for (const double time : times) distances.push_back(std::abs(time - middle));
    const double deviation = std::max(kDeviationPerMad * median(distances), kMinDeviation * middle);
    const double excess = one.seconds - middle;
    if (excess > measurement.slower * middle && excess > measurement.deviations * deviation)
      found.push_back({one.subject, one.level, one.activity, excess / middle});
  }
  return found;
}

template <class Subject>
std::vector<Sample<Subject>> with_noise(std::vector<Sample<Subject>> samples, const MeasurementModel& measurement) {
  auto state = static_cast<std::uint64_t>(measurement.seed) * 0xd1342543de82ef95 + 1;
  for (Sample<Subject>& one : samples) {
    std::vector<double> steps;
    for (std::int64_t step = 0; step < measurement.steps; ++step) {
      const double error = 1 + measurement.noise * normal(state);
      steps.push_back(one.seconds * std::max(0.0, error) * (uniform(state) < kSpikeProbability ? kSpikeFactor : 1));
    }
    one.seconds = median(steps);
  }
  return samples;
}

template std::vector<Outlier<RankId>> outliers(const std::vector<Sample<RankId>>&, const MeasurementModel&);
template std::vector<Outlier<GroupId>> outliers(const std::vector<Sample<GroupId>>&, const MeasurementModel&);
template std::vector<Sample<RankId>> with_noise(std::vector<Sample<RankId>>, const MeasurementModel&);
template std::vector<Sample<GroupId>> with_noise(std::vector<Sample<GroupId>>, const MeasurementModel&);

std::vector<Sample<RankId>> kernel_samples(const CompiledStep& compiled, const Recording& recording,
                                           const ProgramsOfFile& programs) {
  std::vector<Sample<RankId>> samples;
  for (const Recording::Rank& rank : recording.ranks) {
    const std::uint32_t number = compiled.layout().class_of(rank.rank);
    const core::workload::Program& program = compiled.programs()[number];
    const std::string peers = peers_of(compiled, compiled.layout().classes()[number], programs);
    std::map<std::string, Time> phases, passes;
    for (const core::stream::Span& span : recording.records.at(rank.record).spans) {
      const Op& op = program.ops[span.op];
      const core::workload::KernelOp* kernel = op.kernel();
      if (kernel == nullptr || kernel->category == StepPart::host) continue;
      const std::string phase = phase_of(kernel->category, !programs.empty());
      phases[phase] += span.end - span.begin;
      if (const core::workload::PipelinePass* pass = program.pass_of(op))
        passes[fmt::format("{}, chunk {}", phase, pass->chunk)] += span.end - span.begin;
    }
    for (const auto& [phase, time] : phases)
      samples.push_back({rank.rank, StragglerLevel::phase, phase, peers, core::seconds(time)});
    for (const auto& [pass, time] : passes)
      samples.push_back({rank.rank, StragglerLevel::pass, pass, peers, core::seconds(time)});
  }
  return samples;
}

StragglerReport find_stragglers(const CompiledStep& compiled, const Recording& recording,
                                const MeasurementModel& measurement, const ProgramsOfFile& programs) {
  MANYWORLDS_CHECK(recording.ranks.size() == compiled.layout().ranks(), "{} of {} ranks are recorded",
                   recording.ranks.size(), compiled.layout().ranks());
  StragglerReport report;
  std::map<RankId, std::vector<Outlier<RankId>>> seen;
  const std::vector<Sample<RankId>> kernels = with_noise(kernel_samples(compiled, recording, programs), measurement);
  std::set<std::pair<RankId, std::string>> slow_phases;
  for (Outlier<RankId>& one : outliers(kernels, measurement)) {
    // A slow pass of a phase that is slow as a whole is no further information.
    if (one.level == StragglerLevel::phase) slow_phases.emplace(one.subject, one.activity);
    if (one.level == StragglerLevel::pass &&
        slow_phases.contains({one.subject, one.activity.substr(0, one.activity.find(','))}))
      continue;
    seen[one.subject].push_back(std::move(one));
  }
  std::vector<double> seconds_of_rank(compiled.layout().ranks(), 0);
  for (const Sample<RankId>& one : kernels)
    if (one.level == StragglerLevel::phase) seconds_of_rank[one.subject.value()] += one.seconds;
  const auto [minimum, maximum] = std::minmax_element(seconds_of_rank.begin(), seconds_of_rank.end());
  report.min_s = *minimum, report.min_rank = RankId(minimum - seconds_of_rank.begin());
  report.max_s = *maximum, report.max_rank = RankId(maximum - seconds_of_rank.begin());

  const std::vector<Sample<GroupId>> communication =
      with_noise(communication_samples(compiled, recording, programs), measurement);
  std::map<std::string, std::vector<GroupId>> by_peers;  // communicators that should take equally long
  for (const Sample<GroupId>& one : communication) by_peers[one.peers].push_back(one.subject);
  std::vector<Outlier<GroupId>> suspects = outliers(communication, measurement);
  for (const auto& [peers, groups] : by_peers)
    if (groups.size() < kMinPeers)  // there are no peers to compare with
      for (const GroupId group : groups)
        suspects.push_back({group, StragglerLevel::communication, peers.substr(0, peers.find(':')), 0});
  PairProbes pair_probes(compiled);
  std::map<std::vector<RankId>, std::vector<Outlier<RankId>>> probed;
  for (const Outlier<GroupId>& slow : suspects) {
    const std::vector<RankId>& ranks = compiled.layout().groups()[slow.subject].ranks;
    if (ranks.size() < kMinPeers) {
      if (slow.slower == 0) continue;
      report.unexplained.push_back(fmt::format("{} of ranks {} and {}", slow.activity, ranks[0], ranks[1]));
      continue;
    }
    const auto [known, is_new] = probed.try_emplace(ranks);
    if (is_new) known->second = outliers(with_noise(pair_probes.samples_among(ranks), measurement), measurement);
    for (const Outlier<RankId>& one : known->second) {
      if (slow.slower > 0) seen[one.subject].push_back({one.subject, slow.level, slow.activity, slow.slower});
      if (is_new) seen[one.subject].push_back(one);
    }
    if (known->second.empty() && slow.slower > 0)
      report.unexplained.push_back(fmt::format("{} of ranks {} to {}", slow.activity, ranks.front(), ranks.back()));
  }

  std::map<std::string, std::set<RankId>> peers;
  for (const Sample<RankId>& one : kernels)
    if (one.level == StragglerLevel::phase) peers[one.peers].insert(one.subject);
  for (const auto& [name, ranks] : peers)
    if (ranks.size() < kMinPeers)
      report.not_compared.push_back(fmt::format("kernels of {}: {} ranks", name, ranks.size()));
  for (auto& [rank, outlying] : seen) {
    std::stable_sort(outlying.begin(), outlying.end(),
                     [](const Outlier<RankId>& a, const Outlier<RankId>& b) { return a.slower > b.slower; });
    std::stable_sort(outlying.begin(), outlying.end(),
                     [](const Outlier<RankId>& a, const Outlier<RankId>& b) { return a.level < b.level; });
    const core::step::GpuId gpu = compiled.layout().gpu_of(rank);
    report.found.push_back({rank, gpu, gpu.value() / compiled.configuration().gpus_per_node, outlying});
  }
  return report;
}

}  // namespace manyworlds::experiments
