#include "core/step/run/step.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/network/transports/registry.hpp"
#include "core/step/layout/interference.hpp"
#include "core/step/layout/keys.hpp"
#include "core/step/layout/step_programs.hpp"
#include "core/workload/build/build_program.hpp"

namespace manyworlds::core::step {
namespace {

/// Returns the class of each representative.
std::vector<std::uint32_t> classes(const CompiledStep& compiled) {
  std::vector<std::uint32_t> classes;
  for (const RankId rank : compiled.symmetry().representative_rank) classes.push_back(compiled.layout().class_of(rank));
  return classes;
}

std::vector<stream::Interference> interferences(const CompiledStep& compiled) {
  std::vector<stream::Interference> by_class;
  for (const workload::RankClass& rank_class : compiled.layout().classes())
    by_class.push_back(interference_of(compiled.configuration(), compiled.configuration().gpu_of(rank_class)));
  return by_class;
}

/// Accounts, each with the number of ranks that have it.
using Accounts = std::vector<std::pair<const stream::Account*, std::uint32_t>>;

/// Returns the mean over ranks. The times of each account add up to the step time.
Breakdown mean_of(const Accounts& accounts) {
  workload::ByPart<Int128> sums;
  std::int64_t ranks = 0;
  for (const auto& [account, times] : accounts) {
    ranks += times;
    for (const workload::StepPartInfo& part : workload::kStepParts)
      sums[part.part] += Int128{(*account)[part.part]} * times;
  }
  Breakdown mean;
  for (const workload::StepPartInfo& part : workload::kStepParts)
    mean[part.part] = static_cast<double>(sums[part.part]) / static_cast<double>(ranks) * 1e-12;
  return mean;
}

std::unique_ptr<KeyedNetwork> make_keyed(const CompiledStep& compiled, EpisodeCache& episodes,
                                         TransportEfficiency& efficiency, const IsolatedResults& results) {
  switch (compiled.transport().fidelity) {
    case network::Fidelity::analytic:
      return make_analytic(compiled, results);
    case network::Fidelity::fluid:
      return make_fluid(compiled, results, efficiency);
    case network::Fidelity::packet:
      break;
  }
  return make_composed(compiled, episodes, results);
}

}  // namespace

Step::Step(const CompiledStep& compiled, EpisodeCache& episodes, TransportEfficiency& efficiency,
           const IsolatedResults& results, Recording* recording, std::atomic<Time>* reached)
    : compiled_(compiled),
      timeline_(compiled.programs(), classes(compiled), interferences(compiled), compiled.configuration().tick_ps()),
      completions_(stream::Clock(compiled.configuration().tick_ps())),
      members_entered_(compiled.instances(), 0),
      last_entry_(compiled.instances(), 0),
      link_busy_(compiled.link_numbers(), 0),
      entered_whole_(compiled.collective_ops().size(), 0),
      recording_(recording),
      reached_(reached) {
  if (!are_synchronised(compiled.configuration())) timeline_.begin_unsynchronised();
  if (recording_ != nullptr) {
    MANYWORLDS_CHECK(compiled.has_all_ranks(), "a rank is to be recorded that another stands for");
    std::vector<RepresentativeId> ranks;
    for (const Recording::Rank& one : recording_->ranks)
      ranks.push_back(compiled.symmetry().representative_of[one.rank]);
    timeline_.record(ranks);
    recording_->intervals.assign(compiled.instances(), {});
  }
  if (compiled.configuration().composition == Composition::coupled) {
    network_ = make_coupled(compiled);
  } else {
    auto composed = make_keyed(compiled, episodes, efficiency, results);
    keyed_network_ = composed.get();
    network_ = std::move(composed);
  }
}

Step::Step(const Step& other, Copy)
    : compiled_(other.compiled_),
      timeline_(other.timeline_),
      completions_(other.completions_),
      members_entered_(other.members_entered_),
      last_entry_(other.last_entry_),
      link_busy_(other.link_busy_),
      entered_whole_(other.entered_whole_),
      link_hops_(other.link_hops_),
      entries_so_far_(other.entries_so_far_),
      recording_(nullptr),
      reached_(nullptr),
      started_(other.started_) {
  MANYWORLDS_CHECK(other.entries_.empty(), "a step is cloned with {} entries under way", other.entries_.size());
  auto network = other.fluid().clone();
  keyed_network_ = network.get();
  network_ = std::move(network);
}

Step::Step(const Step& other, const FluidNetwork::Fork& fork, TransportEfficiency& efficiency,
           const IsolatedResults& results, std::atomic<Time>* reached)
    : Step(other, Copy()) {
  reached_ = reached;
  fluid().go_on_with(efficiency, results, fork);
}

std::unique_ptr<Step> Step::clone() const {
  return std::unique_ptr<Step>(new Step(*this, Copy()));
}

void Step::watch(std::function<void(const FluidNetwork::Fork&)> at_fork) {
  fluid().watch(std::move(at_fork));
}

void Step::explain_deadlock() const {
  if (const auto waits = network_->deadlock(); !waits.empty())
    network::throw_pfc_deadlock(compiled_.layout().graph(), waits);
  if (compiled_.configuration().programs) throw InputError(timeline_.deadlock());
  throw InternalError(timeline_.deadlock());
}

std::variant<StepResult, MissingResults> Step::advance() {
  if (!started_) {
    started_ = true;
    timeline_.begin(entries_, whole_collectives());
    enter(0);
  }
  while (!timeline_.finished() && within_limit()) {
    if (auto missing = network_->missing(); !missing.empty()) return MissingResults{std::move(missing)};
    const Time tick = std::min(timeline_.next_end(), completions_.due());
    const Time exit = network_->next_exit(tick);
    if (std::min(tick, exit) == kNever) explain_deadlock();
    if (exit <= tick) completions_.take_exits(*network_, exit);
    const Time at = std::min(tick, completions_.due());
    if (exit < at) continue;  // the network has not reached the tick yet
    if (reached_ != nullptr && reached_->exchange(at, std::memory_order_relaxed) == kStopStep) throw StepStopped();
    const std::vector<Member> exits = completions_.take_due(at);
    if (recording_ != nullptr)
      for (const Member& member : exits) recording_->intervals[member.instance].ended = at;
    for (const Member& member : exits) {
      const auto [representative, op] = compiled_.operation_of(member);
      timeline_.complete(representative, op, last_entry_[member.instance]);
    }
    timeline_.advance(at, entries_, whole_collectives());
    enter(at);
  }
  return finish();
}

void Step::slow_contended(std::int64_t ppm) {
  fluid().slow_contended(ppm);
}

const std::vector<AskedEfficiencies::Answer>& Step::answers() const {
  return fluid().answers();
}

std::vector<ContendedCollective> Step::contended() const {
  const auto* fluid = dynamic_cast<const FluidNetwork*>(network_.get());
  return fluid != nullptr ? fluid->contended() : std::vector<ContendedCollective>();
}

stream::WholeCollectives* Step::whole_collectives() {
  return keyed_network_ != nullptr && recording_ == nullptr ? this : nullptr;
}

std::vector<stream::RepresentativeId> Step::leaders(const std::vector<stream::RepresentativeId>& ranks,
                                                    std::uint32_t op) const {
  std::vector<std::pair<InstanceId, stream::RepresentativeId>> entered;
  for (const stream::RepresentativeId rank : ranks)
    entered.emplace_back(compiled_.instance_entered_by(rank, op).instance, rank);
  std::sort(entered.begin(), entered.end());
  std::vector<stream::RepresentativeId> leaders;
  for (std::size_t first = 0, next = 0; first < entered.size(); first = next) {
    while (next < entered.size() && entered[next].first == entered[first].first) ++next;
    if (next - first != compiled_.collective_op_of(entered[first].first).dag->members) return {};
    leaders.push_back(entered[first].second);
  }
  return leaders;
}

Time Step::enter_whole(const std::vector<stream::RepresentativeId>& leaders, std::uint32_t op) {
  const auto operation_of = [&](stream::RepresentativeId leader) {
    return compiled_.collective_op_id(compiled_.instance_entered_by(leader, op).instance);
  };
  const Time lasts = keyed_network_->whole_duration(operation_of(leaders.front()));
  for (const stream::RepresentativeId leader : leaders)
    if (lasts == kNever || keyed_network_->whole_duration(operation_of(leader)) != lasts) return kNever;
  for (const stream::RepresentativeId leader : leaders) {
    const CollectiveOpId id = operation_of(leader);
    keyed_network_->enter_whole(id);
    entries_so_far_ += compiled_.collective_ops()[id].dag->members;
    link_hops_ += compiled_.collective_ops()[id].link_hops;
    ++entered_whole_[id];
  }
  return lasts;
}

std::uint64_t Step::order_of(stream::RepresentativeId rank, std::uint32_t op) const {
  return compiled_.instance_entered_by(rank, op).instance.value();
}

/// Passes the collectives that the timeline entered at `at` to the network.
void Step::enter(Time at) {
  if (entries_.empty()) return;
  entries_so_far_ += std::ssize(entries_);
  if (recording_ != nullptr) record_entries(at);
  entering_.clear();
  for (const stream::Entry& entry : entries_) {
    const InstanceId instance = entering_.emplace_back(compiled_.instance_entered_by(entry.rank, entry.op)).instance;
    const CollectiveOp& use = compiled_.collective_op_of(instance);
    if (members_entered_[instance]++ == 0) {
      link_hops_ += use.link_hops;
      for (const auto& [link, busy] : use.busy) link_busy_[link] += busy;
    }
    last_entry_[instance] = at;
  }
  entries_.clear();
  std::sort(entering_.begin(), entering_.end());
  network_->enter(at, entering_);
}

void Step::record_entries(Time at) {
  for (const stream::Entry& entry : entries_) {
    CollectiveInterval& interval = recording_->intervals[compiled_.instance_entered_by(entry.rank, entry.op).instance];
    if (interval.first == kNever)
      interval.first = at;
    else if (interval.second == kNever)
      interval.second = at;
    interval.last = at;
  }
}

bool Step::within_limit() {
  const Limit& limit = compiled_.configuration().limit;
  const Work work = network_->work();
  too_large_ = work.link_hops > limit.link_hops || work.transfers + entries_so_far_ > limit.events;
  return !too_large_;
}

StepResult Step::finish() {
  StepResult result;
  result.too_large = too_large_;
  if (too_large_) return result;
  timeline_.close_accounts();
  result.step_ps = timeline_.duration();
  if (keyed_network_ != nullptr) keyed_network_->release_drained(timeline_.end());
  const Configuration& configuration = compiled_.configuration();
  const network::Counters counters = network_->counters();
  const bool packets = configuration.transport.fidelity == network::Fidelity::packet;
  result.link_hops = packets ? link_hops_ : 0;
  result.ecn_marks = counters.ecn_marks;
  result.pauses = counters.pauses;
  result.packets_lost = counters.lost;
  if (counters.lost > 0) result.packets_sent_again = counters.retransmissions;
  if (packets && (network::needs_per_packet(compiled_.transport()) || configuration.has_failures()))
    result.link_hops = counters.link_hops;  // with acknowledgements that are packets, and what is sent twice
  else
    MANYWORLDS_CHECK(counters.link_hops == link_hops_, "{} link-hops took place, {} were due", counters.link_hops,
                     link_hops_);
  for (const CollectiveOpId id : entered_whole_.ids())
    for (const auto& [link, busy] : compiled_.collective_ops()[id].busy) link_busy_[link] += busy * entered_whole_[id];
  const Time busiest = link_busy_.empty() ? 0 : *std::max_element(link_busy_.begin(), link_busy_.end());
  result.busiest_link_share = static_cast<double>(busiest) / static_cast<double>(std::max<Time>(1, result.step_ps));

  const std::vector<stream::Account> accounts = timeline_.accounts();
  Accounts all;
  std::vector<Accounts> by_kind(configuration.is_mixed() ? 1 + configuration.other_gpus.size() : 0);
  for (const RepresentativeId representative : compiled_.symmetry().count.ids()) {
    const RankId rank = compiled_.symmetry().representative_rank[representative];
    const std::uint32_t times = compiled_.symmetry().count[representative];
    const stream::Account& account = accounts[representative.value()];
    all.emplace_back(&account, times);
    if (!by_kind.empty())
      by_kind[configuration.kind_of_gpu[compiled_.layout().gpu_of(rank).value()]].emplace_back(&account, times);
  }
  result.breakdown = mean_of(all);
  for (const auto& some : by_kind) result.by_kind.push_back(some.empty() ? Breakdown{} : mean_of(some));
  if (recording_ != nullptr) finish_recording();
  add_kernels(result);
  if (keyed_network_ != nullptr) {
    for (const auto& [key, used] : keyed_network_->isolated_usage())
      result.collectives.push_back({key, used.parameters, used.duration, used.times});
    for (const auto& [key, used] : keyed_network_->episode_usage())
      result.episodes.push_back({key, used.parameters, used.duration, used.times});
  }
  return result;
}

void Step::finish_recording() {
  recording_->end = timeline_.end();
  recording_->records = timeline_.records();
  for (Recording::Rank& one : recording_->ranks) {
    const RepresentativeId representative = compiled_.symmetry().representative_of[one.rank];
    one.record = timeline_.record_of(representative);
    one.lockstep_count = static_cast<std::uint32_t>(timeline_.lockstep_ranks(representative).size());
  }
}

namespace {

sharing::Key kernel_key(const workload::KernelUse& use, const compute::Gpu& gpu) {
  sharing::KeyWriter writer("kernel");
  write_kernel(writer, use.kernel);
  write_options(writer, compute::gpu_options().read(gpu));
  if (gpu.speed_factor != 1) writer.text("pace").real(gpu.speed_factor);
  if (use.level != compute::CostLevel::model) writer.integer(static_cast<std::int64_t>(use.level)).integer(use.cost_ps);
  return writer.finish();
}

std::string description_of(const workload::KernelUse& use) {
  const compute::Kernel& k = use.kernel;
  std::string text = fmt::format("{} {}x{}x{} batch {} {} B", k.name, k.m, k.n, k.k, k.batch, k.bytes);
  if (k.expert_tokens.tokens > 0)
    text += fmt::format(", {} tokens, at most {}", k.expert_tokens.tokens, k.expert_tokens.max_tokens);
  if (use.level != compute::CostLevel::model)
    text += fmt::format(", by a measured {}", compute::kCostLevelNames[static_cast<std::size_t>(use.level)]);
  return text;
}

/// Sums of kernel times, by what they are based on.
struct KernelSums {
  Int128 all = 0, measured = 0, interpolated = 0;
  std::array<Int128, compute::kKernelKinds> modelled{};

  void add(const workload::KernelUse& use, std::int64_t ranks) {
    const Int128 time = Int128{use.cost_ps} * use.times * ranks;
    all += time;
    if (use.basis == compute::TimeBasis::measured)
      measured += time;
    else if (use.basis == compute::TimeBasis::interpolated)
      interpolated += time;
    else
      modelled.at(compute::kind_of(use.kernel)) += time;
  }
  KernelShares shares() const {
    const auto share = [&](Int128 part) { return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0; };
    KernelShares result{share(measured), share(interpolated), {}};
    for (std::size_t kind = 0; kind < modelled.size(); ++kind) result.modelled[kind] = share(modelled[kind]);
    return result;
  }
};

}  // namespace

void Step::add_kernels(StepResult& result) const {
  const Configuration& configuration = compiled_.configuration();
  const std::vector<workload::RankClass>& classes = compiled_.layout().classes();
  std::map<sharing::Key, SubsimulationUse> used;
  KernelSums sums;
  for (std::uint32_t number = 0; number < classes.size(); ++number) {
    const compute::Gpu& gpu = configuration.gpu_of(classes[number]);
    const std::int64_t ranks = compiled_.layout().class_size(number);
    for (const workload::KernelUse& use : kernels_of(configuration, classes[number])) {
      SubsimulationUse& slot = used[kernel_key(use, gpu)];
      slot.parameters = description_of(use);
      slot.result_ps = use.cost_ps;
      slot.times += use.times * ranks;
      sums.add(use, ranks);
    }
  }
  for (auto& [key, use] : used) {
    use.key = key;
    result.kernels.push_back(std::move(use));
  }
  result.kernel_shares = sums.shares();
}

}  // namespace manyworlds::core::step
