// One verb of the program: a name, a line of help, and what it does with the words after it.
#pragma once

// A --set may hold commas: lists of values are made by repeating an option only.
#define CXXOPTS_VECTOR_DELIMITER '\0'
// Its own parser of option names instead of <regex>, which takes 5 s to compile.
#define CXXOPTS_NO_REGEX
#include <cxxopts.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "farm/worker/zygote.hpp"

namespace manyworlds::farm::commands {

struct Invocation {
  std::vector<std::string> arguments;  // the words after the verb
  Zygote* zygote = nullptr;            // of commands that simulate; else null
};

struct Command {
  std::string name;
  std::string summary;
  int (*run)(const Invocation&);
  bool simulates = false;  // in processes of its own: their zygote is forked before anything else
};

/// The verbs that exist, in the order of help.
const std::vector<Command>& registry();

/// Parses `arguments` strictly: prints help and returns nothing for -h; an unknown option, a bad value or a word
/// too many is a core::InputError that names the nearest option.
std::unique_ptr<cxxopts::ParseResult> parse(cxxopts::Options& options, const std::vector<std::string>& arguments);

/// The one positional word `name`, or an InputError that asks for it.
std::string required(const cxxopts::ParseResult& parsed, const std::string& name);

}  // namespace manyworlds::farm::commands
