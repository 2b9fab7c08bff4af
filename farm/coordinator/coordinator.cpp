#include "farm/coordinator/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "farm/protocol/job_signature.hpp"

namespace manyworlds::farm {

namespace {
constexpr std::size_t kChoice = 4;  // ready tasks for each worker
}  // namespace

Coordinator::Coordinator(Schedule& schedule, Transport& transport, const Job& job, CoordinatorOptions options)
    : schedule_(schedule),
      transport_(transport),
      job_(job),
      common_(job.common()),
      signature_(job_signature(common_)),
      options_(options) {}

void Coordinator::receive(int from, const Message& message, std::int64_t now_ms) {
  if (workers_.empty()) first_heard_ms_ = now_ms;
  Worker& worker = workers_[from];
  worker.number = from;
  worker.heard_ms = now_ms;
  for (const auto task : message.tasks)
    MANYWORLDS_CHECK(task < schedule_.total(), "worker {} speaks of task {} of {}", from, task, schedule_.total());
  switch (message.kind) {
    case MessageKind::hello:
      return on_hello(worker, message);
    case MessageKind::report:
      return on_report(worker, message, now_ms);
    case MessageKind::result:
      return on_result(worker, message, now_ms);
    case MessageKind::lack:
      return on_lack(worker, message);
    case MessageKind::unfit:
      worker.serves = false;
      worker.unfit = message.text;
      worker.out_of_memory = message.flag;
      idle_.erase(worker.number);
      return send(worker, {.kind = MessageKind::alive});
    default:
      MANYWORLDS_CHECK(false, "worker {} sent a message of kind {}", from, static_cast<int>(message.kind));
  }
}

void Coordinator::on_hello(Worker& worker, const Message& message) {
  being_told_.erase(worker.number);
  if (message.flag) return send(worker, {.kind = MessageKind::alive});
  // It may be a new life of a rank we knew: what the old one held or knew is gone. (A late hello of the same
  // life only makes us forget; its next report says again what it holds.)
  worker.knows.clear();
  while (!worker.leases.empty()) release(worker, worker.leases.begin()->first);
  // Every copy on its way is memory of ours: a large job goes to some workers at a time, the others ask again.
  if (!being_told_.empty() && (being_told_.size() + 1) * common_.size() > options_.job_bytes)
    return send(worker, {.kind = MessageKind::alive});
  being_told_.insert(worker.number);
  send(worker, {.kind = MessageKind::job, .text = common_});
}

void Coordinator::on_report(Worker& worker, const Message& message, std::int64_t now_ms) {
  if (message.number != signature_) {
    worker.unfit = fmt::format("rank {} serves another job: is its program another build?", worker.number);
    return send(worker, {.kind = MessageKind::leave});
  }
  being_told_.erase(worker.number);
  worker.serves = true;
  worker.unfit.clear();
  Message over{.kind = MessageKind::drop};
  for (auto& [task, lease] : worker.leases) lease.running = false;
  for (std::size_t i = 0; i < message.tasks.size(); ++i) {
    const std::uint32_t task = message.tasks[i];
    if (schedule_.settled(task)) {
      over.tasks.push_back(task);
      continue;
    }
    // Also a lease that had run out: who still works on a task keeps it.
    schedule_.take(task);
    lease(worker, task, now_ms, message.flag && i == 0);
  }
  if (draining_) {
    const std::set<std::uint32_t> held(message.tasks.begin(), message.tasks.end());
    std::vector<std::uint32_t> dropped;
    for (const auto& [task, lease] : worker.leases)
      if (!held.contains(task)) dropped.push_back(task);
    for (const auto task : dropped) release(worker, task);
    over.flag = message.tasks.size() > (message.flag ? 1U : 0U);
  }
  send(worker, over.flag || !over.tasks.empty() ? over : Message{.kind = MessageKind::alive});
  if (worker.leases.empty()) idle_.insert(worker.number);
  refill(worker, now_ms);
}

void Coordinator::on_result(Worker& worker, const Message& message, std::int64_t now_ms) {
  for (const auto& [task, outcome] : message.results) {
    MANYWORLDS_CHECK(task < schedule_.total(), "worker {} has a result of task {} of {}", worker.number, task,
                     schedule_.total());
    if (outcome.ok()) worker.knows.insert(task);
    if (outcome.elapsed_us > 0) ++worker.done, worker.busy_us += outcome.elapsed_us;
    if (outcome.status != Status::crash && outcome.status != Status::environment) {
      accept(worker, task, outcome, now_ms);
    } else if (worker.crash_numbers.insert(message.number).second) {
      died_in(worker, task, outcome, now_ms);
    }
  }
  refill(worker, now_ms);
  refill_idle(now_ms);
}

void Coordinator::accept(const Worker& from, std::uint32_t task, const Outcome& outcome, std::int64_t now_ms) {
  if (!schedule_.settle(task, outcome)) return;
  cost_seen_ += schedule_.task(task).cost;
  elapsed_seen_us_ += static_cast<double>(outcome.elapsed_us);
  ++results_seen_;
  const auto found = holders_.find(task);
  if (found == holders_.end()) return;
  const std::vector<int> holders = found->second;
  for (const int holder : holders) {
    Worker& other = workers_.at(holder);
    if (holder != from.number && alive(other, now_ms)) send(other, {.kind = MessageKind::drop, .tasks = {task}});
    release(other, task);
  }
}

void Coordinator::died_in(Worker& worker, std::uint32_t task, const Outcome& outcome, std::int64_t now_ms) {
  if (schedule_.settled(task)) return;
  if (++deaths_[task] < outcome.tries) return release(worker, task);
  accept(worker, task, outcome, now_ms);
}

void Coordinator::on_lack(Worker& worker, const Message& message) {
  Message reply{.kind = MessageKind::work};
  for (const auto task : message.tasks)
    if (schedule_.settled(task) && schedule_.outcome(task).ok()) {
      reply.results.emplace_back(task, schedule_.outcome(task));
      worker.knows.insert(task);
    }
  if (!reply.results.empty()) send(worker, reply);
}

/// Gives a lease or renews it.
void Coordinator::lease(Worker& worker, std::uint32_t task, std::int64_t now_ms, bool running) {
  const auto [lease, is_new] = worker.leases.try_emplace(task);
  lease->second = {now_ms + options_.lease_ms, running};
  if (!is_new) return;
  const double cost = schedule_.task(task).cost;
  worker.order.push_back(task);
  worker.cost_held += cost;
  holders_[task].push_back(worker.number);
  if (worker.leases.size() > 1) waiting_.emplace(cost, task);
  idle_.erase(worker.number);
}

/// Takes the lease away; the task is ready again when nobody else has it.
void Coordinator::release(Worker& worker, std::uint32_t task) {
  if (worker.leases.erase(task) == 0) return;
  worker.cost_held -= schedule_.task(task).cost;
  if (worker.leases.empty()) {
    worker.cost_held = 0;  // what rounding left of it
    worker.order.clear();
    if (may_work(worker)) idle_.insert(worker.number);
  }
  const auto found = holders_.find(task);
  std::erase(found->second, worker.number);
  if (found->second.size() == 1) waiting_.emplace(schedule_.task(task).cost, task);
  if (!found->second.empty()) return;
  holders_.erase(found);
  schedule_.give_back(task);
}

double Coordinator::expected_us(std::uint32_t task) const {
  if (results_seen_ == 0) return static_cast<double>(options_.hide_latency_us);
  if (cost_seen_ > 0) return schedule_.task(task).cost * elapsed_seen_us_ / cost_seen_;
  return elapsed_seen_us_ / static_cast<double>(results_seen_);
}

/// The task that the worker runs, as far as we know: of those it holds, what it was given first.
std::uint32_t Coordinator::first_of(Worker& worker) {
  while (!worker.leases.contains(worker.order.front())) worker.order.pop_front();
  return worker.order.front();
}

/// Expected time of what waits at the worker behind the task it runs.
double Coordinator::queued_us(Worker& worker) const {
  if (worker.leases.size() < 2) return 0;
  if (results_seen_ == 0 || cost_seen_ <= 0) return expected_us(0) * static_cast<double>(worker.leases.size() - 1);
  return (worker.cost_held - schedule_.task(first_of(worker)).cost) * elapsed_seen_us_ / cost_seen_;
}

/// Fills the worker up to a few milliseconds of work, but never more than its share of what is ready: the last
/// tasks of a run must not queue behind each other at one worker while another is idle. Work is sent when half of it
/// is done, so that small tasks travel together.
void Coordinator::refill(Worker& worker, std::int64_t now_ms) {
  if (draining_ || !may_work(worker)) return;
  const auto enough_us = static_cast<double>(options_.hide_latency_us);
  double queued = queued_us(worker);
  const bool had_none = worker.leases.empty();
  if (!had_none && (queued >= enough_us / 2 || worker.leases.size() > options_.batch)) return;
  std::vector<std::uint32_t> batch;
  while (batch.size() < options_.batch) {
    const std::size_t held = worker.leases.size() + batch.size();
    const bool idle = held == 0;
    if (!idle && (queued >= enough_us || results_seen_ == 0 || held > schedule_.ready() / workers_.size())) break;
    const auto task = take_for(worker);
    if (!task) break;
    remember_family(worker, schedule_.task(*task).family);
    if (!idle) queued += expected_us(*task);
    batch.push_back(*task);
  }
  if (batch.empty() && had_none) batch = to_steal();
  if (!batch.empty()) assign(worker, batch, now_ms);
}

/// Of what is about equally urgent the worker gets what is most like its last task, else what is like nobody's. At the
/// end, when there is little left to choose from, only length counts.
std::optional<std::uint32_t> Coordinator::take_for(const Worker& worker) {
  if (schedule_.ready() < kChoice * workers_.size()) return schedule_.take();
  return schedule_.take([&](const Task& task) {
    if (task.family == worker.family) return 0;
    const auto others = at_work_on_.find(task.family);
    return others == at_work_on_.end() || others->second == 0 ? 1 : 2;
  });
}

void Coordinator::remember_family(Worker& worker, std::uint32_t family) {
  if (worker.family == family) return;
  if (worker.family) --at_work_on_[*worker.family];
  worker.family = family;
  ++at_work_on_[family];
}

/// What waits behind another task at a worker may as well be computed by an idle one: the longest such task.
std::vector<std::uint32_t> Coordinator::to_steal() {
  while (!waiting_.empty()) {
    const std::uint32_t task = waiting_.top().second;
    waiting_.pop();
    const auto holders = holders_.find(task);
    if (holders == holders_.end() || holders->second.size() != 1) continue;
    Worker& holder = workers_.at(holders->second.front());
    if (holder.leases.size() < 2 || holder.leases.at(task).running || first_of(holder) == task) continue;
    return {task};
  }
  return {};
}

void Coordinator::refill_idle(std::int64_t now_ms) {
  for (auto next = idle_.begin(); next != idle_.end() && schedule_.ready() > 0;) {
    Worker& worker = workers_.at(*next++);  // refilling takes it out of the set
    if (alive(worker, now_ms)) refill(worker, now_ms);
  }
}

void Coordinator::assign(Worker& worker, const std::vector<std::uint32_t>& tasks, std::int64_t now_ms) {
  Message work{.kind = MessageKind::work};
  for (const auto task : tasks) {
    lease(worker, task, now_ms, false);
    const auto& inputs = schedule_.task(task).inputs;
    work.assignments.push_back({task, inputs, job_.order(task)});
    for (const auto input : inputs)
      if (worker.knows.insert(input).second) work.results.emplace_back(input, schedule_.outcome(input));
  }
  send(worker, work);
}

void Coordinator::tick(std::int64_t now_ms) {
  for (auto& [number, worker] : workers_) {
    std::vector<std::uint32_t> gone;
    const bool lost = !alive(worker, now_ms) || !worker.unfit.empty();
    for (const auto& [task, lease] : worker.leases)
      if (lost || lease.until_ms <= now_ms) gone.push_back(task);
    for (const auto task : gone) release(worker, task);
    if (lost) idle_.erase(number), being_told_.erase(number);  // until it speaks again
  }
  refill_idle(now_ms);
}

void Coordinator::drain(std::int64_t now_ms) {
  if (draining_) return;
  draining_ = true;
  drain_until_ms_ = now_ms + options_.drain_grace_ms;
  for (const auto& [number, worker] : workers_)
    if (alive(worker, now_ms)) send(worker, {.kind = MessageKind::drop, .flag = true});
}

void Coordinator::dismiss() {
  for (int number = 0; number < transport_.size(); ++number)
    transport_.send(number, encode(Message{.kind = MessageKind::leave}));
}

bool Coordinator::finished(std::int64_t now_ms) const {
  if (schedule_.complete() || unserved(now_ms)) return true;
  return draining_ && (holders_.empty() || now_ms >= drain_until_ms_);
}

std::optional<Coordinator::Unserved> Coordinator::unserved(std::int64_t now_ms) const {
  // Ranks that never said a word are given as long as ranks that fell silent.
  const bool all_here = static_cast<int>(workers_.size()) == transport_.size();
  if (workers_.empty() || (!all_here && now_ms - first_heard_ms_ < options_.silence_ms)) return {};
  for (const auto& [number, worker] : workers_)
    if (worker.unfit.empty()) return {};
  const Worker& first = workers_.begin()->second;
  return Unserved{first.unfit, first.out_of_memory};
}

std::vector<WorkerLoad> Coordinator::loads(std::int64_t now_ms) const {
  std::vector<WorkerLoad> all;
  for (const auto& [number, worker] : workers_)
    all.push_back(
        {number, alive(worker, now_ms), worker.done, static_cast<double>(worker.busy_us) * 1e-6, worker.leases.size()});
  return all;
}

}  // namespace manyworlds::farm
