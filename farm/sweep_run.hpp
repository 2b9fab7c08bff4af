// The one way in which `sweep` and `resume` run a sweep in a run directory and say what came out.
#pragma once

#include <string>

#include "farm/run_job.hpp"

namespace manyworlds::farm {

/// `frozen` as frozen_job() made it; of ranks only rank 0 needs it. `objective` ranks the table. Returns the exit code.
int run_sweep_job(const RunOptions& options, const std::string& frozen, const std::string& objective, bool json,
                  Zygote& zygote);

/// Throws InputError, naming `option`, unless something can be put at `path`; makes nothing.
void check_writable(const std::filesystem::path& path, const std::string& option);
/// The same for the store that `choice` names ("none" and "" as open_store() takes them).
void check_store(const std::string& choice);

}  // namespace manyworlds::farm
