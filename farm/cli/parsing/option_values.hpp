// Parsers for the values of command-line options: sizes, durations, and all values of option tables.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/base/options.hpp"

namespace manyworlds::farm::commands {

/// Parses `text`, the value of `option` ("--bytes"), as an option table does. Throws core::InputError.
core::OptionValue parse_option_value(const std::string& text, const core::OptionInfo& info, const std::string& option);

/// Parses a number of bytes: 80GiB, 512MB, 4096. Throws core::InputError for less than `minimum`.
std::int64_t parse_size(const std::string& text, const std::string& option, std::int64_t minimum = 0);

/// Parses days, hours, minutes and seconds: 90s, 20m, 1h30m, 2d, or 0. Throws core::InputError.
std::chrono::seconds parse_duration(const std::string& text, const std::string& option);

}  // namespace manyworlds::farm::commands
