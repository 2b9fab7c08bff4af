// The program with simulations that misbehave on purpose: MISBEHAVE="crash 3, allocate 5, hang 7" says what the steps
// of experiments do; everything else is as in the program itself.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <sstream>

#include "farm/command_line.hpp"
#include "farm/sweep_job.hpp"

using namespace manyworlds::farm;

namespace {

std::map<std::uint32_t, std::string> misdeeds() {
  std::map<std::uint32_t, std::string> all;
  const char* asked = std::getenv("MISBEHAVE");
  std::istringstream words(asked == nullptr ? "" : asked);
  std::uint32_t experiment = 0;
  for (std::string what; words >> what >> experiment; words.ignore()) all[experiment] = what;
  return all;
}

[[noreturn]] void allocate_without_end() {
  for (std::vector<std::string> kept;;) kept.emplace_back(std::size_t{16} << 20, 'x');
}

void misbehave(const std::string& what) {
  if (what == "crash") ::raise(SIGSEGV);
  if (what == "allocate") allocate_without_end();
  if (what == "throw") throw std::runtime_error("it throws");
  while (what == "hang") ::pause();
}

class MisbehavingJob final : public SweepJob {
 public:
  using SweepJob::SweepJob;
  std::string run(std::uint32_t task, std::span<const std::string> inputs) override {
    if (plan().is_step(task)) {
      const std::uint32_t experiment = plan().steps[task - plan().task_of_step(0)].experiment;
      if (const auto what = misdeeds_.find(experiment); what != misdeeds_.end()) misbehave(what->second);
    }
    return SweepJob::run(task, inputs);
  }

 private:
  std::map<std::uint32_t, std::string> misdeeds_ = misdeeds();
};

std::unique_ptr<Job> make_misbehaving_job(const std::string& frozen) {
  return std::make_unique<MisbehavingJob>(frozen);
}

}  // namespace

int main(int argc, char** argv) {
  return command_line(argc, argv, make_misbehaving_job);
}
