// The jobs of `manyworlds allocate` from YAML, and their speeds from results: what is read, and what is refused how.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/base/error.hpp"
#include "farm/allocation/jobs_file.hpp"
#include "farm/allocation/predicted_speeds.hpp"
#include "tests/farm/said.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::allocation;

namespace {

/// Parses a file with this text of jobs, for 16 GPUs; returns what it is refused with.
std::string refusal(const std::string& text) {
  try {
    const JobsFile file = parse_jobs(text, "jobs.yaml");
    jobs_for(file, 16);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

std::string job(const std::string& more) {
  return "jobs:\n  - name: a\n    steps: 100\n    " + more + "\n";
}

using Points = std::vector<std::pair<std::int64_t, std::int64_t>>;
Points pairs_of(const std::vector<SpeedPoint>& points) {
  Points pairs;
  for (const SpeedPoint& point : points) pairs.emplace_back(point.gpus, point.speed);
  return pairs;
}

struct Row {
  std::int64_t gpus;
  std::string status;
  double step_s, tokens_per_step;
};

io::Results results_of(const std::vector<Row>& rows) {
  std::vector<std::int64_t> ids, gpus, memory;
  std::vector<std::string> status;
  std::vector<double> step, throughput;
  for (const Row& row : rows) {
    const bool ran = row.status == "ran";
    ids.push_back(static_cast<std::int64_t>(ids.size())), gpus.push_back(row.gpus), memory.push_back(0);
    status.push_back(row.status), step.push_back(ran ? row.step_s : std::nan(""));
    throughput.push_back(ran ? row.tokens_per_step / row.step_s / static_cast<double>(row.gpus) : std::nan(""));
  }
  io::Results results;
  results.experiments.columns = {{"id", "", "", ids},
                                 {"status", "", "", status},
                                 {"gpus", "", "", gpus},
                                 {"step_time_s", "s", "", step},
                                 {"tokens_per_s_per_gpu", "tokens/s", "", throughput},
                                 {"memory_peak_bytes", "bytes", "", memory}};
  return results;
}

}  // namespace

TEST_CASE("jobs are read with their units, and keep the numbers of GPUs within their limits") {
  const JobsFile file = parse_jobs(
      "restart: 1m30s\n"
      "jobs:\n"
      "  - {name: a, steps: 20000, arrival: 1h, speeds: {4: 2.7, 1: 0.8, 2: 1.5}, least_gpus: 2, request_gpus: 4}\n"
      "  - {name: b, steps: 1, results: runs/b, where: gpus <= 8, most_gpus: 8}\n",
      "folder/jobs.yaml");
  CHECK(file.restart == 90 * kSecond_ns);
  REQUIRE(file.jobs.size() == 2);
  const JobEntry &a = file.jobs[0], &b = file.jobs[1];
  CHECK((a.job.name == "a" && a.job.steps == 20'000 && a.job.arrival == 3'600 * kSecond_ns && a.job.request == 4));
  CHECK(pairs_of(a.job.curve) == Points{{2, 1'500'000'000'000}, {4, 2'700'000'000'000}});
  CHECK((b.results == "folder/runs/b" && b.where == "gpus <= 8" && b.job.curve.empty() && b.line == 4));
}

TEST_CASE("whatever is wrong in a file of jobs is refused with its line, its key and what would be right") {
  const std::string speeds = "speeds: {8: 1.5, 16: 2}";
  CHECK(refusal(job(speeds)).empty());
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"- a\n", "jobs.yaml:1: a file of jobs must be a mapping with the keys jobs, restart, not a list"},
           {"restart: 1s\n", "jobs.yaml:1: 'jobs' is missing, as in `jobs: [{name: a,"},
           {"jobs: []\n", "jobs.yaml:1: 'jobs' must be a list of 1 to 1000 jobs, not 0"},
           {"restart: 2d\n" + job(speeds), "jobs.yaml:1: 'restart' must be at most 1d"},
           {"restart: soon\n" + job(speeds), "jobs.yaml:1: 'restart' soon: it takes a duration, as in 90s"},
           {job("arival: 1h\n    " + speeds), "jobs.yaml:4: unknown key 'arival'; did you mean 'arrival'?"},
           {job("arrival: [1]\n    " + speeds),
            "jobs.yaml:4: 'arrival' must be a duration, as in 90s, 20m, 1h30m or 2d"},
           {"jobs:\n  - steps: 1\n", "jobs.yaml:2: 'name' is missing"},
           {"jobs:\n  - name: a\n", "jobs.yaml:2: 'steps' is missing"},
           {"jobs:\n  - {name: a, steps: 0}\n", "jobs.yaml:2: 'steps' must be an integer from 1 to "},
           {job("arrival: 0"), "jobs.yaml:2: job 'a' must have either 'speeds'"},
           {job(speeds + "\n    results: runs/a"), "jobs.yaml:2: job 'a' must have either 'speeds'"},
           {job(speeds + "\n    where: tp == 8"), "jobs.yaml:5: 'where' belongs to 'results'"},
           {job("speeds: {}"),
            "jobs.yaml:4: 'speeds' must map numbers of GPUs to steps per second, as in {8: 0.8, 16: 1.5}"},
           {job("speeds: [1, 2]"), "jobs.yaml:4: 'speeds' must map numbers of GPUs to steps per second"},
           {job("speeds: {none: 1}"),
            "jobs.yaml:4: a key of 'speeds' must be a number of GPUs from 1 to 1000000, not 'none'"},
           {job("speeds: {0: 1}"), "jobs.yaml:4: a key of 'speeds' must be a number of GPUs"},
           {job("speeds: {8: 0}"), "jobs.yaml:4: 'speeds.8' must be a number (steps/s) from 1e-09 to 1000000, not 0"},
           {job("speeds: {8: fast}"), "jobs.yaml:4: 'speeds.8' must be a number"},
           {job("speeds: {8: 1, 08: 2}"), "jobs.yaml:4: 'speeds' has 8 GPUs twice"},
           {job(speeds + "\n    least_gpus: 32"),
            "jobs.yaml:2: job 'a' has speeds on 8, 16 GPUs, none of them from 32 to"},
           {job(speeds + "\n    least_gpus: 8\n    most_gpus: 4"),
            "jobs.yaml:6: 'most_gpus' must be an integer from 8 to"},
           {job(speeds + "\n    request_gpus: 12"),
            "jobs.yaml:2: job 'a' requests 12 GPUs, but its speed is known on 8, 16"},
           {job("speeds: {32: 1}"), "jobs.yaml:2: job 'a' needs at least 32 GPUs, and there are 16"},
           {job("speeds: {8: 1, 32: 2}\n    request_gpus: 32"),
            "jobs.yaml:2: job 'a' requests 32 GPUs, and there are 16"},
           {job(speeds) + "  - {name: a, steps: 1, speeds: {1: 1}}\n", "jobs.yaml:5: job 'a' is there twice"},
           {"jobs:\n  - {name: a, steps: 1000000000000, speeds: {1: 1e-9}}\n",
            "jobs.yaml: one after another at their"}})
    CHECK_THAT(refusal(text), Catch::StartsWith(message));
}

TEST_CASE("a job's speed on so many GPUs is that of the fastest experiment that ran on them") {
  const io::Results results = results_of({{8, "ran", 2, 4096},
                                          {8, "ran", 1.6, 4096},
                                          {8, "ran", 3, 4096},
                                          {4, "out_of_memory", 0, 0},
                                          {16, "ran", 1, 4096},
                                          {32, "failed", 0, 0}});
  CHECK(pairs_of(predicted_speeds(results, "", "r.h5")) == Points{{8, 625'000'000'000}, {16, 1'000'000'000'000}});
  CHECK(pairs_of(predicted_speeds(results, "step_time_s >= 2", "r.h5")) == Points{{8, 500'000'000'000}});
  CHECK_THROWS_WITH(predicted_speeds(results, "gpus > 99", "r.h5"), "r.h5: no experiment ran where gpus > 99");
  CHECK_THROWS_WITH(predicted_speeds(results_of({}), "", "r.h5"), "r.h5: no experiment ran");
  CHECK_THROWS_WITH(predicted_speeds(results, "gpu > 9", "r.h5"), Catch::Contains("did you mean 'gpus'?"));
}

TEST_CASE("steps that train different numbers of tokens are not counted together") {
  const io::Results results = results_of({{8, "ran", 2, 4096}, {16, "ran", 2, 8192}});
  CHECK_THROWS_WITH(predicted_speeds(results, "", "r.h5"),
                    Catch::StartsWith("r.h5: the steps of experiments 0 and 1 train 4096 and 8192 tokens"));
  CHECK(predicted_speeds(results, "gpus == 8", "r.h5").size() == 1);
}

TEST_CASE("allocate says what is missing with exit code 2, and names a job whose results cannot be read") {
  TemporaryFolder folder;
  folder.put("jobs.yaml", "jobs:\n  - {name: a, steps: 1, results: nowhere}\n");
  const std::string path = (folder.path / "jobs.yaml").string();
  CHECK(testing::say({"allocate", path}).exit_code == 2);
  CHECK(testing::say({"allocate", path, "--gpus", "0"}).exit_code == 2);
  CHECK(testing::say({"allocate", path, "--gpus", "8"}).exit_code == 2);
  folder.put("good.yaml", "jobs:\n  - {name: a, steps: 30, speeds: {8: 0.5}}\n");
  const testing::Said said = testing::say({"allocate", (folder.path / "good.yaml").string(), "--gpus", "8"});
  CHECK(said.exit_code == 0);
  CHECK_THAT(said.output, Catch::Contains("at 1m00s: a done"));
}
