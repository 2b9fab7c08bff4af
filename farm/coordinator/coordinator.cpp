#include "farm/coordinator/coordinator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "farm/protocol/job_signature.hpp"

namespace manyworlds::farm {

namespace {
constexpr std::size_t kReadyTasksPerWorker = 4;  // minimum ready tasks per worker for locality-aware choice
}  // namespace

Coordinator::Coordinator(TaskQueue& queue, MessageTransport& transport, const Job& job, CoordinatorOptions options)
    : queue_(queue),
      transport_(transport),
      job_(job),
      common_spec_(job.common_spec()),
      signature_(job_signature(common_spec_)),
      options_(options) {}

void Coordinator::receive(int from, const Message& message, std::int64_t now_ms) {
  if (workers_.empty()) first_heard_ms_ = now_ms;
  Worker& worker = workers_[from];
  worker.number = from;
  worker.heard_ms = now_ms;
  handle(worker, message, now_ms);
  touched_.insert(from);
  lend(now_ms);
}

void Coordinator::handle(Worker& worker, const Message& message, std::int64_t now_ms) {
  for (const auto task : message.tasks)
    MANYWORLDS_CHECK(task < queue_.total(), "worker {} speaks of task {} of {}", worker.number, task, queue_.total());
  switch (message.kind) {
    case MessageKind::hello:
      return on_hello(worker, message);
    case MessageKind::report:
      return on_report(worker, message, now_ms);
    case MessageKind::result:
      return on_result(worker, message, now_ms);
    case MessageKind::missing_inputs:
      return on_missing_inputs(worker, message);
    case MessageKind::incompatible:
      worker.serves = false;
      worker.incompatible_reason = message.text;
      worker.out_of_memory = message.flag;
      idle_.erase(worker.number);
      return send(worker, {.kind = MessageKind::alive});
    default:
      MANYWORLDS_CHECK(false, "worker {} sent a message of kind {}", worker.number, static_cast<int>(message.kind));
  }
}

void Coordinator::on_hello(Worker& worker, const Message& message) {
  job_sent_.erase(worker.number);
  if (message.flag) return send(worker, {.kind = MessageKind::alive});
  // This may be a new incarnation of a known rank, which has neither the tasks nor the results of the old one. A late
  // hello of the same incarnation only makes the coordinator forget them until the next report.
  worker.known_results.clear();
  while (!worker.leases.empty()) release(worker, worker.leases.begin()->first);
  // Every copy in flight takes memory here, so a large job is sent to a few workers at a time; the others ask again.
  if (!job_sent_.empty() && (job_sent_.size() + 1) * common_spec_.size() > options_.job_bytes)
    return send(worker, {.kind = MessageKind::alive});
  job_sent_.insert(worker.number);
  send(worker, {.kind = MessageKind::job, .text = common_spec_});
}

void Coordinator::on_report(Worker& worker, const Message& message, std::int64_t now_ms) {
  if (message.number != signature_) {
    worker.incompatible_reason =
        fmt::format("rank {} serves another job: is its program another build?", worker.number);
    return send(worker, {.kind = MessageKind::leave});
  }
  job_sent_.erase(worker.number);
  worker.serves = true;
  worker.incompatible_reason.clear();
  worker.help = message.help;
  Message cancelled{.kind = MessageKind::drop};
  for (auto& [task, lease] : worker.leases) lease.running = false;
  for (std::size_t i = 0; i < message.tasks.size(); ++i) {
    const std::uint32_t task = message.tasks[i];
    if (queue_.settled(task)) {
      cancelled.tasks.push_back(task);
      continue;
    }
    // This also renews an expired lease: a worker that still works on a task keeps it.
    queue_.take(task);
    lease(worker, task, now_ms, message.flag && i == 0);
  }
  if (draining_) {
    const std::set<std::uint32_t> held(message.tasks.begin(), message.tasks.end());
    std::vector<std::uint32_t> dropped;
    for (const auto& [task, lease] : worker.leases)
      if (!held.contains(task)) dropped.push_back(task);
    for (const auto task : dropped) release(worker, task);
    cancelled.flag = message.tasks.size() > (message.flag ? 1U : 0U);
  }
  send(worker, cancelled.flag || !cancelled.tasks.empty() ? cancelled : Message{.kind = MessageKind::alive});
  if (worker.leases.empty()) idle_.insert(worker.number);
  refill(worker, now_ms);
  // Again, as the message that said it may be lost.
  if (auto helpers = lending_.helpers_of(worker.number); !helpers.empty())
    send(worker, {.kind = MessageKind::helpers, .ranks = std::move(helpers)});
}

/// Lends workers that have nothing to do to those that have, after everything that is to be computed was assigned.
void Coordinator::lend(std::int64_t now_ms) {
  for (const int number : std::exchange(touched_, {})) {
    const Worker& worker = workers_.at(number);
    lending_.set(number, !worker.leases.empty()                            ? Lending::State::busy
                         : idle_.contains(number) && alive(worker, now_ms) ? Lending::State::idle
                                                                           : Lending::State::gone);
  }
  for (const int number : lending_.take_changed())
    if (const Worker& worker = workers_.at(number); alive(worker, now_ms))
      send(worker, {.kind = MessageKind::helpers, .ranks = lending_.helpers_of(number)});
}

void Coordinator::on_result(Worker& worker, const Message& message, std::int64_t now_ms) {
  worker.help.used = std::max(worker.help.used, message.help.used);
  for (const auto& [task, outcome] : message.results) {
    MANYWORLDS_CHECK(task < queue_.total(), "worker {} has a result of task {} of {}", worker.number, task,
                     queue_.total());
    if (outcome.ok()) worker.known_results.insert(task);
    if (outcome.elapsed_us > 0) ++worker.done, worker.busy_us += outcome.elapsed_us;
    if (outcome.status != Status::crash && outcome.status != Status::environment) {
      accept(worker, task, outcome, now_ms);
    } else if (worker.crash_numbers.insert(message.number).second) {
      on_death(worker, task, outcome, now_ms);
    }
  }
  refill(worker, now_ms);
  refill_idle(now_ms);
}

void Coordinator::accept(const Worker& from, std::uint32_t task, const Outcome& outcome, std::int64_t now_ms) {
  if (!queue_.settle(task, outcome)) return;
  settled_cost_ += queue_.task(task).cost;
  settled_elapsed_us_ += static_cast<double>(outcome.elapsed_us);
  ++settled_results_;
  const auto found = holders_.find(task);
  if (found == holders_.end()) return;
  const std::vector<int> holders = found->second;
  for (const int holder : holders) {
    Worker& other = workers_.at(holder);
    if (holder != from.number && alive(other, now_ms)) send(other, {.kind = MessageKind::drop, .tasks = {task}});
    release(other, task);
  }
}

void Coordinator::on_death(Worker& worker, std::uint32_t task, const Outcome& outcome, std::int64_t now_ms) {
  if (queue_.settled(task)) return;
  if (++death_counts_[task] < outcome.max_failures) return release(worker, task);
  accept(worker, task, outcome, now_ms);
}

void Coordinator::on_missing_inputs(Worker& worker, const Message& message) {
  Message reply{.kind = MessageKind::work};
  for (const auto task : message.tasks)
    if (queue_.settled(task) && queue_.outcome(task).ok()) {
      reply.results.emplace_back(task, queue_.outcome(task));
      worker.known_results.insert(task);
    }
  if (!reply.results.empty()) send(worker, reply);
}

/// Grants or renews a lease.
void Coordinator::lease(Worker& worker, std::uint32_t task, std::int64_t now_ms, bool running) {
  touched_.insert(worker.number);
  const auto [lease, is_new] = worker.leases.try_emplace(task);
  lease->second = {now_ms + options_.lease_ms, running};
  if (!is_new) return;
  const double cost = queue_.task(task).cost;
  worker.lease_order.push_back(task);
  worker.cost_held += cost;
  holders_[task].push_back(worker.number);
  if (worker.leases.size() > 1) stealable_.emplace(cost, task);
  idle_.erase(worker.number);
}

/// Revokes a lease. The task becomes ready again if nobody else holds it.
void Coordinator::release(Worker& worker, std::uint32_t task) {
  if (worker.leases.erase(task) == 0) return;
  touched_.insert(worker.number);
  worker.cost_held -= queue_.task(task).cost;
  if (worker.leases.empty()) {
    worker.cost_held = 0;  // clears the rounding error
    worker.lease_order.clear();
    if (may_work(worker)) idle_.insert(worker.number);
  }
  const auto found = holders_.find(task);
  std::erase(found->second, worker.number);
  if (found->second.size() == 1) stealable_.emplace(queue_.task(task).cost, task);
  if (!found->second.empty()) return;
  holders_.erase(found);
  queue_.requeue(task);
}

double Coordinator::expected_us(std::uint32_t task) const {
  if (settled_results_ == 0) return static_cast<double>(options_.hide_latency_us);
  if (settled_cost_ > 0) return queue_.task(task).cost * settled_elapsed_us_ / settled_cost_;
  return settled_elapsed_us_ / static_cast<double>(settled_results_);
}

/// Returns the task that the worker presumably runs: the one it received first among those it holds.
std::uint32_t Coordinator::presumed_running(Worker& worker) {
  while (!worker.leases.contains(worker.lease_order.front())) worker.lease_order.pop_front();
  return worker.lease_order.front();
}

/// Returns the expected time of the tasks that are queued at the worker behind the running one.
double Coordinator::queued_us(Worker& worker) const {
  if (worker.leases.size() < 2) return 0;
  if (settled_results_ == 0 || settled_cost_ <= 0)
    return expected_us(0) * static_cast<double>(worker.leases.size() - 1);
  return (worker.cost_held - queue_.task(presumed_running(worker)).cost) * settled_elapsed_us_ / settled_cost_;
}

/// Refills the worker's queue up to a few milliseconds of work, but never beyond its share of the ready tasks: the last
/// tasks of a run must not queue at one worker while another is idle. Work is sent when half of the queue is done, so
/// that small tasks share a message.
void Coordinator::refill(Worker& worker, std::int64_t now_ms) {
  if (draining_ || !may_work(worker)) return;
  const auto target_us = static_cast<double>(options_.hide_latency_us);
  double queued = queued_us(worker);
  const bool was_idle = worker.leases.empty();
  if (!was_idle && (queued >= target_us / 2 || worker.leases.size() > options_.batch)) return;
  std::vector<std::uint32_t> batch;
  while (batch.size() < options_.batch) {
    const std::size_t held = worker.leases.size() + batch.size();
    const bool idle = held == 0;
    if (!idle && (queued >= target_us || settled_results_ == 0 || held > queue_.ready() / workers_.size())) break;
    const auto task = take_task_for(worker);
    if (!task) break;
    set_locality_group(worker, queue_.task(*task).locality_group);
    if (!idle) queued += expected_us(*task);
    batch.push_back(*task);
  }
  if (batch.empty() && was_idle) batch = find_stealable();
  if (!batch.empty()) assign(worker, batch, now_ms);
}

/// Among the tasks of similar urgency, prefers one of the worker's current locality group, then one of a group that no
/// worker is in. Near the end of the run, when few tasks are ready, only the critical path counts.
std::optional<std::uint32_t> Coordinator::take_task_for(const Worker& worker) {
  if (queue_.ready() < kReadyTasksPerWorker * workers_.size()) return queue_.take();
  return queue_.take([&](const Task& task) {
    if (task.locality_group == worker.locality_group) return 0;
    const auto others = workers_in_group_.find(task.locality_group);
    return others == workers_in_group_.end() || others->second == 0 ? 1 : 2;
  });
}

void Coordinator::set_locality_group(Worker& worker, std::uint32_t locality_group) {
  if (worker.locality_group == locality_group) return;
  if (worker.locality_group) --workers_in_group_[*worker.locality_group];
  worker.locality_group = locality_group;
  ++workers_in_group_[locality_group];
}

/// Returns the most expensive task that is queued behind another one at a worker, for an idle worker to duplicate.
std::vector<std::uint32_t> Coordinator::find_stealable() {
  while (!stealable_.empty()) {
    const std::uint32_t task = stealable_.top().second;
    stealable_.pop();
    const auto holders = holders_.find(task);
    if (holders == holders_.end() || holders->second.size() != 1) continue;
    Worker& holder = workers_.at(holders->second.front());
    if (holder.leases.size() < 2 || holder.leases.at(task).running || presumed_running(holder) == task) continue;
    return {task};
  }
  return {};
}

void Coordinator::refill_idle(std::int64_t now_ms) {
  for (auto next = idle_.begin(); next != idle_.end() && queue_.ready() > 0;) {
    Worker& worker = workers_.at(*next++);  // refill() may erase it from the set
    if (alive(worker, now_ms)) refill(worker, now_ms);
  }
}

void Coordinator::assign(Worker& worker, const std::vector<std::uint32_t>& tasks, std::int64_t now_ms) {
  Message work{.kind = MessageKind::work};
  for (const auto task : tasks) {
    lease(worker, task, now_ms, false);
    const auto& inputs = queue_.task(task).inputs;
    work.assignments.push_back({task, inputs, job_.spec(task)});
    for (const auto input : inputs)
      if (worker.known_results.insert(input).second) work.results.emplace_back(input, queue_.outcome(input));
  }
  send(worker, work);
}

void Coordinator::tick(std::int64_t now_ms) {
  for (auto& [number, worker] : workers_) {
    std::vector<std::uint32_t> lost_tasks;
    const bool lost = !alive(worker, now_ms) || !worker.incompatible_reason.empty();
    for (const auto& [task, lease] : worker.leases)
      if (lost || lease.until_ms <= now_ms) lost_tasks.push_back(task);
    for (const auto task : lost_tasks) release(worker, task);
    // Until it is heard again.
    if (lost) idle_.erase(number), job_sent_.erase(number), touched_.insert(number);
  }
  refill_idle(now_ms);
  lend(now_ms);
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
  if (queue_.complete() || unserved(now_ms)) return true;
  return draining_ && (holders_.empty() || now_ms >= drain_until_ms_);
}

std::optional<Coordinator::Unserved> Coordinator::unserved(std::int64_t now_ms) const {
  // Ranks that were never heard get as much time as ranks that fell silent.
  const bool all_here = static_cast<int>(workers_.size()) == transport_.size();
  if (workers_.empty() || (!all_here && now_ms - first_heard_ms_ < options_.silence_ms)) return {};
  for (const auto& [number, worker] : workers_)
    if (worker.incompatible_reason.empty()) return {};
  const Worker& first = workers_.begin()->second;
  return Unserved{first.incompatible_reason, first.out_of_memory};
}

std::vector<WorkerLoad> Coordinator::loads(std::int64_t now_ms) const {
  std::vector<WorkerLoad> all;
  for (const auto& [number, worker] : workers_)
    all.push_back({number, alive(worker, now_ms), worker.done,
                   1e-6 * (static_cast<double>(worker.busy_us) + static_cast<double>(worker.help.given_us)),
                   worker.leases.size(), worker.help});
  return all;
}

}  // namespace manyworlds::farm
