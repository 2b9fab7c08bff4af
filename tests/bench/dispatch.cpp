// How many tasks a second coordinator and workers move when tasks are empty: all parties take turns in one thread, so
// CPU seconds are those of one core. One line of JSON for each number of workers.
// dispatch [--tasks N] [--journal] WORKERS...
#include <fmt/format.h>

#include <ctime>
#include <iostream>

#include "core/base/error.hpp"
#include "farm/coordinator/coordinator.hpp"
#include "farm/protocol/in_process_transport.hpp"
#include "farm/protocol/job_signature.hpp"
#include "farm/worker/simulating_worker.hpp"
#include "farm/worker/worker.hpp"
#include "io/log/journal.hpp"
#include "tests/farm/synthetic_job.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;

namespace {

double cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Holds one task until the loop comes round; its answer is made beforehand.
struct EmptySimulator final : Simulator {
  void build(const std::string&) override { built = true; }
  void run(std::uint32_t task, const std::string&, const std::vector<std::string>&) override { running = task; }
  bool built = false;
  std::optional<std::uint32_t> running;
};

struct Seat {
  EmptySimulator simulator;
  std::unique_ptr<Worker> worker;
};

struct Figures {
  double all_s = 0, coordinator_s = 0;
  std::uint64_t messages = 0;  // to the coordinator
};

Figures dispatch(const synthetic::SyntheticJob& job, const std::vector<std::string>& answers, int workers,
                 io::Journal* journal) {
  TaskQueue schedule(job.tasks());
  if (journal != nullptr)
    schedule.on_settled = [&](std::uint32_t task, const Outcome& outcome) {
      journal->append(1, job.tasks()[task].key, outcome.bytes);
    };
  InProcessNetwork network(workers);
  const std::uint64_t signature = job_signature(job.common_spec());
  Coordinator coordinator(schedule, network.endpoint(0), job);
  std::vector<Seat> seats(static_cast<std::size_t>(workers));
  for (int endpoint = 0; endpoint < workers; ++endpoint) {
    Seat& seat = seats[static_cast<std::size_t>(endpoint)];
    seat.worker = std::make_unique<Worker>(network.endpoint(endpoint), 0, seat.simulator, 0);
  }
  Figures figures;
  const double begin = cpu_s();
  while (!coordinator.finished(0)) {
    for (int endpoint = 0; endpoint < workers; ++endpoint) {
      Seat& seat = seats[static_cast<std::size_t>(endpoint)];
      while (const auto envelope = network.endpoint(endpoint).receive()) {
        if (endpoint == 0) {
          const double before = cpu_s();
          const Message message = decode_message(envelope->message);
          if (for_coordinator(message.kind)) {
            coordinator.receive(envelope->from, message, 0);
            figures.coordinator_s += cpu_s() - before;
            ++figures.messages;
            continue;
          }
        }
        seat.worker->receive(decode_message(envelope->message), 0);
      }
      if (std::exchange(seat.simulator.built, false)) seat.worker->serves(signature, 0);
      if (const auto task = std::exchange(seat.simulator.running, std::nullopt))
        seat.worker->computed(*task, {Status::ok, answers[*task], 1}, 0);
    }
  }
  figures.all_s = cpu_s() - begin;
  MANYWORLDS_CHECK(schedule.complete() && schedule.failed() == 0, "{} of {} tasks", schedule.done(), schedule.total());
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t tasks = 100'000;
  bool journalling = false;
  std::vector<int> workers;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--tasks" && i + 1 < argc)
      tasks = static_cast<std::uint32_t>(std::stoul(argv[++i]));
    else if (word == "--journal")
      journalling = true;
    else
      workers.push_back(std::stoi(word));
  }
  const std::string serialized = fmt::format("tasks={} seed=1", tasks);
  const synthetic::SyntheticJob job(serialized);
  const std::vector<std::string> answers = synthetic::plain_loop(serialized);
  for (const int count : workers) {
    const TemporaryFolder folder;
    std::unique_ptr<io::Journal> journal;
    if (journalling) journal = std::make_unique<io::Journal>(folder.path, "dispatch");
    const Figures figures = dispatch(job, answers, count, journal.get());
    std::cout << fmt::format(R"({{"workers": {}, "tasks": {}, "journal": {}, "cpu_s": {:.4f}, "tasks_per_s": {:.0f}, )"
                             R"("coordinator_us_per_message": {:.3f}, "messages_per_task": {:.3f}}})",
                             count, tasks, journalling, figures.all_s, tasks / figures.all_s,
                             1e6 * figures.coordinator_s / static_cast<double>(figures.messages),
                             static_cast<double>(figures.messages) / tasks)
              << std::endl;
  }
}
