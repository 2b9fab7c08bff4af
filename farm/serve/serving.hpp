// The life of the server's process: its bounds, and when it ends.
#pragma once

#include <filesystem>

#include "farm/http/address.hpp"

namespace manyworlds::farm::serve {

enum class Until {
  told,       // SIGINT or SIGTERM
  input_ends  // standard input, which whoever started it holds open; or SIGTERM
};

/// Serves at the lowest priority and in bounded memory. Throws InputError and IoError.
void serve_run(const std::filesystem::path& run_directory, Listener listener, const std::string& token, Until until);

}  // namespace manyworlds::farm::serve
