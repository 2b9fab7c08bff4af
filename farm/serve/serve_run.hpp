// The main loop of the server process: its resource limits and its end.
#pragma once

#include <filesystem>

#include "farm/http/address.hpp"

namespace manyworlds::farm::serve {

enum class StopCondition {
  on_signal,       // ends on SIGINT or SIGTERM
  on_end_of_input  // ends with standard input, which the parent process holds open, or on SIGTERM
};

/// Serves the run at the lowest priority and in bounded memory. Throws core::InputError and core::IoError.
void serve_run(const std::filesystem::path& run_directory, Listener listener, const std::string& token,
               StopCondition stop_condition);

}  // namespace manyworlds::farm::serve
