// The provenance of results: what they took, where and with what software. None of it is part of the reproducible
// results.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>

#include "core/step/run/result.hpp"
#include "farm/plan/collective_result.hpp"
#include "farm/plan/sweep_job.hpp"
#include "farm/results/result_tables.hpp"
#include "farm/system/launcher.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm {
namespace {

struct Totals {
  Effort now, earlier;  // computed by this incarnation; loaded from the journal or the store
  std::int64_t transferred = 0, kernel_uses = 0, collective_uses = 0, episode_uses = 0;
  // Of the link-hops transferred: those of experiments whose step another one has; and of collectives that ran alone on
  // their links in the steps, but for one of each.
  std::int64_t of_same_steps = 0, of_same_collectives = 0;
};

/// A collective that was a task of its own, and how often it ran alone on its links in steps.
struct CollectiveUse {
  std::int64_t link_hops = 0, times = 0;
};
using CollectiveUses = std::map<core::sharing::Key, CollectiveUse>;

CollectiveUses unused_collectives(const Plan& plan, const OutcomeOf& outcome) {
  CollectiveUses uses;
  for (std::uint32_t task = 0; task < plan.collectives.size(); ++task)
    if (outcome(task).ok())
      uses[plan.collectives[task].key].link_hops = decode_collective(outcome(task).bytes).result.counters.link_hops;
  return uses;
}

/// Returns the link-hops that steps did not simulate: those of each collective's uses but one. A collective that always
/// shared its links with others was planned, but never used.
std::int64_t hops_taken_over(const CollectiveUses& uses) {
  std::int64_t sum = 0;
  for (const auto& [key, use] : uses) sum += use.link_hops * std::max<std::int64_t>(0, use.times - 1);
  return sum;
}

std::int64_t total_uses(const std::vector<core::step::SubsimulationUse>& all) {
  std::int64_t times = 0;
  for (const auto& used : all) times += used.times;
  return times;
}

Totals totals_of(const Plan& plan, const OutcomeOf& outcome) {
  Totals totals;
  CollectiveUses uses = unused_collectives(plan, outcome);
  const auto tasks = plan.task_of_step(static_cast<std::uint32_t>(plan.steps.size()));
  for (std::uint32_t task = 0; task < tasks; ++task) {
    const Outcome& task_outcome = outcome(task);
    if (!task_outcome.ok()) continue;
    Effort effort;
    if (plan.is_step(task)) {
      const auto step = core::step::decode_step(task_outcome.bytes);
      const std::int64_t experiments = plan.steps[task - plan.task_of_step(0)].experiments;
      effort = {step.computed, step.cpu_s};
      totals.transferred += step.link_hops * experiments;
      totals.of_same_steps += step.link_hops * (experiments - 1);
      for (const auto& used : step.collectives)
        if (const auto known = uses.find(used.key); known != uses.end()) known->second.times += used.times;
      totals.kernel_uses += total_uses(step.kernels) * experiments;
      totals.collective_uses += total_uses(step.collectives) * experiments;
      totals.episode_uses += total_uses(step.episodes) * experiments;
    } else if (plan.is_bound(task)) {
      const auto bound = core::step::decode_step(task_outcome.bytes);
      effort = {bound.computed, bound.cpu_s};
    } else {
      effort = decode_collective(task_outcome.bytes).effort;
    }
    Effort& sum = task_outcome.elapsed_us > 0 ? totals.now : totals.earlier;
    sum.link_hops += effort.link_hops;
    sum.cpu_s += effort.cpu_s;
  }
  totals.of_same_collectives = hops_taken_over(uses);
  return totals;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

void add_provenance(io::Results& results, const Plan& plan, const OutcomeOf& outcome, const RunStatistics& statistics,
                    bool share, const std::optional<OneByOne>& one_by_one) {
  const Totals totals = totals_of(plan, outcome);
  const auto add = [&](const char* name, auto value) { results.provenance.push_back({name, value}); };
  const auto count = [&](const char* name, std::uint64_t value) { add(name, static_cast<std::int64_t>(value)); };
  add("build", std::string(core::sharing::build_fingerprint()));
  add("date", utc_now());
  add("host", io::host_name());
  add("ranks", static_cast<std::int64_t>(statistics.ranks));
  add("sharing", std::string(share ? "on" : "off"));
  add("elapsed_s", statistics.elapsed_s);
  add("cpu_s", totals.now.cpu_s);
  add("cpu_earlier_s", totals.earlier.cpu_s);
  const double cpu_s = totals.now.cpu_s + totals.earlier.cpu_s;
  if (const auto alone = share ? one_by_one : OneByOne{cpu_s, 0, 0}) {
    add("one_by_one_cpu_s", alone->cpu_s);
    add("one_by_one_error_s", alone->error_s);
    add("one_by_one_samples", alone->samples);
    if (cpu_s > 0) add("one_by_one_over_sweep", alone->cpu_s / cpu_s);
  }
  count("tasks_collectives", plan.collectives.size());
  count("tasks_steps", plan.steps.size());
  count("tasks_computed", statistics.computed);
  count("tasks_from_journal", statistics.from_journal);
  count("tasks_from_store", statistics.from_store);
  add("link_hops_transferred", totals.transferred);
  const core::network::LinkHops& now = totals.now.link_hops;
  add("link_hops_simulated", now.simulated);
  add("link_hops_simulated_earlier", totals.earlier.link_hops.simulated);
  add("link_hops_skipped", totals.transferred - now.simulated);
  add("link_hops_skipped_cached", totals.transferred - now.all());
  add("link_hops_skipped_steps", totals.of_same_steps);
  add("link_hops_skipped_collectives", totals.of_same_collectives);
  add("link_hops_skipped_periods", now.periods);
  add("link_hops_skipped_rate", now.rate);
  add("kernel_uses", totals.kernel_uses);
  add("collective_uses", totals.collective_uses);
  add("episode_uses", totals.episode_uses);
  add("mpi_version", mpi_version());
  add("hdf5_version", io::hdf5_version());
  for (const char* name : {"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_NODELIST",
                           "SLURM_NTASKS", "SLURM_RESTART_COUNT"})
    if (const char* value = std::getenv(name); value != nullptr) add(name, std::string(value));
}

}  // namespace manyworlds::farm
