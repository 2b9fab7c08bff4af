// From argv to a command and from its errors to an exit code.
#pragma once

#include "farm/sweep_job.hpp"
#include "farm/zygote.hpp"

namespace manyworlds::farm {

/// The whole of main(). Must be called before anything starts a thread: commands that simulate fork their zygote first.
/// `factory` makes the job of a frozen sweep: a SweepJob or what is derived from it.
int command_line(int argc, char** argv, JobFactory factory = make_sweep_job);

}  // namespace manyworlds::farm
