#include "farm/allocation/jobs_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "core/base/units.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"
#include "experiments/tree/yaml.hpp"
#include "farm/cli/parsing/option_values.hpp"

namespace manyworlds::farm::allocation {
namespace {

using experiments::import::Entry;
using experiments::import::Node;

constexpr std::int64_t kStepsLimit = 1'000'000'000'000;
constexpr double kSlowest = 1e-9, kFastest = 1e6;  // steps per second
constexpr std::int64_t kLongestRestart_s = 86'400;
constexpr core::Int128 kCentury_ns = static_cast<core::Int128>(100) * 365 * 86'400 * kSecond_ns;

std::int64_t integer_of(const Node& node, const std::string& key, std::int64_t low, std::int64_t high) {
  core::OptionInfo info;
  info.minimum = static_cast<double>(low), info.maximum = static_cast<double>(high);
  return std::get<std::int64_t>(experiments::import::read_value(node, info, key));
}

std::int64_t speed_of(const Node& node, const std::string& key) {
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::real;
  info.unit = "steps/s";
  info.minimum = kSlowest, info.maximum = kFastest;
  const double speed = std::get<double>(experiments::import::read_value(node, info, key));
  return core::round_half_up(speed * static_cast<double>(kSpeedUnits));
}

Nanoseconds duration_of(const Node& node, const std::string& key) {
  if (node.kind != Node::Kind::scalar)
    node.fail(fmt::format("'{}' must be a duration, as in 90s, 20m, 1h30m or 2d, not {}", key, describe(node)));
  try {
    return commands::parse_duration(node.text, "'" + key + "'").count() * kSecond_ns;
  } catch (const core::InputError& error) {
    throw error.at(*node.file, node.line);
  }
}

const Node& need(const Node& node, const char* key, const char* example) {
  const Node* found = node.find(key);
  if (found == nullptr) node.fail(fmt::format("'{}' is missing, as in `{}: {}`", key, key, example));
  return *found;
}

std::vector<SpeedPoint> points_of(const Node& node) {
  if (node.kind != Node::Kind::mapping || node.entries.empty())
    node.fail(fmt::format("'speeds' must map numbers of GPUs to steps per second, as in {{8: 0.8, 16: 1.5}}, not {}",
                          node.kind == Node::Kind::mapping ? "be empty" : describe(node)));
  std::vector<SpeedPoint> points;
  for (const Entry& entry : node.entries) {
    const auto gpus = core::number_in<std::int64_t>(entry.key);
    if (!gpus || *gpus < 1 || *gpus > kGpusLimit)
      throw core::InputError(
          fmt::format("a key of 'speeds' must be a number of GPUs from 1 to {}, not '{}'", kGpusLimit, entry.key),
          *node.file, entry.line);
    points.push_back({*gpus, speed_of(entry.value, fmt::format("speeds.{}", entry.key))});
  }
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.gpus < b.gpus; });
  const auto twice =
      std::adjacent_find(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.gpus == b.gpus; });
  if (twice != points.end()) node.fail(fmt::format("'speeds' has {} GPUs twice", twice->gpus));
  return points;
}

std::string beside(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).string();
}

JobEntry entry_of(const Node& node) {
  experiments::import::check_keys(
      node, {"name", "steps", "arrival", "speeds", "results", "where", "least_gpus", "most_gpus", "request_gpus"},
      "a job");
  JobEntry entry;
  entry.line = node.line;
  entry.job.name = experiments::import::read_line(need(node, "name", "llama-8b"), "name");
  entry.job.steps = integer_of(need(node, "steps", "20000"), "steps", 1, kStepsLimit);
  if (const Node* arrival = node.find("arrival")) entry.job.arrival = duration_of(*arrival, "arrival");
  if (const Node* least = node.find("least_gpus")) entry.least_gpus = integer_of(*least, "least_gpus", 1, kGpusLimit);
  if (const Node* most = node.find("most_gpus"))
    entry.most_gpus = integer_of(*most, "most_gpus", entry.least_gpus, kGpusLimit);
  if (const Node* request = node.find("request_gpus"))
    entry.job.request = integer_of(*request, "request_gpus", 1, kGpusLimit);
  const Node *speeds = node.find("speeds"), *results = node.find("results"), *where = node.find("where");
  if ((speeds == nullptr) == (results == nullptr))
    node.fail(
        fmt::format("job '{}' must have either 'speeds', as in {{8: 0.8, 16: 1.5}}, or 'results', a run of a sweep "
                    "over numbers of nodes",
                    entry.job.name));
  if (where != nullptr && results == nullptr) where->fail("'where' belongs to 'results'");
  if (where != nullptr) entry.where = experiments::import::read_line(*where, "where");
  if (results != nullptr)
    entry.results = beside(*node.file, experiments::import::read_line(*results, "results"));
  else
    set_curve(entry, points_of(*speeds), *node.file);
  return entry;
}

[[noreturn]] void refuse(const JobEntry& entry, const std::string& file, const std::string& what) {
  throw core::InputError(fmt::format("job '{}' {}", entry.job.name, what), file, entry.line);
}

std::string counts_text(const std::vector<SpeedPoint>& points) {
  std::vector<std::int64_t> counts;
  for (const SpeedPoint& point : points) counts.push_back(point.gpus);
  return fmt::format("{}", fmt::join(counts, ", "));
}

}  // namespace

JobsFile parse_jobs(std::string_view text, const std::string& name) {
  const Node root = experiments::import::parse_yaml(text, name);
  experiments::import::check_keys(root, {"jobs", "restart"}, "a file of jobs");
  JobsFile file;
  file.name = name;
  if (const Node* restart = root.find("restart")) {
    file.restart = duration_of(*restart, "restart");
    if (file.restart > kLongestRestart_s * kSecond_ns) restart->fail("'restart' must be at most 1d");
  }
  const Node& jobs = need(root, "jobs", "[{name: a, steps: 20000, speeds: {8: 0.8, 16: 1.5}}]");
  if (jobs.kind != Node::Kind::sequence || jobs.items.empty() || jobs.items.size() > kJobsLimit)
    jobs.fail(fmt::format("'jobs' must be a list of 1 to {} jobs, not {}", kJobsLimit,
                          jobs.kind == Node::Kind::sequence ? fmt::format("{}", jobs.items.size()) : describe(jobs)));
  std::set<std::string> names;
  for (const Node& node : jobs.items) {
    file.jobs.push_back(entry_of(node));
    if (!names.insert(file.jobs.back().job.name).second) refuse(file.jobs.back(), name, "is there twice");
  }
  return file;
}

void set_curve(JobEntry& entry, std::vector<SpeedPoint> points, const std::string& file) {
  std::vector<SpeedPoint> curve;
  for (const SpeedPoint& point : points)
    if (point.gpus >= entry.least_gpus && point.gpus <= entry.most_gpus) curve.push_back(point);
  if (curve.empty())
    refuse(entry, file,
           fmt::format("has speeds on {} GPUs, none of them from {} to {}", counts_text(points), entry.least_gpus,
                       entry.most_gpus));
  if (curve.size() > kPointsLimit)
    refuse(entry, file, fmt::format("has speeds on {} numbers of GPUs; {} are the most", curve.size(), kPointsLimit));
  entry.job.curve = std::move(curve);
  if (entry.job.request > 0 && speed_on(entry.job, entry.job.request) == 0)
    refuse(
        entry, file,
        fmt::format("requests {} GPUs, but its speed is known on {}", entry.job.request, counts_text(entry.job.curve)));
}

std::vector<Job> jobs_for(const JobsFile& file, std::int64_t gpus) {
  std::vector<Job> jobs;
  core::Int128 last_arrival = 0;
  for (const JobEntry& entry : file.jobs) {
    MANYWORLDS_CHECK(!entry.job.curve.empty(), "job '{}' has no curve", entry.job.name);
    if (const std::int64_t least = entry.job.curve.front().gpus; least > gpus)
      refuse(entry, file.name, fmt::format("needs at least {} GPUs, and there are {}", least, gpus));
    if (entry.job.request > gpus)
      refuse(entry, file.name, fmt::format("requests {} GPUs, and there are {}", entry.job.request, gpus));
    jobs.push_back(entry.job);
    last_arrival = std::max<core::Int128>(last_arrival, entry.job.arrival);
  }
  if (last_arrival + longest_time(jobs, {gpus, file.restart}) > kCentury_ns)
    throw core::InputError(
        "one after another at their slowest, these jobs take more than a century; 'steps' are those "
        "that remain, speeds are steps per second",
        file.name);
  return jobs;
}

}  // namespace manyworlds::farm::allocation
