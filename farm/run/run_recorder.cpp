#include "farm/run/run_recorder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "farm/status/tasks_by_key.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/host_resources.hpp"

namespace manyworlds::farm {

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kStatusPeriod{2};
constexpr std::chrono::seconds kResultsPeriod{60};
constexpr std::size_t kListedFailures = 100;

io::RunDirectory::Options directory_options(const RunOptions& options) {
  return {std::string(core::sharing::build_fingerprint()), batch_job_id(), options.rebuild};
}

/// Returns RunOptions::store as an absolute path, valid from any working directory.
std::string absolute_store(const RunOptions& options) {
  if (options.store.empty() || options.store == "none") return options.store;
  return std::filesystem::absolute(options.store).lexically_normal().string();
}

}  // namespace

io::RunDirectory begin_run(const RunOptions& options, const std::string& serialized_job) {
  return io::RunDirectory::begin(options.directory, serialized_job, directory_options(options));
}

io::RunDirectory resume_run(const RunOptions& options) {
  return io::RunDirectory::resume(options.directory, directory_options(options));
}

RunRecorder::RunRecorder(const RunOptions& options, io::RunDirectory& directory, int ranks, Job& job, TaskQueue& queue,
                         const RunHooks& hooks)
    : job_(job),
      queue_(queue),
      hooks_(hooks),
      ranks_(ranks),
      directory_(directory),
      resume_line_(resume_line(options)),
      absolute_store_(absolute_store(options)),
      begin_(steady_clock::now()),
      status_written_(begin_),
      results_due_(begin_ + kResultsPeriod) {
  const std::string fingerprint(core::sharing::build_fingerprint());
  kinds_ = hooks.kinds ? hooks.kinds(job) : std::vector<std::string>(job.tasks().size(), "tasks");
  std::vector<double> costs;
  for (const Task& task : job.tasks()) costs.push_back(task.cost);
  progress_ = std::make_unique<Progress>(kinds_, costs, ranks);
  queue_.on_settled = [this](std::uint32_t task, const Outcome& outcome) { settled(task, outcome); };
  const auto failures = replay(fingerprint);
  journal_ = std::make_unique<io::Journal>(directory_.journal(), fingerprint);
  for (const std::uint32_t task : known_in_replay_) append_to_journal(task, queue_.outcome(task));
  store_ = std::make_unique<RunStore>(options, fingerprint);
  queue_.find_known = [this](std::uint32_t task) { return find_in_store(task); };
  settle_from_store();
  source_ = Source::journal;
  if (!options.retry_failed)
    for (const auto& [task, failure] : failures) queue_.settle(task, failure);
  source_ = Source::computed;
  write_status("running");
}

/// Settles the tasks that have results in the journal and returns the recorded failures.
std::vector<std::pair<std::uint32_t, Outcome>> RunRecorder::replay(const std::string& fingerprint) {
  std::vector<std::pair<std::uint32_t, Outcome>> failures;
  const TasksByKey tasks(job_);
  const auto replay = io::replay_journal(directory_.journal(), fingerprint, [&](const io::Record& record) {
    if (!tasks.accept(record)) return false;
    const auto failure = record.kind == io::kFailureRecord ? parse_failure(record.payload) : std::nullopt;
    for (const std::uint32_t task : tasks.with_key(record.key)) {
      if (record.kind == io::kResultRecord) {
        replayed_ = task;
        queue_.settle(task, {Status::ok, record.payload, 0});
      }
      if (failure) failures.emplace_back(task, *failure);
    }
    return true;
  });
  if (const std::string damage = replay.describe_damage(); !damage.empty())
    print_lines(damage + "what stood there is computed again\n");
  return failures;
}

/// Settles the tasks that have results in the store, but for those whose selection asks later.
void RunRecorder::settle_from_store() {
  source_ = Source::store;
  for (std::uint32_t task = 0; task < job_.tasks().size(); ++task) {
    if (queue_.settled(task) || queue_.held(task)) continue;
    if (auto outcome = find_in_store(task)) queue_.settle(task, std::move(*outcome));
  }
}

std::optional<Outcome> RunRecorder::find_in_store(std::uint32_t task) {
  if (!job_.tasks()[task].storable) return std::nullopt;
  const auto holds = [&](std::string_view bytes) { return job_.is_valid_result(task, bytes); };
  auto bytes = store_->get(job_.result_key(task), holds);
  if (!bytes) return std::nullopt;
  in_store_.insert(task);
  return Outcome{Status::ok, std::move(*bytes), 0};
}

/// Returns where the outcome of a task that settles now is from.
RunRecorder::Source RunRecorder::source_of(std::uint32_t task) const {
  if (in_store_.contains(task)) return Source::store;
  if (source_ == Source::journal && task == replayed_) return Source::journal;
  return queue_.known_to_selection(task) ? Source::other_task : source_;
}

/// Called by the TaskQueue before it counts the task: the record reaches the disk first.
void RunRecorder::settled(std::uint32_t task, const Outcome& outcome) {
  if (outcome.status == Status::left_out) {
    progress_->settled(task, outcome, true);
    if (hooks_.on_result) hooks_.on_result(task, outcome);
    return;
  }
  const Source source = source_of(task);
  if (source != Source::journal) record(task, outcome);
  if (source == Source::computed && outcome.ok() && job_.tasks()[task].storable)
    store_->put(job_.result_key(task), outcome.bytes);
  statistics_.from_journal += source == Source::journal ? 1 : 0;
  statistics_.from_store += source == Source::store ? 1 : 0;
  statistics_.computed += source == Source::computed ? 1 : 0;
  statistics_.simulated_s += static_cast<double>(outcome.elapsed_us) * 1e-6;
  progress_->settled(task, outcome, source != Source::computed);
  if (hooks_.on_result) hooks_.on_result(task, outcome);
}

/// What a selection knows from the results of other tasks while these are replayed is written when the journal is open.
void RunRecorder::record(std::uint32_t task, const Outcome& outcome) {
  if (journal_)
    append_to_journal(task, outcome);
  else
    known_in_replay_.push_back(task);
}

/// A task that failed because of its input has no record of its own: the input decides again after a resume.
void RunRecorder::append_to_journal(std::uint32_t task, const Outcome& outcome) {
  const core::sharing::Key& key = job_.tasks()[task].key;
  if (outcome.ok())
    journal_->append(io::kResultRecord, key, outcome.bytes);
  else if (outcome.is_failure() && outcome.status != Status::input)
    journal_->append(io::kFailureRecord, key, fmt::format("{}\n{}", name_of(outcome.status), outcome.bytes));
}

double RunRecorder::elapsed_s() const {
  return std::chrono::duration<double>(steady_clock::now() - begin_).count();
}

RunStatistics RunRecorder::statistics() const {
  RunStatistics statistics = statistics_;
  statistics.ranks = ranks_;
  statistics.elapsed_s = elapsed_s();
  return statistics;
}

void RunRecorder::write_status(const std::string& state) {
  status_ = progress_->status(state, elapsed_s());
  status_["resume"] = resume_line_;
  status_["store"] = absolute_store_;
  if (hooks_.extra_status) status_.update(hooks_.extra_status(queue_));
  directory_.write_status(status_.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  status_written_ = steady_clock::now();
}

const nlohmann::json& RunRecorder::each_second(const std::string& state, const std::vector<WorkerLoad>& loads) {
  progress_->load(loads);
  journal_->sync_if_due();
  store_->sync_if_due();
  if (steady_clock::now() - status_written_ >= kStatusPeriod) write_status(state);
  if (steady_clock::now() >= results_due_) write_results();
  return status_;
}

/// Writes the results available so far. Seldom enough to cost the run less than a hundredth of its time.
void RunRecorder::write_results() {
  const auto begin = steady_clock::now();
  if (hooks_.write_results) hooks_.write_results(job_, queue_, statistics());
  results_due_ = begin + std::max<steady_clock::duration>(kResultsPeriod, 200 * (steady_clock::now() - begin));
}

RunOutcome RunRecorder::close(bool drained) {
  journal_->flush();
  store_->close();
  RunOutcome outcome{drained ? RunOutcome::State::drained : RunOutcome::State::complete, queue_.total(), queue_.done(),
                     queue_.failed(), kExitDone};
  outcome.exit_code = drained ? kExitDrained : outcome.failed > 0 ? kExitFailed : kExitDone;
  write_results();
  nlohmann::json failures = nlohmann::json::array();
  for (std::uint32_t task = 0; task < queue_.total() && failures.size() < kListedFailures; ++task) {
    if (!queue_.settled(task) || !queue_.outcome(task).is_failure()) continue;
    const Outcome& failed = queue_.outcome(task);
    nlohmann::json entry = hooks_.describe ? hooks_.describe(job_, task) : nlohmann::json::object();
    entry["task"] = task;
    entry["kind"] = kinds_[task];
    entry["key"] = queue_.task(task).key.hex();
    entry["class"] = name_of(failed.status);
    entry["reason"] = failed.bytes;
    failures.push_back(std::move(entry));
  }
  const std::string state = drained ? "drained" : "complete";
  write_status(state);
  directory_.write_complete(nlohmann::json{{"format", 1},
                                           {"state", state},
                                           {"exit", outcome.exit_code},
                                           {"total", outcome.total},
                                           {"done", outcome.done},
                                           {"failed", outcome.failed},
                                           {"failures", failures}}
                                .dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
                            "\n");
  return outcome;
}

bool declare_failed(io::RunDirectory& directory, int exit_code, const std::string& reason) noexcept {
  const nlohmann::json complete{{"format", 1}, {"state", "failed"}, {"exit", exit_code}, {"reason", reason}};
  try {
    const std::string text = complete.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    try {
      directory.write_complete(text);
    } catch (const core::IoError&) {
      directory.clear_status();  // it reports a running run, and frees enough space for the new file
      directory.write_complete(text);
    }
    return true;
  } catch (const std::exception& error) {
    // A second failure of the same disk is not worth a message.
    if (exit_code != kExitIo) print_message("manyworlds: {}\n", error.what());
    return false;
  }
}

}  // namespace manyworlds::farm
