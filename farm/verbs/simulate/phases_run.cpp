#include "farm/verbs/simulate/phases_run.hpp"

#include <iostream>

#include "farm/phases/phases_report.hpp"
#include "farm/sweep/sweep_run.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm::commands {

int run_phases_job(const RunOptions& options, const experiments::phases::ExpandedPhases& expanded,
                   const std::string& serialized_job, bool json, Zygote& zygote) {
  bool failed = false;
  const auto report = [&](const io::Results& results) {
    const phases::Iteration iteration = phases::iteration_of(expanded, results);
    failed = iteration.problem() != nullptr;
    std::cout << (json ? iteration_json(expanded, iteration) : iteration_text(expanded, iteration));
  };
  const int code = run_sweep_job(options, serialized_job, report, zygote);
  return code == kExitDone && failed ? kExitFailed : code;
}

}  // namespace manyworlds::farm::commands
