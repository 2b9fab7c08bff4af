#include "farm/effort/compute_alone.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/step/run/result.hpp"
#include "farm/protocol/frame.hpp"
#include "farm/worker/simulating_worker.hpp"

namespace manyworlds::farm {
namespace {

using std::chrono::steady_clock;

/// A simulating process that has computed nothing yet.
class NewProcess {
 public:
  NewProcess(const SweepJob& job, std::uint64_t memory_bytes, Zygote& zygote)
      : job_(job), zygote_(zygote), process_(zygote.spawn(memory_bytes)) {
    is_ready_ = write_frame(process_.socket, build_request(job.common_spec())) && reply().kind == Kind::ready;
  }
  ~NewProcess() {
    ::close(process_.socket);
    ::kill(process_.pid, SIGKILL);  // its pid cannot be reused before it is reaped
    try {
      zygote_.reap(process_.pid);
    } catch (const std::exception&) {  // the zygote is gone, and the process with it
    }
  }
  NewProcess(const NewProcess&) = delete;
  NewProcess& operator=(const NewProcess&) = delete;

  /// Appends the result of a task to those of its inputs, unless it is not there by `end`.
  void compute(std::uint32_t task, const std::vector<std::string>& inputs, steady_clock::time_point end,
               ComputedAlone& alone) {
    alone.state = State::impossible;
    if (!is_ready_ || !write_frame(process_.socket, run_request(task, job_.spec(task), inputs))) return;
    if (!arrives_by(end)) {
      alone.state = State::too_long;
      return;
    }
    SimulatorReply computed = reply();
    if (computed.kind != Kind::computed || !computed.outcome.ok()) return;
    alone.results.push_back(std::move(computed.outcome.bytes));
    alone.state = State::computed;
  }

 private:
  using Kind = SimulatorReply::Kind;
  using State = ComputedAlone::State;
  bool arrives_by(steady_clock::time_point end) const {
    pollfd waiting{process_.socket, POLLIN, 0};
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now()).count();
      const int found = ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000)));
      if (found >= 0 || errno != EINTR) return found > 0;
    }
  }
  SimulatorReply reply() {
    if (const auto frame = read_frame(process_.socket)) return decode_reply(*frame);
    SimulatorReply dead;
    dead.kind = Kind::incompatible;
    return dead;
  }

  const SweepJob& job_;
  Zygote& zygote_;
  Zygote::SimulatingProcess process_;
  bool is_ready_ = false;
};

}  // namespace

ComputeAlone in_new_processes(const SweepJob& job, std::uint64_t memory_bytes, Zygote& zygote) {
  return [&job, memory_bytes, &zygote](std::uint32_t task, std::chrono::duration<double> at_most) {
    const auto end = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(at_most);
    NewProcess process(job, memory_bytes, zygote);
    ComputedAlone alone;
    for (const std::uint32_t input : job.tasks()[task].inputs) {
      process.compute(input, {}, end, alone);
      if (!alone.ok()) return alone;
    }
    process.compute(task, std::vector<std::string>(alone.results), end, alone);
    return alone;
  };
}

Effort effort_of(const std::vector<std::string>& results) {
  const auto step = core::step::decode_step(results.back());
  Effort all{step.computed, step.cpu_s};
  for (std::size_t input = 0; input + 1 < results.size(); ++input) {
    const Effort effort = decode_collective(results[input]).effort;
    all.link_hops += effort.link_hops;
    all.cpu_s += effort.cpu_s;
  }
  return all;
}

}  // namespace manyworlds::farm
