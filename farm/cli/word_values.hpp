// What the text after a word of the command line means: sizes, durations, and whatever an option table takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/base/options.hpp"

namespace manyworlds::farm::commands {

/// The value that `text` after `word` ("--bytes") gives an option. Throws InputError.
core::OptionValue option_value(const std::string& text, const core::OptionInfo& info, const std::string& word);

/// Bytes: 80GiB, 512MB, 4096. Throws InputError below `minimum`.
std::int64_t size_of(const std::string& text, const std::string& word, std::int64_t minimum = 0);

/// Days, hours, minutes, seconds: 90s, 20m, 1h30m, 2d; or 0. Throws InputError.
std::chrono::seconds duration_of(const std::string& text, const std::string& word);

}  // namespace manyworlds::farm::commands
