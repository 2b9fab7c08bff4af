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

namespace manyworlds::experiments {
namespace {

using core::Time;
using core::network::Router;
using core::step::Recording;
using core::step::World;
using core::workload::Booking;
using core::workload::Op;

constexpr std::size_t kLeastPeers = 3;
constexpr double kOfNormal = 1.4826;      // the standard deviation of a normal distribution over its MAD
constexpr double kLeastDeviation = 0.01;  // of the median: what a clock and a scheduler are off by anyway
constexpr double kSpikes = 0.01, kSpike = 1.5;
constexpr std::int64_t kProbeBytes = 4 << 20;
constexpr std::size_t kPartners = 8;  // of each sort that a rank sends to

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// Uniform in [0, 1), of a counter.
double uniform(std::uint64_t& state) {
  const double drawn = core::unit_interval(core::splitmix64(state));
  state += core::kSplitMixIncrement;
  return drawn;
}

/// Nearly normal: the sum of twelve.
double normal(std::uint64_t& state) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform(state);
  return sum;
}

/// A class of ranks that a healthy cluster runs alike: machines that differ in pace alone count as one kind.
std::string peers_of(const World& world, const core::workload::RankClass& of) {
  const core::step::Configuration& made = world.configuration();
  std::uint32_t kind = 0;
  const auto& figures = core::compute::gpu_options();
  const auto is_like = [&](std::uint32_t other) {
    return figures.read(made.gpu_of({0, 0, other})) == figures.read(made.gpu_of(of));
  };
  while (kind < of.machine && !is_like(kind)) ++kind;
  return fmt::format("stage {}, expert rank {}, machine {}", of.stage, of.expert_rank, kind);
}

const char* phase_of(Booking booking) {
  if (booking == Booking::forward) return "forward";
  return booking == Booking::optimizer ? "optimizer" : "backward";  // what is computed again belongs to it
}

/// From when the last member entered to when the last one had it, added up by communicator and kind of collective.
std::vector<Sample> communication_samples(const World& world, const Recording& recording) {
  std::map<std::pair<std::uint32_t, std::string>, Time> lasted;
  for (std::uint32_t instance = 0; instance < world.instances(); ++instance) {
    const core::step::Course& course = recording.courses.at(instance);
    const std::uint32_t group = world.group_of(instance);
    const auto role = static_cast<std::size_t>(world.layout().groups()[group].role);
    const char* kind = core::collective::name_of(world.use_of(instance).shape.kind);
    lasted[{group, fmt::format("{} {}", core::workload::kRoleNames.at(role), kind)}] += course.ended - course.last;
  }
  std::vector<Sample> samples;
  for (const auto& [of, time] : lasted) {
    const core::step::Group& group = world.layout().groups()[of.first];
    const auto& first = world.layout().classes()[world.layout().class_of(group.ranks[0])];
    samples.push_back({of.first, StragglerLevel::communication, of.second,
                       fmt::format("{}: {}, {} members, {} in a node", of.second, peers_of(world, first),
                                   group.ranks.size(), group.per_node),
                       core::seconds(time)});
  }
  return samples;
}

/// Sends between pairs of ranks, each alone in the network.
class Probes {
 public:
  explicit Probes(const World& world)
      : world_(world),
        router_(world.configuration().graph, world.transport().routing,
                static_cast<std::uint64_t>(world.transport().seed)) {}

  /// Of every member with some of the others, inside its node and beyond apart: the median of those it takes part in.
  std::vector<Sample> among(const std::vector<std::uint32_t>& ranks) {
    std::vector<Sample> samples;
    const auto node = [&](std::uint32_t rank) {
      return world_.layout().gpu_of(rank) / world_.configuration().gpus_per_node;
    };
    for (const bool inside : {true, false})
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        std::vector<double> times;
        for (std::size_t step = 1; step < ranks.size() && times.size() < 2 * kPartners; ++step) {
          const std::uint32_t other = ranks[(i + step) % ranks.size()];
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
  double seconds(std::uint32_t from, std::uint32_t to) {
    const auto [known, is_new] = known_.try_emplace({from, to}, 0);
    if (!is_new) return known->second;
    const auto flows = core::network::make_flows(world_.transport());
    core::network::Route route;
    for (const std::uint32_t link :
         router_.route(world_.layout().gpu_of(from), world_.layout().gpu_of(to), std::uint64_t{from} << 32 | to))
      route.push_back(flows->add_link(core::network::spec_of(router_.graph(), link)));
    flows->set_ranks({0});
    flows->start({0, 0}, flows->add_route(route), kProbeBytes);
    std::vector<core::network::FlowId> finished;
    flows->advance(core::kNever, finished);
    return known->second = core::seconds(flows->now());
  }

  const World& world_;
  Router router_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> known_;
};

}  // namespace

std::vector<Outlier> outliers(const std::vector<Sample>& samples, const Measuring& measuring) {
  std::map<std::string, std::vector<double>> of_peers;
  for (const Sample& one : samples) of_peers[one.what + "|" + one.peers].push_back(one.seconds);
  std::vector<Outlier> found;
  for (const Sample& one : samples) {
    const std::vector<double>& times = of_peers.at(one.what + "|" + one.peers);
    if (times.size() < kLeastPeers) continue;
    const double middle = median(times);
    std::vector<double> off;
    for (const double time : times) off.push_back(std::abs(time - middle));
    const double deviation = std::max(kOfNormal * median(off), kLeastDeviation * middle);
    const double more = one.seconds - middle;
    if (more > measuring.slower * middle && more > measuring.deviations * deviation)
      found.push_back({one.who, one.level, one.what, more / middle});
  }
  return found;
}

std::vector<Sample> measured(std::vector<Sample> samples, const Measuring& measuring) {
  auto state = static_cast<std::uint64_t>(measuring.seed) * 0xd1342543de82ef95 + 1;
  for (Sample& one : samples) {
    std::vector<double> steps;
    for (std::int64_t step = 0; step < measuring.steps; ++step) {
      const double error = 1 + measuring.noise * normal(state);
      steps.push_back(one.seconds * std::max(0.0, error) * (uniform(state) < kSpikes ? kSpike : 1));
    }
    one.seconds = median(steps);
  }
  return samples;
}

std::vector<Sample> kernel_samples(const World& world, const Recording& recording) {
  std::vector<Sample> samples;
  for (const Recording::Rank& rank : recording.ranks) {
    const std::uint32_t number = world.layout().class_of(rank.rank);
    const core::workload::Program& program = world.programs()[number];
    const std::string peers = peers_of(world, world.layout().classes()[number]);
    std::map<std::string, Time> phases, passes;
    for (const core::stream::Span& span : recording.records.at(rank.record).spans) {
      const Op& op = program.ops[span.op];
      if (op.is_collective || op.booking == Booking::host) continue;
      const std::string phase = phase_of(op.booking);
      phases[phase] += span.end - span.begin;
      if (const core::workload::Slot* pass = program.pass_of(op))
        passes[fmt::format("{}, chunk {}", phase, pass->chunk)] += span.end - span.begin;
    }
    for (const auto& [phase, time] : phases)
      samples.push_back({rank.rank, StragglerLevel::phase, phase, peers, core::seconds(time)});
    for (const auto& [pass, time] : passes)
      samples.push_back({rank.rank, StragglerLevel::pass, pass, peers, core::seconds(time)});
  }
  return samples;
}

StragglerReport find_stragglers(const World& world, const Recording& recording, const Measuring& measuring) {
  MANYWORLDS_CHECK(recording.ranks.size() == world.layout().ranks(), "{} of {} ranks are recorded",
                   recording.ranks.size(), world.layout().ranks());
  StragglerReport report;
  std::map<std::uint32_t, std::vector<Outlier>> seen;
  const std::vector<Sample> kernels = measured(kernel_samples(world, recording), measuring);
  std::set<std::pair<std::uint32_t, std::string>> slow_phases;
  for (Outlier& one : outliers(kernels, measuring)) {
    // A pass of a phase that is slow as a whole tells nothing more.
    if (one.level == StragglerLevel::phase) slow_phases.emplace(one.who, one.what);
    if (one.level == StragglerLevel::pass && slow_phases.contains({one.who, one.what.substr(0, one.what.find(','))}))
      continue;
    seen[one.who].push_back(std::move(one));
  }
  std::vector<double> of_rank(world.layout().ranks(), 0);
  for (const Sample& one : kernels)
    if (one.level == StragglerLevel::phase) of_rank[one.who] += one.seconds;
  const auto [least, most] = std::minmax_element(of_rank.begin(), of_rank.end());
  report.least_s = *least, report.least_rank = static_cast<std::uint32_t>(least - of_rank.begin());
  report.most_s = *most, report.most_rank = static_cast<std::uint32_t>(most - of_rank.begin());

  const std::vector<Sample> communication = measured(communication_samples(world, recording), measuring);
  std::map<std::string, std::vector<std::uint32_t>> by_peers;  // communicators that are to take as long
  for (const Sample& one : communication) by_peers[one.peers].push_back(one.who);
  std::vector<Outlier> suspects = outliers(communication, measuring);
  for (const auto& [peers, groups] : by_peers)
    if (groups.size() < kLeastPeers)  // nobody to compare them with
      for (const std::uint32_t group : groups)
        suspects.push_back({group, StragglerLevel::communication, peers.substr(0, peers.find(':')), 0});
  Probes probes(world);
  std::map<std::vector<std::uint32_t>, std::vector<Outlier>> probed;
  for (const Outlier& slow : suspects) {
    const std::vector<std::uint32_t>& ranks = world.layout().groups()[slow.who].ranks;
    if (ranks.size() < kLeastPeers) {
      if (slow.slower == 0) continue;
      report.unexplained.push_back(fmt::format("{} of ranks {} and {}", slow.what, ranks[0], ranks[1]));
      continue;
    }
    const auto [known, is_new] = probed.try_emplace(ranks);
    if (is_new) known->second = outliers(measured(probes.among(ranks), measuring), measuring);
    for (const Outlier& one : known->second) {
      if (slow.slower > 0) seen[one.who].push_back({one.who, slow.level, slow.what, slow.slower});
      if (is_new) seen[one.who].push_back(one);
    }
    if (known->second.empty() && slow.slower > 0)
      report.unexplained.push_back(fmt::format("{} of ranks {} to {}", slow.what, ranks.front(), ranks.back()));
  }

  std::map<std::string, std::size_t> peers;
  for (const Sample& one : kernels)
    if (one.level == StragglerLevel::phase && one.what == "forward") ++peers[one.peers];
  for (const auto& [name, count] : peers)
    if (count < kLeastPeers) report.alone.push_back(fmt::format("kernels of {}: {} ranks", name, count));
  for (auto& [rank, outlying] : seen) {
    std::stable_sort(outlying.begin(), outlying.end(),
                     [](const Outlier& a, const Outlier& b) { return a.slower > b.slower; });
    std::stable_sort(outlying.begin(), outlying.end(),
                     [](const Outlier& a, const Outlier& b) { return a.level < b.level; });
    const std::uint32_t gpu = world.layout().gpu_of(rank);
    report.found.push_back({rank, gpu, gpu / world.configuration().gpus_per_node, outlying});
  }
  return report;
}

}  // namespace manyworlds::experiments
