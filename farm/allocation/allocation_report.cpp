#include "farm/allocation/allocation_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/base/escape.hpp"
#include "core/base/plural.hpp"
#include "farm/status/progress.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm::allocation {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kDivisionsShown = 20;

double seconds_of(Nanoseconds time) {
  return static_cast<double>(time) / static_cast<double>(kSecond_ns);
}

std::string time_text(Nanoseconds time) {
  return duration_text(seconds_of(time));
}

double steps_per_s(const SpeedPoint& point) {
  return static_cast<double>(point.speed) / static_cast<double>(kSpeedUnits);
}

std::string counts_text(const Job& job) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> counts;
  for (const SpeedPoint& point : job.curve) counts.push_back(std::to_string(point.gpus));
  if (counts.size() > kShown) {
    counts.erase(counts.begin() + kShown / 2, counts.end() - kShown / 2);
    counts.insert(counts.begin() + kShown / 2, "...");
  }
  return fmt::format("{}", fmt::join(counts, " "));
}

std::string jobs_table(const AllocationReport& report) {
  std::vector<std::vector<std::string>> lines{{"job", "arrives", "steps", "on GPUs"}};
  std::vector<bool> left_aligned{true, false, false, true};
  for (const PolicyInfo& info : kPolicies)
    lines[0].push_back(std::string("done after, ") + info.title), left_aligned.push_back(false);
  for (std::size_t i = 0; i < report.jobs.size(); ++i) {
    const Job& job = report.jobs[i];
    lines.push_back(
        {job.name, time_text(job.arrival), io::group_digits(static_cast<double>(job.steps)), counts_text(job)});
    for (const Schedule& schedule : report.schedules) lines.back().push_back(time_text(schedule.ends[i] - job.arrival));
  }
  return io::align_columns(lines, left_aligned);
}

std::string policies_table(const AllocationReport& report) {
  std::vector<std::vector<std::string>> lines{{"policy", "mean completion", "makespan", "restarts", "GPU-hours"}};
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    const Schedule& schedule = report.schedules[i];
    lines.push_back({kPolicies[i].title, duration_text(mean_completion_s(report.jobs, schedule)),
                     duration_text(makespan_s(report.jobs, schedule)), std::to_string(schedule.restarts),
                     fmt::format("{:.1f}", gpu_hours(schedule, report.jobs.size()))});
  }
  return io::align_columns(lines, {true, false, false, false, false});
}

/// Returns the titles of the policies with the least `value`, joined.
std::string least_text(const std::array<double, kPolicies.size()>& values) {
  const double least = *std::min_element(values.begin(), values.end());
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < kPolicies.size(); ++i)
    if (values[i] == least) titles.emplace_back(kPolicies[i].title);
  return fmt::format("{}", fmt::join(titles, ", "));
}

std::string best_text(const AllocationReport& report) {
  std::array<double, kPolicies.size()> mean{}, makespan{};
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    mean[i] = mean_completion_s(report.jobs, report.schedules[i]);
    makespan[i] = makespan_s(report.jobs, report.schedules[i]);
  }
  return fmt::format("shortest mean completion: {}; shortest makespan: {}\n", least_text(mean), least_text(makespan));
}

/// Returns who gets how many GPUs by marginal gain, a line for every time at which that changes.
std::string divisions_text(const AllocationReport& report) {
  const Schedule& schedule = report.schedules[0];
  std::vector<std::pair<Nanoseconds, std::string>> divisions;
  for (const Change& change : schedule.changes) {
    if (divisions.empty() || divisions.back().first != change.at) divisions.emplace_back(change.at, "");
    const bool done = change.gpus == 0 && schedule.ends[change.job] == change.at;
    std::string& text = divisions.back().second;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", core::line_text(report.jobs[change.job].name),
                        done ? "done" : std::to_string(change.gpus));
  }
  std::string text = "GPUs by marginal gain, where they change\n";
  for (std::size_t i = 0; i < std::min(divisions.size(), kDivisionsShown); ++i)
    text += fmt::format("  at {}: {}\n", time_text(divisions[i].first), divisions[i].second);
  if (divisions.size() > kDivisionsShown)
    text += fmt::format("  {} more, which --json has\n", divisions.size() - kDivisionsShown);
  return text;
}

std::string assumptions_text(const AllocationReport& report) {
  std::string text =
      "marginal gain: each job its least, then more where a GPU shortens completion most (Optimus, EuroSys 2018), as "
      "if "
      "the division were to stay\n"
      "FIFO: in order of arrival, each the GPUs that it requests, or on which it is fastest, until it is done\n"
      "DRF: equal shares, as far as more GPUs make a job faster\n"
      "assumed: only numbers of GPUs with a known speed are given, and it holds wherever the GPUs are\n";
  text += report.cluster.restart == 0
              ? "assumed: a job loses no time when its GPUs change; 'restart' says how much\n"
              : fmt::format("assumed: a job loses {} when its GPUs change, which no policy weighs\n",
                            time_text(report.cluster.restart));
  if (std::any_of(report.sources.begin(), report.sources.end(), [](const auto& source) { return !source.empty(); }))
    text +=
        "assumed: speeds from results are as predicted, without failures; `manyworlds top RUN` has their intervals\n";
  return text;
}

Json curve_json(const Job& job) {
  Json curve = Json::array();
  for (const SpeedPoint& point : job.curve)
    curve.push_back({{"gpus", point.gpus}, {"steps_per_s", steps_per_s(point)}});
  return curve;
}

Json changes_json(const AllocationReport& report, const Schedule& schedule) {
  Json divisions = Json::array();
  Nanoseconds last = -1;
  for (const Change& change : schedule.changes) {
    if (change.at != last) divisions.push_back({{"at_s", seconds_of(change.at)}, {"gpus", Json::object()}});
    divisions.back()["gpus"][report.jobs[change.job].name] = change.gpus;
    last = change.at;
  }
  return divisions;
}

Json policy_json(const AllocationReport& report, std::size_t index) {
  const Schedule& schedule = report.schedules[index];
  Json jobs = Json::array();
  for (std::size_t i = 0; i < report.jobs.size(); ++i)
    jobs.push_back({{"name", report.jobs[i].name},
                    {"start_s", seconds_of(schedule.starts[i])},
                    {"end_s", seconds_of(schedule.ends[i])},
                    {"completion_s", seconds_of(schedule.ends[i] - report.jobs[i].arrival)}});
  return {{"policy", kPolicies[index].name},
          {"mean_completion_s", mean_completion_s(report.jobs, schedule)},
          {"makespan_s", makespan_s(report.jobs, schedule)},
          {"restarts", schedule.restarts},
          {"gpu_hours", gpu_hours(schedule, report.jobs.size())},
          {"jobs", jobs},
          {"changes", changes_json(report, schedule)}};
}

}  // namespace

std::string AllocationReport::text() const {
  return fmt::format("{} {} on {} {}, divided anew at every arrival and completion\n\n", jobs.size(),
                     core::plural(jobs.size(), "job"), cluster.gpus,
                     core::plural(static_cast<std::uint64_t>(cluster.gpus), "GPU")) +
         jobs_table(*this) + "\n" + policies_table(*this) + best_text(*this) + "\n" + divisions_text(*this) + "\n" +
         assumptions_text(*this);
}

std::string AllocationReport::json() const {
  Json object{{"gpus", cluster.gpus}, {"restart_s", seconds_of(cluster.restart)}, {"jobs", Json::array()}};
  for (std::size_t i = 0; i < jobs.size(); ++i)
    object["jobs"].push_back({{"name", jobs[i].name},
                              {"steps", jobs[i].steps},
                              {"arrival_s", seconds_of(jobs[i].arrival)},
                              {"request_gpus", jobs[i].request > 0 ? Json(jobs[i].request) : Json()},
                              {"speeds_from", sources[i].empty() ? Json() : Json(sources[i])},
                              {"curve", curve_json(jobs[i])}});
  object["policies"] = Json::array();
  for (std::size_t i = 0; i < kPolicies.size(); ++i) object["policies"].push_back(policy_json(*this, i));
  return object.dump(1) + "\n";
}

AllocationReport allocate(std::vector<Job> jobs, std::vector<std::string> sources, const Cluster& cluster) {
  AllocationReport report{std::move(jobs), std::move(sources), cluster, {}};
  for (std::size_t i = 0; i < kPolicies.size(); ++i)
    report.schedules[i] = schedule_jobs(report.jobs, cluster, kPolicies[i].policy);
  return report;
}

}  // namespace manyworlds::farm::allocation
