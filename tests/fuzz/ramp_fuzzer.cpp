// Any text as the critical batches of `manyworlds ramp`: a file that is refused, or a schedule that takes no longer
// than any fixed batch.
#include <cmath>
#include <memory>

#include "core/base/error.hpp"
#include "farm/ramp/batch_schedule.hpp"
#include "farm/ramp/critical_file.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm::ramp;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr double kTokens = 1e9, kRounding = 1e-9;
  const std::vector<Candidate> candidates{
      {0, 8, 8e3, 1, 0}, {1, 16, 16e3, 1.4, 0}, {2, 16, 16e3, 1.3, 1}, {3, 64, 64e3, 3, 1}};
  try {
    const CriticalFile file = parse_critical_file({reinterpret_cast<const char*>(data), size}, "critical.yaml");
    std::unique_ptr<CriticalBatch> critical;
    if (file.points.empty())
      critical = std::make_unique<CriticalLaw>(file.law, 1e9, kTokens / 8e3);
    else
      critical = std::make_unique<MeasuredBatches>(file.points, file.batch_tokens);
    const double end = critical->steps_after(0, 8e3, kTokens);
    fuzz::require(end > 0 && end <= kTokens / 8e3 * (1 + kRounding));
    for (const double restart_s : {0.0, 100.0}) {
      const BatchSchedule best = best_schedule(*critical, candidates, end, restart_s, "results.h5");
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        const Leg fixed{i, end};
        const double time_s = follow(*critical, candidates, std::span(&fixed, 1), 0).time_s;
        fuzz::require(std::isfinite(time_s) && best.time_s <= time_s * (1 + kRounding));
      }
    }
  } catch (const core::InputError&) {
  }
  return 0;
}
