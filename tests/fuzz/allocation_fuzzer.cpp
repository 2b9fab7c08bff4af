// Any text as the jobs of `manyworlds allocate`: a file that is refused, or jobs that all policies bring to their ends.
#include "core/base/error.hpp"
#include "farm/allocation/jobs_file.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm::allocation;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kGpus = 64;
  try {
    JobsFile file = parse_jobs({reinterpret_cast<const char*>(data), size}, "jobs.yaml");
    for (JobEntry& entry : file.jobs)
      if (!entry.results.empty()) set_curve(entry, {{8, kSpeedUnits}, {16, 2 * kSpeedUnits}}, file.name);
    const std::vector<Job> jobs = jobs_for(file, kGpus);
    for (const Policy policy : {Policy::marginal_gain, Policy::fifo, Policy::drf}) {
      const Schedule schedule = schedule_jobs(jobs, {kGpus, file.restart}, policy);
      for (std::size_t job = 0; job < jobs.size(); ++job)
        fuzz::require(jobs[job].arrival <= schedule.starts[job] && schedule.starts[job] < schedule.ends[job]);
    }
  } catch (const core::InputError&) {
  }
  return 0;
}
