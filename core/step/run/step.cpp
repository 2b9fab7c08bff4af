#include "core/step/run/step.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/workload/build/build_program.hpp"

namespace manyworlds::core::step {
namespace {

/// By player.
std::vector<std::uint32_t> classes(const World& world) {
  std::vector<std::uint32_t> of;
  for (const std::uint32_t rank : world.likeness().first) of.push_back(world.layout().class_of(rank));
  return of;
}

/// None under `fidelity: analytic`, which is to stay a lower bound: a collective that comes earlier may slow down more.
stream::Interference interference(const Configuration& of, const compute::Gpu& gpu) {
  using workload::CommunicationEngine;
  if (of.transport.fidelity == network::Fidelity::analytic) return {};
  const workload::Stack& stack = of.strategy.stack;
  if (stack.communication_engine == CommunicationEngine::calibrated)
    return round_half_up(gpu.communication_slowdown * 1e6);
  stream::Interference made;
  made.units = gpu.compute_units;
  made.to_add = stack.communication_sms;
  made.to_move = stack.communication_engine == CommunicationEngine::sm ? stack.communication_sms : 0;
  return made;
}

std::vector<stream::Interference> interferences(const World& world) {
  std::vector<stream::Interference> by_class;
  for (const workload::RankClass& of : world.layout().classes())
    by_class.push_back(interference(world.configuration(), world.configuration().gpu_of(of)));
  return by_class;
}

/// An account, and how many ranks have it.
using Accounts = std::vector<std::pair<const stream::Account*, std::uint32_t>>;

/// Of these ranks; times of a rank's accounts add up to the step.
Breakdown mean_of(const Accounts& accounts) {
  std::array<Wide, workload::kBookings> busy{};
  std::array<Wide, stream::kWaits> waited{};
  std::int64_t ranks = 0;
  for (const auto& [account, times] : accounts) {
    ranks += times;
    for (std::size_t i = 0; i < busy.size(); ++i) busy[i] += Wide{account->busy[i]} * times;
    for (std::size_t i = 0; i < waited.size(); ++i) waited[i] += Wide{account->waited[i]} * times;
  }
  const auto mean = [&](Wide sum) { return static_cast<double>(sum) / static_cast<double>(ranks) * 1e-12; };
  using stream::Wait;
  using workload::Booking;
  const auto of = [&](Booking booking) { return mean(busy[static_cast<std::size_t>(booking)]); };
  const auto of_wait = [&](Wait wait) { return mean(waited[static_cast<std::size_t>(wait)]); };
  return {of(Booking::forward),      of(Booking::backward),     of(Booking::recompute),
          of(Booking::optimizer),    of(Booking::host),         of_wait(Wait::slowed),
          of_wait(Wait::exposed_tp), of_wait(Wait::exposed_dp), of_wait(Wait::exposed_pp),
          of_wait(Wait::exposed_cp), of_wait(Wait::exposed_ep), of_wait(Wait::exposed_offload),
          of_wait(Wait::bubble),     of_wait(Wait::stall)};
}

}  // namespace

Step::Step(const World& world, Episodes& episodes, const IsolatedResults& results, Recording* recording,
           std::atomic<Time>* reached)
    : world_(world),
      timeline_(world.programs(), classes(world), interferences(world), world.configuration().tick_ps()),
      held_(stream::Clock(world.configuration().tick_ps())),
      entered_(world.instances(), 0),
      began_(world.instances(), 0),
      link_busy_(world.layout().graph().links.size(), 0),
      recording_(recording),
      reached_(reached) {
  if (world.configuration().strategy.stack.post_validation) timeline_.begin_apart();
  if (recording_ != nullptr) {
    MANYWORLDS_CHECK(world.has_all_ranks(), "a rank is to be recorded that another stands for");
    std::vector<std::uint32_t> ranks;
    for (const Recording::Rank& one : recording_->ranks) ranks.push_back(one.rank);
    timeline_.record(ranks);
    recording_->courses.assign(world.instances(), {});
  }
  if (world.configuration().composition == Composition::coupled) {
    network_ = make_coupled(world);
  } else {
    const bool analytic = world.transport().fidelity == network::Fidelity::analytic;
    auto composed = analytic ? make_analytic(world, results) : make_composed(world, episodes, results);
    composed_ = composed.get();
    network_ = std::move(composed);
  }
}

void Step::explain_standstill() const {
  if (const auto waits = network_->standstill(); !waits.empty())
    network::throw_pause_deadlock(world_.layout().graph(), waits);
  throw InternalError(timeline_.deadlock());
}

std::variant<StepResult, Needs> Step::advance() {
  if (!started_) {
    started_ = true;
    timeline_.begin(entries_);
    enter(0);
  }
  while (!timeline_.finished() && within_limit()) {
    if (auto missing = network_->missing(); !missing.empty()) return Needs{std::move(missing)};
    const Time tick = std::min(timeline_.next_kernel(), held_.due());
    const Time exit = network_->next(tick);
    if (std::min(tick, exit) == kNever) explain_standstill();
    if (exit <= tick) held_.take(*network_, exit);
    const Time at = std::min(tick, held_.due());
    if (exit < at) continue;  // the network has not come to the tick yet
    if (reached_ != nullptr) reached_->store(at, std::memory_order_relaxed);
    const std::vector<Member> exits = held_.noticed(at);
    if (recording_ != nullptr)
      for (const Member& member : exits) recording_->courses[member.instance].ended = at;
    for (const Member& member : exits) {
      const auto [player, op] = world_.operation_of(member.instance, member.member);
      timeline_.complete(player, op, began_[member.instance]);
    }
    timeline_.advance(at, entries_);
    enter(at);
  }
  return finish();
}

/// Hands what the timeline entered at `at` to the network.
void Step::enter(Time at) {
  if (entries_.empty()) return;
  if (recording_ != nullptr) record_entries(at);
  entering_.clear();
  for (const stream::Entry& entry : entries_) {
    const auto [instance, member] = world_.entered_by(entry.rank, entry.op);
    entering_.push_back({instance, member});
    const Use& use = world_.use_of(instance);
    if (entered_[instance]++ == 0) {
      link_hops_ += use.link_hops;
      events_ += use.transfers;
      for (const auto& [link, busy] : use.busy) link_busy_[link] += busy;
    }
    began_[instance] = at;
  }
  entries_.clear();
  std::sort(entering_.begin(), entering_.end());
  network_->enter(at, entering_);
}

void Step::record_entries(Time at) {
  for (const stream::Entry& entry : entries_) {
    Course& course = recording_->courses[world_.entered_by(entry.rank, entry.op).first];
    if (course.first == kNever)
      course.first = at;
    else if (course.second == kNever)
      course.second = at;
    course.last = at;
  }
}

bool Step::within_limit() {
  const Limit& limit = world_.configuration().limit;
  too_large_ = link_hops_ > limit.link_hops || events_ > limit.events;
  return !too_large_;
}

StepResult Step::finish() {
  StepResult result;
  result.too_large = too_large_;
  if (too_large_) return result;
  timeline_.settle();
  result.step_ps = timeline_.lasts();
  if (composed_ != nullptr) composed_->close(timeline_.end());
  const network::Counters counters = network_->counters();
  const bool packets = world_.configuration().transport.fidelity == network::Fidelity::packet;
  result.link_hops = packets ? link_hops_ : 0;
  result.ecn_marks = counters.ecn_marks;
  result.pauses = counters.pauses;
  MANYWORLDS_CHECK(counters.link_hops == link_hops_, "{} link-hops took place, {} were due", counters.link_hops,
                   link_hops_);
  const Time busiest = link_busy_.empty() ? 0 : *std::max_element(link_busy_.begin(), link_busy_.end());
  result.busiest_link_share = static_cast<double>(busiest) / static_cast<double>(std::max<Time>(1, result.step_ps));

  const std::vector<stream::Account> accounts = timeline_.accounts();
  const Configuration& of = world_.configuration();
  Accounts all;
  std::vector<Accounts> by_kind(of.is_mixed() ? 1 + of.other_gpus.size() : 0);
  for (std::uint32_t player = 0; player < accounts.size(); ++player) {
    const std::uint32_t rank = world_.likeness().first[player], times = world_.likeness().count[player];
    all.emplace_back(&accounts[player], times);
    if (!by_kind.empty()) by_kind[of.kind_of_gpu[world_.layout().gpu_of(rank)]].emplace_back(&accounts[player], times);
  }
  result.breakdown = mean_of(all);
  for (const auto& some : by_kind) result.by_kind.push_back(some.empty() ? Breakdown{} : mean_of(some));
  if (recording_ != nullptr) finish_recording();
  result.kernels = kernels();
  if (composed_ != nullptr) {
    for (const auto& [key, used] : composed_->isolated_used())
      result.collectives.push_back({key, used.parameters, used.lasts, used.times});
    for (const auto& [key, used] : composed_->episodes_used())
      result.episodes.push_back({key, used.parameters, used.lasts, used.times});
  }
  return result;
}

void Step::finish_recording() {
  recording_->end = timeline_.end();
  recording_->records = timeline_.records();
  for (Recording::Rank& one : recording_->ranks) {
    one.record = timeline_.record_of(one.rank);
    one.alike = static_cast<std::uint32_t>(timeline_.like(one.rank).size());
  }
}

std::vector<Used> Step::kernels() const {
  const Configuration& of = world_.configuration();
  const std::vector<workload::RankClass>& classes = world_.layout().classes();
  std::map<sharing::Key, Used> used;
  for (std::uint32_t number = 0; number < classes.size(); ++number)
    for (const workload::KernelUse& use :
         workload::kernels_used(of.model, of.strategy, of.gpu_of(classes[number]), classes[number])) {
      const compute::Kernel& k = use.kernel;
      sharing::Writer writer("kernel");
      writer.text(k.name)
          .integer(static_cast<std::int64_t>(k.kernel_class))
          .integer(static_cast<std::int64_t>(k.dtype));
      for (const std::int64_t value : {k.m, k.n, k.k, k.batch, k.bytes, k.flops}) writer.integer(value);
      if (k.shares.tokens > 0)
        for (const std::int64_t value :
             {k.shares.tokens, k.shares.most, k.shares.tiles_64, k.shares.tiles_128, k.shares.tiles_256})
          writer.integer(value);
      const compute::Gpu& gpu = of.gpu_of(classes[number]);
      write_options(writer, compute::gpu_options().read(gpu));
      if (gpu.pace != 1) writer.text("pace").real(gpu.pace);
      const bool measured = use.level != compute::Level::model;
      if (measured) writer.integer(static_cast<std::int64_t>(use.level)).integer(use.cost_ps);
      Used& slot = used[writer.finish()];
      slot.parameters = fmt::format("{} {}x{}x{} batch {} {} B", k.name, k.m, k.n, k.k, k.batch, k.bytes);
      if (k.shares.tokens > 0)
        slot.parameters += fmt::format(", {} tokens, at most {}", k.shares.tokens, k.shares.most);
      if (measured)
        slot.parameters += fmt::format(", by a measured {}", compute::kLevelNames[static_cast<std::size_t>(use.level)]);
      slot.result_ps = use.cost_ps;
      slot.times += use.times * world_.layout().class_size(number);
    }
  std::vector<Used> sorted;
  for (auto& [key, use] : used) {
    use.key = key;
    sorted.push_back(std::move(use));
  }
  return sorted;
}

}  // namespace manyworlds::core::step
