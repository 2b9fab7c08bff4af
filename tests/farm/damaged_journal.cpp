// A run whose journal lost its end or had a bit flipped goes on to the same answer: what is whole counts, nothing else.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "farm/run/run_recorder.hpp"
#include "tests/farm/synthetic_job.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds::farm;
using namespace manyworlds::farm::synthetic;
namespace fs = std::filesystem;

namespace {

const std::string kFrozen = "tasks=9 seed=4";

/// One life of a run: what it finds, and what is settled when it has gone on to the end.
struct Life {
  std::size_t found = 0;
  std::vector<std::string> found_bytes, bytes;  // by task; empty where nothing was found
};

Life live(const fs::path& directory) {
  SyntheticJob job(kFrozen);
  SyntheticRunner runner(job.common_spec());
  TaskQueue schedule(job.tasks());
  const RunHooks hooks;
  RunOptions options;
  options.directory = directory;
  auto run = begin_run(options, kFrozen);
  RunRecorder ledger(options, run, 1, job, schedule, hooks);
  Life life;
  life.found = schedule.done();
  for (std::uint32_t task = 0; task < schedule.total(); ++task)
    life.found_bytes.push_back(schedule.settled(task) ? schedule.outcome(task).bytes : "");
  while (const auto task = schedule.take()) {
    std::vector<std::string> inputs;
    for (const auto input : job.tasks()[*task].inputs) inputs.push_back(schedule.outcome(input).bytes);
    schedule.settle(*task, {Status::ok, runner.run(job.spec(*task), inputs), 1});
  }
  REQUIRE(ledger.close(false).exit_code == 0);
  for (std::uint32_t task = 0; task < schedule.total(); ++task) life.bytes.push_back(schedule.outcome(task).bytes);
  return life;
}

struct Journal {
  fs::path path;
  std::string bytes;
  std::vector<std::size_t> records;  // where they begin, and the end
};

Journal journal_of(const fs::path& run) {
  Journal journal{fs::directory_iterator(run / "journal")->path(), "", {}};
  std::ifstream in(journal.path, std::ios::binary);
  journal.bytes.assign(std::istreambuf_iterator<char>(in), {});
  for (std::size_t at = journal.bytes.find("MWRC"); at != std::string::npos; at = journal.bytes.find("MWRC", at + 1))
    journal.records.push_back(at);
  journal.records.push_back(journal.bytes.size());
  return journal;
}

/// Puts `bytes` in place of the only journal of `run` and lives once more.
Life live_with(const fs::path& run, const Journal& journal, const std::string& bytes) {
  for (const auto& entry : fs::directory_iterator(run / "journal")) fs::remove(entry);
  std::ofstream(journal.path, std::ios::binary) << bytes;
  return live(run);
}

}  // namespace

TEST_CASE("a journal cut at any byte of its last two records, or with a bit flipped there, costs what it hit") {
  const manyworlds::TemporaryFolder folder;
  const fs::path run = folder / "run";
  const std::vector<std::string> expected = plain_loop(kFrozen);
  CHECK(live(run).bytes == expected);
  const Journal journal = journal_of(run);
  REQUIRE(journal.records.size() == expected.size() + 1);
  CHECK(live(run).found == expected.size());

  const std::size_t begin = *(journal.records.end() - 3);
  for (std::size_t at = begin; at < journal.bytes.size(); ++at) {
    INFO("byte " << at);
    const Life cut = live_with(run, journal, journal.bytes.substr(0, at));
    const auto whole = std::upper_bound(journal.records.begin(), journal.records.end(), at) - journal.records.begin();
    REQUIRE(cut.found == static_cast<std::size_t>(whole) - 1);
    REQUIRE(cut.bytes == expected);

    std::string flipped = journal.bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    const Life healed = live_with(run, journal, flipped);
    REQUIRE(healed.found == expected.size() - 1);
    for (std::size_t task = 0; task < expected.size(); ++task)
      REQUIRE((healed.found_bytes[task].empty() || healed.found_bytes[task] == expected[task]));
    REQUIRE(healed.bytes == expected);
  }
}
