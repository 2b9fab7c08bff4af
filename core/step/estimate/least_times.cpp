#include "core/step/estimate/least_times.hpp"

#include <algorithm>

namespace manyworlds::core::step {

using collective::Kind;
using collective::Protocol;
using workload::Role;

namespace {

/// Returns what the library of a configuration takes at least, by what it chooses over ideal paths.
Time least(const Configuration& configuration, const Links& links, std::int64_t members, std::int64_t stride, Role role,
           Kind kind, std::int64_t bytes) {
  const auto [shape, communicator] = strided_collective(configuration, links, members, stride, role, kind, bytes, {});
  return collective::least_ps(shape, communicator);
}

}  // namespace

Time LeastTimes::of(Role role, Kind kind, std::int64_t bytes, const collective::Split& split) {
  if (bytes == 0 || !split.even()) return 0;
  const auto [known, is_new] = known_.try_emplace({role, kind, bytes}, Time{0});
  if (is_new) known->second = compute(role, kind, bytes);
  return known->second;
}

Time LeastTimes::interfaces_ps(Role role, std::int64_t bytes) const {
  const Group group = group_of(role);
  const std::int64_t per_node = configuration_.gpus_per_node;
  const std::int64_t of_stage = strategy_.tp * strategy_.cp * strategy_.dp;
  const std::int64_t local = std::clamp<std::int64_t>(per_node / group.stride, 1, group.members);
  const std::int64_t nodes = group.members / local;
  const bool aligned = of_stage % per_node == 0 && group.members % local == 0 &&
                       (group.stride >= per_node || per_node % group.stride == 0);
  if (!aligned || nodes < 2) return 0;
  const std::int64_t through_each = bytes / group.members * (nodes - 1);
  return static_cast<Time>(static_cast<double>(through_each) * 8e12 /
                           static_cast<double>(links_.inter_node.bits_per_second));
}

/// Returns the ranks of a communicator. Those whose ranks are not at equal distances count as one rank.
LeastTimes::Group LeastTimes::group_of(Role role) const {
  const workload::Strategy& s = strategy_;
  const std::int64_t expert = s.ep * s.etp;
  switch (role) {
    case Role::tensor:
      return {s.tp, 1};
    case Role::expert_tensor:
      return {s.etp, 1};
    case Role::expert:
      return {s.ep, s.etp};
    default:
      break;
  }
  if (configuration_.placement != Placement::tp_dp_pp || s.stage_copies() > 1) return {};
  switch (role) {
    case Role::context:
      return {s.cp, s.tp};
    case Role::send_context:
      return {2, s.tp};
    case Role::send_forward:
      return {2, s.tp * s.cp * s.dp};
    case Role::data:
      return {s.shards(), s.tp};
    case Role::expert_data:
      return {s.expert_shards(), expert};
    case Role::data_inter_group:
      return {s.zero_groups(), s.tp * s.shards()};
    case Role::expert_data_inter_group:
      return {s.zero_groups(), expert * s.expert_shards()};
    default:
      return {};
  }
}

Time LeastTimes::compute(Role role, Kind kind, std::int64_t bytes) {
  const Group group = group_of(role);
  if (group.members < 2) return 0;
  // An exchange counts pairs inside nodes, of which ranks that fill no whole nodes have more than its formula knows.
  const std::int64_t local = std::clamp<std::int64_t>(configuration_.gpus_per_node / group.stride, 1, group.members);
  if (kind == Kind::all_to_all && group.members % local != 0) return 0;
  const collective::Library& library = configuration_.library_of(role);
  if (library.tuner_rules.empty()) return compute(configuration_, group, role, kind, bytes);
  // Which rules match depends on the nodes of the real group: it may be each of them, or none.
  Configuration one = configuration_;
  one.group_libraries.clear();
  one.collectives = library;
  one.collectives.tuner_rules.clear();
  Time result = compute(one, group, role, kind, bytes);
  for (collective::TunerRule rule : library.tuner_rules) {
    rule.nodes = 0;
    one.collectives.tuner_rules = {rule};
    result = std::min(result, least(one, links_, group.members, group.stride, role, kind, bytes));
  }
  return result;
}

/// The same for a library without rules.
Time LeastTimes::compute(const Configuration& configuration, const Group& group, Role role, Kind kind,
                         std::int64_t bytes) const {
  const collective::Library& library = configuration.library_of(role);
  const std::vector<collective::Algorithm> candidates = library.candidates(kind);
  const bool any_protocol = library.protocol == Protocol::automatic;
  if (library.protocol == Protocol::calibrated || (candidates.size() == 1 && !any_protocol))
    return least(configuration, links_, group.members, group.stride, role, kind, bytes);
  // What is chosen by predicted times depends on the paths that the group really has.
  Time result = kNever;
  Configuration one = configuration;  // whose library has one algorithm and protocol of those that it may choose
  one.group_libraries.clear();
  for (const collective::Algorithm algorithm : candidates)
    for (const Protocol protocol :
         any_protocol ? std::vector{Protocol::ll, Protocol::ll128, Protocol::simple} : std::vector{library.protocol}) {
      collective::Library& chosen = one.collectives;
      chosen.all_reduce = chosen.all_gather = chosen.reduce_scatter = chosen.all_to_all = chosen.broadcast =
          chosen.reduce = algorithm;
      chosen.protocol = protocol;
      result = std::min(result, least(one, links_, group.members, group.stride, role, kind, bytes));
    }
  return result;
}

void Chain::add(const workload::WorkItem& work) {
  if (const workload::KernelWork* kernel = work.kernel()) {
    now_ += kernel->cost.ps;
    for (Stream& stream : streams_) stream.kernels += kernel->cost.ps;
  } else if (const workload::CollectiveStart* collective = work.start()) {
    start(*collective);
  } else {
    join(std::get<workload::Join>(work.action));
  }
}

void Chain::start(const workload::CollectiveStart& collective) {
  Stream& stream = streams_.at(stream_of(collective.role));
  if (stream.open++ == 0) stream.begin = now_, stream.kernels = stream.lost = 0;
  const Time takes = least_.of(collective.role, collective.kind, collective.bytes, collective.split);
  const Time lost = interference_.lost_beside(collective.role, collective.kind, takes);
  stream.lost += lost - lost / kRoundedShare;
  stream.free = std::max(now_, stream.free) + takes;
  started_.emplace_back(collective.role, stream.free);
  exchanges_ |= collective.role == Role::expert;
}

void Chain::join(const workload::Join& join) {
  if (is_interleaved_ && !join.role && exchanges_) {
    exchanges_ = false;
    started_.clear();
    streams_ = {};
    return;
  }
  now_ = after_join(now_, join, started_);
  if (is_interleaved_) return;
  std::array<std::size_t, 3> open{};
  for (const auto& [role, end] : started_) ++open.at(stream_of(role));
  for (std::size_t i = 0; i < open.size(); ++i) {
    Stream& stream = streams_.at(i);
    if (std::exchange(stream.open, open.at(i)) > 0 && stream.open == 0)
      now_ = std::max(now_, stream.begin + stream.kernels + stream.lost);
  }
}

}  // namespace manyworlds::core::step
