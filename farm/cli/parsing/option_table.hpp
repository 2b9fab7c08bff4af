// What each verb accepts, as a table: from the same declarations as its help, for manual pages and completion.
#pragma once

#include <string>
#include <vector>

#include "farm/cli/parsing/command.hpp"

namespace manyworlds::farm::commands {

struct OptionRow {
  char letter = '\0';         // of -o; '\0' if it has none
  std::string name;           // "output"
  std::string help;           // one line
  std::string value;          // "RUN_DIR"; "" for a switch
  std::string default_value;  // "" if it has none
  bool value_is_optional = false;
  bool positional = false;  // its values are words without an option
};

struct VerbTable {
  std::string verb, summary;
  std::string description;  // its help's first line
  std::string positional;   // "SPEC.yaml", as its help shows; "" if it takes no such words
  std::vector<OptionRow> options;
};

/// The one argument with which parse() throws its table as a VerbTable instead of parsing: no process can be given a
/// NUL.
inline const std::string& table_request() {
  static const std::string request(1, '\0');
  return request;
}

/// Returns the table of `options`, without a verb's name and summary.
VerbTable table_of(const cxxopts::Options& options);

/// Returns the tables of `verbs`, in their order.
std::vector<VerbTable> verb_tables(const std::vector<Command>& verbs);

}  // namespace manyworlds::farm::commands
