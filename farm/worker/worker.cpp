#include "farm/worker/worker.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace manyworlds::farm {

Worker::Worker(MessageTransport& transport, int coordinator, Simulator& simulator, std::int64_t now_ms,
               WorkerOptions options)
    : transport_(transport),
      coordinator_(coordinator),
      simulator_(simulator),
      options_(options),
      heard_ms_(now_ms),
      reported_ms_(now_ms),
      help_(transport, simulator, options.answer_ms) {
  report(now_ms);
}

void Worker::receive(const Message& message, std::int64_t now_ms) {
  if (left_) return;
  heard_ms_ = now_ms;
  heard_ = true;
  switch (message.kind) {
    case MessageKind::job:
      if (stage_ != Stage::awaiting_job) return;  // a late duplicate
      stage_ = Stage::building;
      simulator_.build(message.text);
      return report(now_ms);  // confirms the receipt, so that the coordinator may send the job to others
    case MessageKind::work:
      return accept_work(message, now_ms);
    case MessageKind::drop:
      return drop(message, now_ms);
    case MessageKind::helpers:
      return help_.set_helpers(message.ranks);
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
  help_.tick(now_ms);
}

void Worker::report(std::int64_t now_ms) {
  reported_ms_ = now_ms;
  if (stage_ == Stage::incompatible) return send_incompatible();
  if (stage_ != Stage::serving) return send({.kind = MessageKind::hello, .flag = stage_ == Stage::building});
  Message held{.kind = MessageKind::report, .flag = running_.has_value(), .number = signature_, .help = help_.help()};
  if (running_) held.tasks.push_back(*running_);
  std::set<std::uint32_t> missing_inputs;
  for (const auto& assignment : queue_) {
    held.tasks.push_back(assignment.task);
    for (const auto input : missing_inputs_of(assignment)) missing_inputs.insert(input);
  }
  send(held);
  if (!missing_inputs.empty())
    send({.kind = MessageKind::missing_inputs, .tasks = {missing_inputs.begin(), missing_inputs.end()}});
}

void Worker::serves(std::uint64_t signature, std::int64_t now_ms) {
  if (stage_ == Stage::incompatible) return;
  signature_ = signature;
  stage_ = Stage::serving;
  report(now_ms);
}

void Worker::incompatible(const std::string& reason, bool out_of_memory) {
  stage_ = Stage::incompatible;
  incompatible_reason_ = reason;
  out_of_memory_ = out_of_memory;
  queue_.clear();
  queued_.clear();
  send_incompatible();
}

void Worker::send_incompatible() {
  send({.kind = MessageKind::incompatible, .flag = out_of_memory_, .text = incompatible_reason_});
}

void Worker::accept_work(const Message& message, std::int64_t now_ms) {
  if (stage_ != Stage::serving) return;
  for (const auto& [task, outcome] : message.results) known_results_.emplace(task, outcome.bytes);
  for (const auto& assignment : message.assignments) {
    if (const auto known = known_results_.find(assignment.task); known != known_results_.end()) {
      // The result was lost, or this message is a late duplicate: sending the result again is harmless.
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

std::vector<std::uint32_t> Worker::missing_inputs_of(const Assignment& assignment) const {
  std::vector<std::uint32_t> missing_inputs;
  for (const auto input : assignment.inputs)
    if (!known_results_.contains(input)) missing_inputs.push_back(input);
  return missing_inputs;
}

void Worker::run_next(std::int64_t now_ms) {
  if (running_ || stage_ != Stage::serving) return;
  const auto next = std::find_if(queue_.begin(), queue_.end(),
                                 [&](const Assignment& queued) { return missing_inputs_of(queued).empty(); });
  if (next == queue_.end()) {
    // Inputs were lost; the report asks for them.
    if (!queue_.empty()) report(now_ms);
    return;
  }
  std::vector<std::string> inputs;
  for (const auto input : next->inputs) inputs.push_back(known_results_.at(input));
  const Assignment assignment = std::move(*next);
  queue_.erase(next);
  queued_.erase(assignment.task);
  running_ = assignment.task;
  help_.refuse_waiting();
  simulator_.run(assignment.task, assignment.spec, inputs);
}

void Worker::computed(std::uint32_t task, Outcome outcome, std::int64_t now_ms, std::uint64_t answers_used) {
  MANYWORLDS_CHECK(running_ == task, "a result of task {}, which does not run", task);
  running_.reset();
  help_.count_used(answers_used);
  if (outcome.ok()) known_results_.emplace(task, outcome.bytes);
  send({.kind = MessageKind::result,
        .number = ++results_sent_,
        .results = {{task, std::move(outcome)}},
        .help = help_.help()});
  if (!left_) run_next(now_ms);
}

}  // namespace manyworlds::farm
