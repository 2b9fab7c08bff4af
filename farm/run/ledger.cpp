#include "farm/run/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "farm/status/recorded.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/processors.hpp"
#include "farm/system/talk.hpp"

namespace manyworlds::farm {

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kStatusPeriod{2};
constexpr std::chrono::seconds kResultsPeriod{60};
constexpr std::size_t kListedFailures = 100;

io::RunDirectory::Options directory_options(const RunOptions& options) {
  return {std::string(core::sharing::build_fingerprint()), batch_job(), options.rebuild};
}

/// RunOptions::store for whoever asks from another folder.
std::string store_choice(const RunOptions& options) {
  if (options.store.empty() || options.store == "none") return options.store;
  return std::filesystem::absolute(options.store).lexically_normal().string();
}

}  // namespace

io::RunDirectory begin_run(const RunOptions& options, const std::string& frozen) {
  return io::RunDirectory::begin(options.directory, frozen, directory_options(options));
}

io::RunDirectory resume_run(const RunOptions& options) {
  return io::RunDirectory::resume(options.directory, directory_options(options));
}

Ledger::Ledger(const RunOptions& options, io::RunDirectory& directory, int ranks, Job& job, Schedule& schedule,
               const RunHooks& hooks)
    : job_(job),
      schedule_(schedule),
      hooks_(hooks),
      ranks_(ranks),
      directory_(directory),
      resume_line_(resume_line(options)),
      store_choice_(store_choice(options)),
      begin_(steady_clock::now()),
      status_written_(begin_),
      results_due_(begin_ + kResultsPeriod) {
  const std::string fingerprint(core::sharing::build_fingerprint());
  kinds_ = hooks.kinds ? hooks.kinds(job) : std::vector<std::string>(job.tasks().size(), "tasks");
  std::vector<double> costs;
  for (const Task& task : job.tasks()) costs.push_back(task.cost);
  progress_ = std::make_unique<Progress>(kinds_, costs, ranks);
  schedule_.on_settled = [this](std::uint32_t task, const Outcome& outcome) { settled(task, outcome); };
  const auto failures = replay(fingerprint);
  journal_ = std::make_unique<io::Journal>(directory_.journal(), fingerprint);
  store_ = std::make_unique<RunStore>(options, fingerprint);
  look_in_store();
  source_ = Source::journal;
  if (!options.retry_failed)
    for (const auto& [task, failure] : failures) schedule_.settle(task, failure);
  source_ = Source::computed;
  write_status("running");
}

/// Settles what has a result and returns what failed.
std::vector<std::pair<std::uint32_t, Outcome>> Ledger::replay(const std::string& fingerprint) {
  std::vector<std::pair<std::uint32_t, Outcome>> failures;
  const TasksByKey tasks(job_);
  const auto replay = io::replay_journal(directory_.journal(), fingerprint, [&](const io::Record& record) {
    if (!tasks.hold(record)) return false;
    const auto failure = record.kind == io::kFailureRecord ? failure_of(record.payload) : std::nullopt;
    for (const std::uint32_t task : tasks.of(record.key)) {
      if (record.kind == io::kResultRecord) schedule_.settle(task, {Status::ok, record.payload, 0});
      if (failure) failures.emplace_back(task, *failure);
    }
    return true;
  });
  if (const std::string damage = replay.describe_damage(); !damage.empty())
    tell_lines(damage + "what stood there is computed again\n");
  return failures;
}

void Ledger::look_in_store() {
  source_ = Source::store;
  for (std::uint32_t task = 0; task < job_.tasks().size(); ++task) {
    if (!job_.tasks()[task].stored || schedule_.settled(task)) continue;
    const auto holds = [&](std::string_view bytes) { return job_.holds_result(task, bytes); };
    if (auto bytes = store_->get(job_.tasks()[task].key, holds))
      schedule_.settle(task, {Status::ok, std::move(*bytes), 0});
  }
}

/// The schedule calls this before it counts the task: on disk first.
void Ledger::settled(std::uint32_t task, const Outcome& outcome) {
  if (source_ != Source::journal) write_in_journal(task, outcome);
  if (source_ == Source::computed && outcome.ok() && job_.tasks()[task].stored)
    store_->put(job_.tasks()[task].key, outcome.bytes);
  std::uint64_t& count = source_ == Source::journal ? figures_.from_journal
                         : source_ == Source::store ? figures_.from_store
                                                    : figures_.computed;
  ++count;
  figures_.simulated_s += static_cast<double>(outcome.elapsed_us) * 1e-6;
  progress_->settled(task, outcome, source_ != Source::computed);
  if (hooks_.on_result) hooks_.on_result(task, outcome);
}

/// A task that failed with its input has no record of its own: what becomes of the input decides again.
void Ledger::write_in_journal(std::uint32_t task, const Outcome& outcome) {
  const core::sharing::Key& key = job_.tasks()[task].key;
  if (outcome.ok())
    journal_->append(io::kResultRecord, key, outcome.bytes);
  else if (outcome.status != Status::input)
    journal_->append(io::kFailureRecord, key, fmt::format("{}\n{}", name_of(outcome.status), outcome.bytes));
}

double Ledger::elapsed_s() const {
  return std::chrono::duration<double>(steady_clock::now() - begin_).count();
}

RunFigures Ledger::figures() const {
  RunFigures figures = figures_;
  figures.ranks = ranks_;
  figures.elapsed_s = elapsed_s();
  return figures;
}

void Ledger::write_status(const std::string& state) {
  status_ = progress_->status(state, elapsed_s());
  status_["resume"] = resume_line_;
  status_["store"] = store_choice_;
  if (hooks_.told) status_.update(hooks_.told(schedule_));
  directory_.write_status(status_.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  status_written_ = steady_clock::now();
}

const nlohmann::json& Ledger::each_second(const std::string& state, const std::vector<WorkerLoad>& loads) {
  progress_->load(loads);
  journal_->sync_if_due();
  store_->sync_if_due();
  if (steady_clock::now() - status_written_ >= kStatusPeriod) write_status(state);
  if (steady_clock::now() >= results_due_) write_results();
  return status_;
}

/// What is there, as the answer will have it. Rarely enough to cost the run less than a hundredth of its time.
void Ledger::write_results() {
  const auto begin = steady_clock::now();
  if (hooks_.write_results) hooks_.write_results(job_, schedule_, figures());
  results_due_ = begin + std::max<steady_clock::duration>(kResultsPeriod, 200 * (steady_clock::now() - begin));
}

RunOutcome Ledger::close(bool drained) {
  journal_->flush();
  store_->close();
  RunOutcome outcome{drained ? RunOutcome::State::drained : RunOutcome::State::complete, schedule_.total(),
                     schedule_.done(), schedule_.failed(), kExitDone};
  outcome.exit_code = drained ? kExitDrained : outcome.failed > 0 ? kExitFailed : kExitDone;
  write_results();
  nlohmann::json failures = nlohmann::json::array();
  for (std::uint32_t task = 0; task < schedule_.total() && failures.size() < kListedFailures; ++task) {
    if (!schedule_.settled(task) || schedule_.outcome(task).ok()) continue;
    const Outcome& failed = schedule_.outcome(task);
    nlohmann::json told = hooks_.describe ? hooks_.describe(job_, task) : nlohmann::json::object();
    told["task"] = task;
    told["kind"] = kinds_[task];
    told["key"] = schedule_.task(task).key.hex();
    told["class"] = name_of(failed.status);
    told["reason"] = failed.bytes;
    failures.push_back(std::move(told));
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
      directory.clear_status();  // it says that the run goes on, and its room is enough for the truth
      directory.write_complete(text);
    }
    return true;
  } catch (const std::exception& error) {
    // The same disk failing once more is no news.
    if (exit_code != kExitIo) tell("manyworlds: {}\n", error.what());
    return false;
  }
}

}  // namespace manyworlds::farm
