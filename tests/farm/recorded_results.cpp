// Records of journals and stores whose checksums fit and whose content somebody made up: a job takes what it can use.
#include <catch2/catch.hpp>

#include "core/step/run/result.hpp"
#include "farm/plan/collective_result.hpp"
#include "farm/status/tasks_by_key.hpp"
#include "io/log/keyed_payload.hpp"
#include "tests/farm/sweep_samples.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

TEST_CASE("a job takes every result of its own, and nothing that its readers could not use") {
  const SweepJob job(serialize_job(small_sweep(""), {}));
  const auto outcomes = run_all(job);
  REQUIRE(job.plan().collectives.size() > 0);
  for (std::uint32_t task = 0; task < outcomes.size(); ++task) {
    CAPTURE(task);
    const std::string& bytes = outcomes[task].bytes;
    CHECK(job.is_valid_result(task, bytes));
    CHECK_FALSE(job.is_valid_result(task, bytes + "x"));
    CHECK_FALSE(job.is_valid_result(task, std::string(bytes.size(), '\xff')));
    for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 50)
      CHECK_FALSE(job.is_valid_result(task, bytes.substr(0, size)));
    if (job.plan().is_step(task)) {
      auto step = core::step::decode_step(bytes);
      step.by_kind.resize(7);
      CHECK_FALSE(job.is_valid_result(task, core::step::encode(step)));
      step = core::step::decode_step(bytes);
      step.step_ps = 0;
      CHECK_FALSE(job.is_valid_result(task, core::step::encode(step)));
    } else {
      auto collective = decode_collective(bytes);
      collective.result.exits.pop_back();
      CHECK_FALSE(job.is_valid_result(task, encode(collective)));
      collective = decode_collective(bytes);
      collective.result.exits[0] = -1;
      CHECK_FALSE(job.is_valid_result(task, encode(collective)));
    }
  }
}

TEST_CASE("a record is held by the tasks of its key, and one of nobody's key is nobody's affair") {
  const SweepJob job(serialize_job(small_sweep(""), {}));
  const auto outcomes = run_all(job);
  const TasksByKey tasks(job);
  const core::sharing::Key key = job.tasks()[0].key;
  CHECK(tasks.with_key(key) == std::vector<std::uint32_t>{0});
  CHECK(tasks.accept({io::kResultRecord, key, outcomes[0].bytes}));
  CHECK_FALSE(tasks.accept({io::kResultRecord, key, "made up"}));
  CHECK(tasks.accept({io::kFailureRecord, key, "crash\nwhy"}));
  for (const char* none : {"", "crash", "ok\n", "input\n", "pending\n", "Crash\nwhy"})
    CHECK_FALSE(tasks.accept({io::kFailureRecord, key, none}));
  CHECK(tasks.accept({io::kResultRecord, {{1, 2}, {3, 4}, 5}, "made up"}));
}
