#include "farm/cli/parsing/option_table.hpp"

#include "core/base/error.hpp"

namespace manyworlds::farm::commands {

namespace {

/// Returns whether `help` shows the option, which it does not of a positional argument.
bool shows(const std::string& help, const std::string& name) {
  for (std::size_t at = 0; (at = help.find("--" + name, at)) != std::string::npos; ++at) {
    const char next = at + name.size() + 2 < help.size() ? help[at + name.size() + 2] : '\n';
    if (next == ' ' || next == '\n' || next == '[') return true;
  }
  return false;
}

/// Returns what the help's second line has after "[OPTION...]".
std::string positional_of(const std::string& help) {
  const std::string mark = "[OPTION...]";
  const std::size_t at = help.find(mark);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + mark.size(), end = help.find('\n', begin);
  return begin + 1 < end ? help.substr(begin + 1, end - begin - 1) : "";
}

}  // namespace

VerbTable table_of(const cxxopts::Options& options) {
  VerbTable table;
  const std::string help = options.help();
  table.description = help.substr(0, help.find('\n'));
  table.positional = positional_of(help);
  for (const std::string& group : options.groups())
    for (const cxxopts::HelpOptionDetails& one : options.group_help(group).options) {
      OptionRow row;
      if (!one.s.empty()) row.letter = one.s.front();
      if (!one.l.empty()) row.name = one.l.front();
      row.help = one.desc;
      if (!one.is_boolean) row.value = one.arg_help.empty() ? "VALUE" : one.arg_help;
      if (one.has_default && !one.is_boolean) row.default_value = one.default_value;
      row.value_is_optional = !one.is_boolean && one.has_implicit;
      row.positional = !row.name.empty() && !shows(help, row.name);
      table.options.push_back(std::move(row));
    }
  return table;
}

std::vector<VerbTable> verb_tables(const std::vector<Command>& verbs) {
  std::vector<VerbTable> tables;
  for (const Command& command : verbs) {
    try {
      command.run({{table_request()}, nullptr});
    } catch (VerbTable& table) {
      table.verb = command.name;
      table.summary = command.summary;
      tables.push_back(std::move(table));
    }
    MANYWORLDS_CHECK(!tables.empty() && tables.back().verb == command.name, "{} parses no options", command.name);
  }
  return tables;
}

}  // namespace manyworlds::farm::commands
