// The program with simulations that misbehave on purpose: MISBEHAVE="crash 3, allocate 5, hang 7" says what the steps
// of experiments do; everything else is as in the program itself.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <sstream>

#include "farm/plan/sweep_job.hpp"
#include "farm/plan/sweep_runner.hpp"
#include "farm/verbs/entry/command_line.hpp"

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

constexpr std::string_view kMisdeed = "misdeed ";

class MisbehavingJob final : public SweepJob {
 public:
  using SweepJob::SweepJob;
  std::string spec(std::uint32_t task) const override {
    if (plan().is_step(task)) {
      const std::uint32_t experiment = plan().steps[task - plan().task_of_step(0)].experiment;
      if (const auto what = misdeeds_.find(experiment); what != misdeeds_.end())
        return std::string(kMisdeed) + what->second;
    }
    return SweepJob::spec(task);
  }

 private:
  std::map<std::uint32_t, std::string> misdeeds_ = misdeeds();
};

class MisbehavingRunner final : public SweepRunner {
 public:
  using SweepRunner::SweepRunner;
  std::string run(const std::string& spec, std::span<const std::string> inputs) override {
    if (spec.starts_with(kMisdeed)) misbehave(spec.substr(kMisdeed.size()));
    return SweepRunner::run(spec, inputs);
  }
};

}  // namespace

int main(int argc, char** argv) {
  return command_line(argc, argv,
                      {[](const std::string& serialized) { return std::make_unique<MisbehavingJob>(serialized); },
                       [](const std::string& common_spec, const RunnerOptions& options) {
                         return std::make_unique<MisbehavingRunner>(common_spec, options);
                       }});
}
