// The command line: from argv to a command, and from its errors to an exit code.
#pragma once

#include "farm/plan/sweep_job.hpp"
#include "farm/worker/zygote.hpp"

namespace manyworlds::farm {

/// The whole of main(). Must be called before a thread is started, because commands that simulate fork their zygote
/// first. `kind` is the kind of job of sweeps: sweep_jobs() or a kind derived from it.
int command_line(int argc, char** argv, JobKind kind = sweep_jobs());

}  // namespace manyworlds::farm
