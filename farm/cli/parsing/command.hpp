// A verb of the program: its name, a line of help, and the function that handles its arguments.
#pragma once

// A --set value may contain commas, so a list is given only by repeating the option.
#define CXXOPTS_VECTOR_DELIMITER '\0'
// Its own parser of option names instead of <regex>, which takes 5 s to compile.
#define CXXOPTS_NO_REGEX
#include <cxxopts.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "farm/worker/zygote.hpp"

namespace manyworlds::farm::commands {

struct Invocation {
  std::vector<std::string> arguments;  // the arguments after the verb
  Zygote* zygote = nullptr;            // for commands that simulate, else null
};

struct Command {
  std::string name;
  std::string summary;
  int (*run)(const Invocation&);
  bool simulates = false;  // needs a zygote, which is forked before anything else
};

/// Returns all verbs, in the order of the help text.
const std::vector<Command>& registry();

/// Parses `arguments` strictly. Prints help and returns null for -h. Throws core::InputError for an unknown option,
/// which names the nearest one, for a bad value, with its option and what it takes, and for an extra argument.
std::unique_ptr<cxxopts::ParseResult> parse(cxxopts::Options& options, const std::vector<std::string>& arguments);

/// Returns the positional argument or option `name`. Throws core::InputError if it is missing, which calls it `shown`
/// if that is given.
std::string required(const cxxopts::ParseResult& parsed, const std::string& name, const std::string& shown = "");

/// Returns the option `name`, which has no default; nullopt if it is not given.
std::optional<std::string> if_given(const cxxopts::ParseResult& parsed, const std::string& name);

}  // namespace manyworlds::farm::commands
