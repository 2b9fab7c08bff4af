// The farm with real processes, and what is left when they are killed.
#include <nlohmann/json.hpp>

#include "tests/farm/processes/run_program.hpp"
#include "tests/farm/synthetic_job.hpp"

using namespace manyworlds::farm;
using namespace manyworlds::farm::synthetic;

namespace {

// What takes longer hangs: a machine may be as busy as it likes.
constexpr auto kLongest = 600s;

// About 8 seconds of work for one worker.
const std::string kJob = "tasks=400 us=20000 seed=7";

std::string expected(const std::string& serialized) {
  std::string text;
  for (const auto& result : plain_loop("tasks=400 us=0 seed=" + serialized)) text += result + "\n";
  return text;
}

/// Waits until every rank simulates and some results are on disk.
std::vector<Rank> wait_until_busy(const fs::path& run, std::size_t ranks) {
  std::vector<Rank> found;
  REQUIRE(eventually([&] { return journalled(run) > 4'000 && (found = ranks_of(run)).size() == ranks; }, kLongest));
  return found;
}

/// Two ranks under mpirun that part in that way (parting_main.cpp).
pid_t start_parting(const fs::path& log, const std::string& way, const std::vector<std::string>& more = {}) {
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) ::setenv(name, "1", 0);
  ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  ::setenv("OMPI_MCA_plm_rsh_agent", "sh", 0);
  std::vector<std::string> words{"mpirun", "--oversubscribe", "--bind-to", "none"};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"-n", "2", PARTING_PROGRAM, way});
  return start_program(log, words);
}

void check_nothing_left(const fs::path& run) {
  CHECK(eventually([&] { return processes_of(run).empty(); }, kLongest));
}

}  // namespace

TEST_CASE("one worker, three in this process and three ranks give the bytes of a plain loop") {
  Directory directory;
  for (const std::string words : {"-j 1", "-j 3 --in-process", "-j 3"}) {
    INFO(words);
    const fs::path run_directory = directory.path / ("run" + words);
    CHECK(run(run_directory, "tasks=400 seed=7 us=100 " + words) == 0);
    CHECK(slurp(run_directory / "answer") == expected("7"));
    check_nothing_left(run_directory);
  }
}

TEST_CASE("a killed simulator costs its task another try and nothing else") {
  Directory directory;
  const fs::path run_directory = directory.path / "run";
  const pid_t program = start(run_directory, kJob + " -j 3");
  for (const Rank& rank : wait_until_busy(run_directory, 3)) ::kill(rank.simulator, SIGKILL);
  CHECK(wait_for(program, kLongest) == 0);
  CHECK(slurp(run_directory / "answer") == expected("7"));
  check_nothing_left(run_directory);
}

TEST_CASE("a killed zygote is started anew, in ranks and without") {
  for (const std::string words : {" -j 2", " -j 1 --in-process"}) {
    INFO(words);
    Directory directory;
    const fs::path run_directory = directory.path / "run";
    const pid_t program = start(run_directory, kJob + words);
    for (int round = 0; round < 2; ++round) {  // also one that was started anew
      std::vector<pid_t> killed;
      for (const Rank& rank : wait_until_busy(run_directory, words == " -j 2" ? 2 : 1)) {
        ::kill(rank.zygote, SIGKILL);
        killed.push_back(rank.zygote);
      }
      CHECK(eventually([&] { return none_left(killed); }, kLongest));
    }
    CHECK(wait_for(program, kLongest) == 0);
    CHECK(slurp(run_directory / "answer") == expected("7"));
    check_nothing_left(run_directory);
  }
}

TEST_CASE("a zygote that is killed again as it forks its first simulator is started once more") {
  const auto child_of = [](pid_t process) {
    const std::string name = std::to_string(process);
    const std::string children = slurp("/proc/" + name + "/task/" + name + "/children");
    return children.empty() ? pid_t{0} : std::stoi(children);
  };
  for (int round = 0; round < 8; ++round) {  // the moment is met by chance
    Directory directory;
    const fs::path run_directory = directory.path / "run";
    const pid_t program = start(run_directory, "tasks=60 us=20000 seed=7 -j 1 --in-process");
    const pid_t first = wait_until_busy(run_directory, 1).front().zygote;
    ::kill(first, SIGKILL);
    const auto end = std::chrono::steady_clock::now() + kLongest;
    const auto forked = [&](pid_t zygote) { return zygote != 0 && zygote != first && child_of(zygote) != 0; };
    pid_t next = 0;
    do next = child_of(program);
    while (!forked(next) && std::chrono::steady_clock::now() < end);
    REQUIRE(next != 0);
    ::kill(next, SIGKILL);
    CHECK(wait_for(program, kLongest) == 0);
    check_nothing_left(run_directory);
  }
}

TEST_CASE("a process that is stopped and continued takes its own silence for nobody's") {
  Directory directory;
  const fs::path run_directory = directory.path / "run";
  const pid_t program = start(run_directory, kJob + " -j 1 --in-process");
  wait_until_busy(run_directory, 1);
  ::kill(program, SIGSTOP);
  std::this_thread::sleep_for(33s);  // longer than a worker waits for a word of its coordinator
  ::kill(program, SIGCONT);
  CHECK(wait_for(program, kLongest) == 0);
  CHECK(slurp(run_directory / "answer") == expected("7"));
}

TEST_CASE("a task that crashes its simulator is named, and the rest is computed") {
  Directory directory;
  for (const std::string words : {"-j 1", "-j 3"}) {
    const fs::path run_directory = directory.path / ("run" + words);
    CHECK(run(run_directory, "tasks=60 seed=9 crash=7 " + words) == 3);
    const auto complete = nlohmann::json::parse(slurp(run_directory / "complete.json"));
    CHECK(complete["state"] == "complete");
    CHECK(complete["failures"][0]["task"] == 7);
    CHECK(complete["failures"][0]["class"] == "crash");
    CHECK_THAT(complete["failures"][0]["reason"].get<std::string>(), Catch::Contains("SIGSEGV"));
    CHECK(complete["done"] == 60);
  }
  CHECK(slurp(directory.path / "run-j 1/answer") == slurp(directory.path / "run-j 3/answer"));
}

TEST_CASE("after kill -9 of everything nothing is left, and the same line goes on to the same bytes") {
  Directory directory;
  const fs::path run_directory = directory.path / "run";
  const pid_t program = start(run_directory, kJob + " -j 3");
  wait_until_busy(run_directory, 3);
  for (const auto& [pid, parent] : processes_of(run_directory)) ::kill(pid, SIGKILL);
  CHECK(wait_for(program, kLongest) == 128 + SIGKILL);
  check_nothing_left(run_directory);
  CHECK_FALSE(fs::exists(run_directory / "complete.json"));

  CHECK(run(run_directory, kJob + " -j 2") == 0);
  CHECK(slurp(run_directory / "answer") == expected("7"));
  std::uint64_t from_journal = 0, from_store = 0, computed = 0;
  std::istringstream(slurp(run_directory / "figures")) >> from_journal >> from_store >> computed;
  CHECK(from_journal > 10);
  CHECK(from_journal + computed == 400);
}

TEST_CASE("a killed supervisor takes everything with it") {
  Directory directory;
  const fs::path run_directory = directory.path / "run";
  const pid_t program = start(run_directory, kJob + " -j 3");
  wait_until_busy(run_directory, 3);
  ::kill(program, SIGKILL);
  wait_for(program, kLongest);
  check_nothing_left(run_directory);
}

TEST_CASE("SIGUSR1 drains: exit 75, and the same line goes on to the same bytes") {
  Directory directory;
  for (const std::string words : {" -j 1", " -j 3"}) {
    INFO(words);
    const fs::path run_directory = directory.path / ("run" + words);
    const pid_t program = start(run_directory, kJob + words);
    wait_until_busy(run_directory, words == " -j 1" ? 1 : 3);
    ::kill(program, SIGUSR1);
    CHECK(wait_for(program, kLongest) == 75);
    CHECK(nlohmann::json::parse(slurp(run_directory / "complete.json"))["state"] == "drained");
    CHECK_FALSE(fs::exists(run_directory / "answer"));
    check_nothing_left(run_directory);
    CHECK(run(run_directory, kJob + words) == 0);
    CHECK(slurp(run_directory / "answer") == expected("7"));
  }
}

TEST_CASE("the ranks that remain finish the run of one that was killed") {
  Directory directory;
  const fs::path run_directory = directory.path / "run";
  const pid_t program = start(run_directory, kJob + " -j 3");
  for (const Rank& rank : wait_until_busy(run_directory, 3))
    if (rank.number == 2) ::kill(rank.messages, SIGKILL);
  CHECK(wait_for(program, kLongest) == 0);
  CHECK(slurp(run_directory / "answer") == expected("7"));
  check_nothing_left(run_directory);
}

TEST_CASE("without its coordinator a run ends, says so, and goes on later") {
  Directory directory;
  const fs::path run_directory = directory.path / "run";
  const pid_t program = start(run_directory, kJob + " -j 3");
  for (const Rank& rank : wait_until_busy(run_directory, 3))
    if (rank.number == 0) ::kill(rank.messages, SIGKILL);
  CHECK(wait_for(program, kLongest) == 70);
  check_nothing_left(run_directory);
  CHECK(run(run_directory, kJob + " -j 2") == 0);
  CHECK(slurp(run_directory / "answer") == expected("7"));
}

TEST_CASE("a rank that dies before MPI has started ends the run in time, with a reason, and the next life goes on") {
  for (const std::string rank : {"0", "1"}) {
    INFO(rank);
    Directory directory;
    const fs::path run_directory = directory.path / "run";
    ::setenv("SYNTHETIC_DIES", rank.c_str(), 1);
    const pid_t program = start(run_directory, kJob + " -j 2 --start-time 3s");
    ::unsetenv("SYNTHETIC_DIES");
    CHECK(wait_for(program, kLongest) == 70);
    check_nothing_left(run_directory);
    const auto complete = nlohmann::json::parse(slurp(run_directory / "complete.json"));
    CHECK(complete.at("state") == "failed");
    CHECK(complete.at("exit") == 70);
    CHECK_THAT(complete.at("reason").get<std::string>(),
               Catch::Contains(rank == "0" ? "began to coordinate" : "did not all start within 3s"));
    CHECK_THAT(slurp(run_directory.string() + ".log"), Catch::Contains("resumes it"));
    CHECK(run(run_directory, kJob + " -j 2") == 0);
    CHECK(slurp(run_directory / "answer") == expected("7"));
  }
}

TEST_CASE("SIGTERM ends a run whose ranks cannot start, at once") {
  Directory directory;
  const fs::path run_directory = directory.path / "run";
  ::setenv("SYNTHETIC_DIES", "1", 1);
  const pid_t program = start(run_directory, kJob + " -j 2 --start-time 3600s");
  ::unsetenv("SYNTHETIC_DIES");
  REQUIRE(eventually([&] { return processes_of(run_directory).size() >= 4; }, kLongest));
  ::kill(program, SIGTERM);
  CHECK(wait_for(program, kLongest) == 75);
  check_nothing_left(run_directory);
  CHECK(run(run_directory, kJob + " -j 2") == 0);
  CHECK(slurp(run_directory / "answer") == expected("7"));
}

TEST_CASE("asked to stop before its ranks listen, a run drains all the same") {
  for (const int when_ms : {0, 50, 100, 200, 300, 400}) {
    INFO(when_ms);
    Directory directory;
    const fs::path run_directory = directory.path / "run";
    const pid_t program = start(run_directory, "tasks=4000 us=20000 seed=7 -j 2");
    const auto launched = [&] {  // mpirun is another program
      const auto all = processes_of(run_directory);
      return std::any_of(all.begin(), all.end(), [](const auto& one) { return !is_program(one.first); });
    };
    REQUIRE(eventually(launched, kLongest));
    std::this_thread::sleep_for(std::chrono::milliseconds(when_ms));
    ::kill(program, SIGINT);
    CHECK(wait_for(program, kLongest) == 75);
    check_nothing_left(run_directory);
  }
}

TEST_CASE("a store serves another run, and its answer is the same") {
  Directory directory;
  const std::string words = "tasks=400 seed=7 -j 2 --store " + (directory.path / "store").string();
  CHECK(run(directory.path / "one", words) == 0);
  CHECK(run(directory.path / "two", words) == 0);
  CHECK(slurp(directory.path / "one" / "figures") == "0 0 400\n");
  CHECK(slurp(directory.path / "two" / "figures") == "0 200 200\n");  // every other task may be stored
  CHECK(slurp(directory.path / "one" / "answer") == slurp(directory.path / "two" / "answer"));
}

TEST_CASE("a directory in use, of another sweep, or impossible is bad input before a rank starts") {
  Directory directory;
  const fs::path run_directory = directory.path / "run";
  const pid_t program = start(run_directory, kJob + " -j 2");
  wait_until_busy(run_directory, 2);
  CHECK(run(run_directory, kJob + " -j 2") == 2);
  ::kill(program, SIGUSR1);
  CHECK(wait_for(program, kLongest) == 75);
  CHECK(run(run_directory, "tasks=5 -j 2") == 2);
  CHECK(run("/proc/nowhere", "tasks=5 -j 2") == 2);
  CHECK(run(directory.path / "none", "tasks=5 -j 0") == 2);
}

TEST_CASE("a job that cannot be planned ends the run, and complete.json has why") {
  Directory directory;
  const fs::path run_directory = directory.path / "run";
  CHECK(run(run_directory, "tasks=5 oops=1 -j 2") == 70);
  const auto complete = nlohmann::json::parse(slurp(run_directory / "complete.json"));
  CHECK(complete.at("state") == "failed");
  CHECK(complete.at("exit") == 70);
  CHECK(complete.at("reason") == "unknown key oops");
  check_nothing_left(run_directory);
}

TEST_CASE("ranks that live end MPI together, however late one is and whatever it still sends") {
  Directory directory;
  const fs::path log = directory.path / "log";
  for (const std::string way : {"late_result", "slow_leader", "slow_follower", "slow_after"}) {
    INFO(way);
    CHECK(wait_for(start_parting(log, way), kLongest) == 0);
    CHECK_THAT(slurp(log), !Catch::Contains("exiting improperly"));
  }
  std::size_t finalized = 0;
  const std::string said = slurp(log), line = "finalized\n";
  for (std::size_t at = said.find(line); at != std::string::npos; at = said.find(line, at + 1)) ++finalized;
  CHECK(finalized == 8);
}

TEST_CASE("a rank that died, or a coordinating one that failed, is waited for no longer than it takes to know") {
  Directory directory;
  const fs::path log = directory.path / "log";
  for (const std::string way : {"killed_follower", "failed_leader"}) {
    INFO(way);
    CHECK(wait_for(start_parting(log, way, {"--enable-recovery"}), kLongest) != -1);
    CHECK_THAT(slurp(log), !Catch::Contains("finalized"));
  }
}
