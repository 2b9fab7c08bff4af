#include "farm/sweep/merge.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "core/base/error.hpp"
#include "farm/coordinator/task_queue.hpp"
#include "farm/plan/sweep_job.hpp"
#include "farm/status/tasks_by_key.hpp"
#include "farm/sweep/sweep_run.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/host_resources.hpp"
#include "io/log/journal.hpp"
#include "io/log/run_directory.hpp"

namespace manyworlds::farm {
namespace {

namespace fs = std::filesystem;

struct Source {
  fs::path directory;
  Shard shard;
};

struct Sources {
  std::string whole;  // the serialized job of all sources, without its shard
  std::vector<Source> all;
};

bool same_place(const fs::path& one, const fs::path& other) {
  std::error_code ignored;
  return fs::equivalent(one, other, ignored);
}

void check_build(const fs::path& run, const std::string& fingerprint) {
  const std::string build = io::read_build(run);
  if (build != fingerprint)
    throw core::InputError(
        fmt::format("{} was computed by another build ({}; this is {}), whose results are not "
                    "comparable; compute it again with this one (sweep --rebuild)",
                    run.string(), build.empty() ? "unknown" : build, fingerprint));
}

Sources read_sources(const std::vector<fs::path>& runs, const fs::path& into, const std::string& fingerprint) {
  Sources sources;
  for (const fs::path& run : runs) {
    if (same_place(run, into))
      throw core::InputError(
          fmt::format("{} is both read and written; give the merged run a directory of its own", run.string()));
    const std::string text = read_serialized_job(run);
    const SerializedJob job = parse_job(text);
    const std::string whole = unsharded_job(job);
    check_build(run, fingerprint);
    if (sources.all.empty()) sources.whole = whole;
    if (whole != sources.whole)
      throw core::InputError(fmt::format("{} and {} are not parts of one sweep: what they compute differs",
                                         runs.front().string(), run.string()));
    sources.all.push_back({run, job.options.shard});
  }
  return sources;
}

/// Copies every record that is not yet there, and a failure only if there is no result. A record that does not hold a
/// result of its task is skipped and reported.
void copy_records(const Sources& sources, const io::RunDirectory& into, const Job& job,
                  const std::string& fingerprint) {
  const TasksByKey tasks(job);
  std::set<core::sharing::Key> results;  // the keys that have a result
  std::map<core::sharing::Key, std::string> failures;
  const auto remember = [&](const io::Record& record) {
    if (record.kind == io::kResultRecord) return results.insert(record.key).second;
    std::string& known = failures[record.key];
    if (results.count(record.key) > 0 || known == record.payload) return false;
    known = record.payload;
    return true;
  };
  io::replay_journal(into.journal(), fingerprint, [&](const io::Record& record) {
    if (!tasks.accept(record)) return false;  // reported when the run is resumed
    remember(record);
    return true;
  });
  std::optional<io::Journal> journal;
  for (const Source& source : sources.all) {
    const auto replay =
        io::replay_journal(io::journal_path(source.directory), fingerprint, [&](const io::Record& record) {
          if (!tasks.accept(record)) return false;
          if (!remember(record)) return true;
          if (!journal) journal.emplace(into.journal(), fingerprint);
          journal->append(record.kind, record.key, record.payload);
          return true;
        });
    print_lines(replay.describe_damage());
  }
  if (journal) journal->flush();
}

/// Counts the experiments without a result by the shard (from 0) that should have computed them.
std::map<std::uint32_t, std::uint64_t> missing(const Plan& plan, const TaskQueue& schedule, std::uint32_t count) {
  std::map<std::uint32_t, std::uint64_t> experiments;
  const auto shard_of = shards_of_steps(plan, count);
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step)
    if (!schedule.settled(plan.task_of_step(step))) experiments[shard_of[step]] += plan.steps[step].experiments;
  return experiments;
}

/// Returns the number of shards of the sweep; 1 if the sources disagree.
std::uint32_t shard_count(const Sources& sources) {
  for (const Source& source : sources.all)
    if (source.shard.count != sources.all.front().shard.count) return 1;
  return sources.all.front().shard.count;
}

void print_missing(const Sources& sources, const fs::path& into, const SweepJob& job, const TaskQueue& schedule) {
  const std::uint32_t count = shard_count(sources);
  std::uint64_t experiments = 0;
  std::string lines, numbers;
  for (const auto& [shard, number] : missing(job.plan(), schedule, count)) {
    experiments += number;
    if (count == 1) continue;
    numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", shard + 1);
    std::string how = fmt::format("not given; `manyworlds sweep SPEC --shard {}/{}` computes it", shard + 1, count);
    for (const Source& source : sources.all)
      if (source.shard.number == shard + 1) how = fmt::format("`{}` resumes it", resume_line(source.directory));
    lines += fmt::format("  shard {} of {}: {} experiments; {}\n", shard + 1, count, number, how);
  }
  std::string where;
  if (!numbers.empty())
    where = fmt::format(", in shard{} {}", numbers.find(',') == std::string::npos ? "" : "s", numbers);
  print_lines(fmt::format(
      "{} of {} experiments are missing{}\n{}`{}` computes all of that there; this line again takes in what "
      "the others have by then\n",
      experiments, job.sweep().experiments.size(), where, lines, resume_line(into)));
}

}  // namespace

int merge_runs(const std::vector<fs::path>& runs, const fs::path& into, bool json) {
  MANYWORLDS_CHECK(!runs.empty(), "nothing to merge");
  const std::string fingerprint(core::sharing::build_fingerprint());
  const Sources sources = read_sources(runs, into, fingerprint);
  SweepJob job(sources.whole);
  copy_records(sources, io::RunDirectory::begin(into, sources.whole, {fingerprint, batch_job_id(), false}), job,
               fingerprint);

  RunOptions options;
  options.directory = into;
  TaskQueue schedule(job.tasks());
  const int code = finalize_sweep_job(options, sources.whole, job, schedule, json);
  if (code == kExitDrained) print_missing(sources, into, job, schedule);
  return code;
}

}  // namespace manyworlds::farm
