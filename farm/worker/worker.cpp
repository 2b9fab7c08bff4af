#include "farm/worker/worker.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace manyworlds::farm {

Worker::Worker(Transport& transport, int coordinator, Simulator& simulator, std::int64_t now_ms, WorkerOptions options)
    : transport_(transport),
      coordinator_(coordinator),
      simulator_(simulator),
      options_(options),
      heard_ms_(now_ms),
      reported_ms_(now_ms) {
  report(now_ms);
}

void Worker::receive(const Message& message, std::int64_t now_ms) {
  if (left_) return;
  heard_ms_ = now_ms;
  heard_ = true;
  switch (message.kind) {
    case MessageKind::job:
      if (stage_ != Stage::new_here) return;  // a late copy
      stage_ = Stage::building;
      simulator_.build(message.text);
      return report(now_ms);  // now others may be told
    case MessageKind::work:
      return take_work(message, now_ms);
    case MessageKind::drop:
      return drop(message, now_ms);
    case MessageKind::alive:
      return;
    case MessageKind::leave:
      left_ = true;
      return;
    default:
      MANYWORLDS_CHECK(false, "the coordinator sent a message of kind {}", static_cast<int>(message.kind));
  }
}

void Worker::tick(std::int64_t now_ms) {
  if (left_) return;
  if (now_ms - heard_ms_ >= (heard_ ? options_.silence_ms : options_.first_silence_ms)) {
    left_ = abandoned_ = true;
  } else if (now_ms - reported_ms_ >= options_.report_ms) {
    report(now_ms);
  }
}

void Worker::report(std::int64_t now_ms) {
  reported_ms_ = now_ms;
  if (stage_ == Stage::unfit) return say_unfit();
  if (stage_ != Stage::serving) return send({.kind = MessageKind::hello, .flag = stage_ == Stage::building});
  Message held{.kind = MessageKind::report, .flag = running_.has_value(), .number = signature_};
  if (running_) held.tasks.push_back(*running_);
  std::set<std::uint32_t> lack;
  for (const auto& assignment : queue_) {
    held.tasks.push_back(assignment.task);
    for (const auto input : lacking(assignment)) lack.insert(input);
  }
  send(held);
  if (!lack.empty()) send({.kind = MessageKind::lack, .tasks = {lack.begin(), lack.end()}});
}

void Worker::serves(std::uint64_t signature, std::int64_t now_ms) {
  if (stage_ == Stage::unfit) return;
  signature_ = signature;
  stage_ = Stage::serving;
  report(now_ms);
}

void Worker::unfit(const std::string& reason, bool out_of_memory) {
  stage_ = Stage::unfit;
  unfit_reason_ = reason;
  out_of_memory_ = out_of_memory;
  queue_.clear();
  queued_.clear();
  say_unfit();
}

void Worker::say_unfit() {
  send({.kind = MessageKind::unfit, .flag = out_of_memory_, .text = unfit_reason_});
}

void Worker::take_work(const Message& message, std::int64_t now_ms) {
  if (stage_ != Stage::serving) return;
  for (const auto& [task, outcome] : message.results) known_.emplace(task, outcome.bytes);
  for (const auto& assignment : message.assignments) {
    if (const auto known = known_.find(assignment.task); known != known_.end()) {
      // Our result was lost on its way, or this message is a late copy: saying it again is harmless.
      send({.kind = MessageKind::result,
            .number = ++results_sent_,
            .results = {{assignment.task, {Status::ok, known->second, 0}}}});
      continue;
    }
    if (running_ != assignment.task && queued_.insert(assignment.task).second) queue_.push_back(assignment);
  }
  run_next(now_ms);
}

void Worker::drop(const Message& message, std::int64_t now_ms) {
  if (message.flag) {
    queue_.clear();
    queued_.clear();
  }
  std::erase_if(queued_, [&](std::uint32_t task) {
    return std::find(message.tasks.begin(), message.tasks.end(), task) != message.tasks.end();
  });
  std::erase_if(queue_, [&](const Assignment& queued) { return !queued_.contains(queued.task); });
  if (message.flag) report(now_ms);
}

std::vector<std::uint32_t> Worker::lacking(const Assignment& assignment) const {
  std::vector<std::uint32_t> lack;
  for (const auto input : assignment.inputs)
    if (!known_.contains(input)) lack.push_back(input);
  return lack;
}

void Worker::run_next(std::int64_t now_ms) {
  if (running_ || stage_ != Stage::serving) return;
  const auto next =
      std::find_if(queue_.begin(), queue_.end(), [&](const Assignment& queued) { return lacking(queued).empty(); });
  if (next == queue_.end()) {
    // Inputs went astray; the report asks for them.
    if (!queue_.empty()) report(now_ms);
    return;
  }
  std::vector<std::string> inputs;
  for (const auto input : next->inputs) inputs.push_back(known_.at(input));
  const Assignment begun = std::move(*next);
  queue_.erase(next);
  queued_.erase(begun.task);
  running_ = begun.task;
  simulator_.run(begun.task, begun.order, inputs);
}

void Worker::computed(std::uint32_t task, Outcome outcome, std::int64_t now_ms) {
  MANYWORLDS_CHECK(running_ == task, "a result of task {}, which does not run", task);
  running_.reset();
  if (outcome.ok()) known_.emplace(task, outcome.bytes);
  send({.kind = MessageKind::result, .number = ++results_sent_, .results = {{task, std::move(outcome)}}});
  if (!left_) run_next(now_ms);
}

}  // namespace manyworlds::farm
