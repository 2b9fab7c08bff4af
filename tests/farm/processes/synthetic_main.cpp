// A program with a synthetic job, for tests of the whole farm with real processes: the same run_job() as `sweep`.
// synthetic run DIR -j N [--in-process] [--store S] tasks=... ; results go to DIR/answer as text.
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iostream>

#include "core/base/error.hpp"
#include "farm/run/run_job.hpp"
#include "farm/system/host_resources.hpp"
#include "io/log/file.hpp"
#include "io/log/run_directory.hpp"
#include "tests/farm/synthetic_job.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;

namespace {

void write_answer(const std::filesystem::path& directory, const TaskQueue& schedule) {
  std::string text;
  for (std::uint32_t task = 0; task < schedule.total(); ++task)
    text += schedule.outcome(task).ok() ? schedule.outcome(task).bytes + "\n"
                                        : std::string(name_of(schedule.outcome(task).status)) + "\n";
  io::write_atomically(directory / "answer", text);
}

void write_figures(const std::filesystem::path& directory, const RunStatistics& statistics) {
  io::write_atomically(directory / "figures", std::to_string(statistics.from_journal) + " " +
                                                  std::to_string(statistics.from_store) + " " +
                                                  std::to_string(statistics.computed) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  Zygote zygote(synthetic::jobs());
  // A rank that dies before it has started MPI.
  const char* const dies = std::getenv("SYNTHETIC_DIES");
  if (dies != nullptr && launched_rank() == std::atoi(dies)) ::raise(SIGKILL);
  try {
    RunOptions options;
    std::string serialized;
    bool resumes = false;  // a rank whose supervisor has begun the run
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "resume") {
        resumes = true;
      } else if (word == "-j") {
        options.ranks = std::stoi(argv[++i]);
      } else if (word == "--in-process") {
        options.in_process = true;
      } else if (word == "--store") {
        options.store = argv[++i];
      } else if (word == "--store-limit" || word == "--task-time" || word == "--threads") {
        ++i;  // of what a supervisor says, none of the tests asks for these
      } else if (word == "--start-time") {
        options.start_time = std::chrono::seconds(std::stoi(argv[++i]));
      } else if (word.find('=') != std::string::npos) {
        serialized += word + " ";
      } else {
        options.directory = word;
      }
    }
    if (resumes && !is_follower()) serialized = io::read_serialized_sweep(options.directory);
    RunHooks hooks;
    hooks.write_results = [&](Job&, const TaskQueue& schedule, const RunStatistics& statistics) {
      if (!schedule.complete()) return;
      write_answer(options.directory, schedule);
      write_figures(options.directory, statistics);
    };
    return run_job(options, is_follower() ? "" : serialized, zygote, hooks).exit_code;
  } catch (const core::InputError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 70;
  }
}
