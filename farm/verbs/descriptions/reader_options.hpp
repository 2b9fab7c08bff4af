// The options of `manyworlds program` for the readers of single formats.
#pragma once

#include <string>
#include <vector>

#include "experiments/traces/read_any.hpp"
#include "farm/cli/parsing/command.hpp"

namespace manyworlds::farm::commands {

void add_reader_options(cxxopts::Options& options);

/// Returns the options of a command line as experiments::traces::check_options() takes them.
std::vector<std::string> given_options(const cxxopts::ParseResult& parsed);

/// Returns what readers are told. Throws core::InputError for values that are none.
experiments::traces::AnyOptions reader_options(const cxxopts::ParseResult& parsed);

}  // namespace manyworlds::farm::commands
