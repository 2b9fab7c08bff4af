#include "farm/cli/texts/manual_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/version.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm::commands {

namespace {

/// Takes a character of more than one byte from `text` at `at`, which is left at its last byte, as roff's \[uXXXX].
std::string take_wide(const std::string& text, std::size_t& at) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  const int more = byte(at) >= 0xF0 ? 3 : byte(at) >= 0xE0 ? 2 : 1;
  unsigned code = byte(at) & (0x3Fu >> more);
  for (int i = 0; i < more && at + 1 < text.size(); ++i) code = code << 6 | (byte(++at) & 0x3Fu);
  return fmt::format("\\[u{:04X}]", code);
}

/// Text in roff: a backslash, a hyphen and a quote stand for themselves, and no line begins a request.
std::string roff(const std::string& text) {
  std::string escaped;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (static_cast<unsigned char>(c) >= 0x80)
      escaped += take_wide(text, at);
    else if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else if (c == '\'')
      escaped += "\\(aq";
    else if (c == '`')
      escaped += "\\(ga";
    else if (c == '~')
      escaped += "\\(ti";
    else if (c == '^')
      escaped += "\\(ha";
    else
      escaped += c;
  }
  if (!escaped.empty() && escaped.front() == '.') escaped.insert(0, "\\&");
  return escaped;
}

std::string sentence(std::string text) {
  if (!text.empty() && std::islower(static_cast<unsigned char>(text.front())) != 0)
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

std::string heading(const std::string& name, const std::string& summary) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} 1 \"\" \"manyworlds {}\" \"Manyworlds\"\n.SH NAME\n{} \\- {}\n", roff(upper),
                     core::version(), roff(name), roff(summary));
}

/// "-o, --output RUN_DIR" with its explanation below.
std::string option_text(const OptionRow& row) {
  std::string text = ".TP\n";
  if (row.positional) {
    std::string upper = row.name;
    std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
    text += fmt::format("\\fI{}\\fR", roff(row.value.empty() || row.value == "VALUE" ? upper : row.value));
  } else {
    if (row.letter != '\0') text += fmt::format("\\fB\\-{}\\fR", row.letter);
    if (!row.name.empty()) text += fmt::format("{}\\fB{}\\fR", row.letter != '\0' ? ", " : "", roff("--" + row.name));
    if (row.value_is_optional)
      text += fmt::format("[=\\fI{}\\fR]", roff(row.value));
    else if (!row.value.empty())
      text += fmt::format(" \\fI{}\\fR", roff(row.value));
  }
  text += "\n" + roff(sentence(row.help));
  if (!row.default_value.empty()) text += fmt::format("\nDefault: {}.", roff(row.default_value));
  return text + "\n";
}

struct ExitCode {
  int code;
  const char* meaning;
};
constexpr ExitCode kExitCodes[] = {
    {kExitDone, "Done."},
    {kExitUnusable, "Of doctor: sweeps do not run on this machine."},
    {kExitInput, "Bad usage or bad input; the message names the file, the line and what would be right."},
    {kExitFailed, "Some experiments failed, or none fits into memory."},
    {kExitInternal, "An error of this program."},
    {kExitIo, "Input or output failed."},
    {kExitDrained, "Stopped on request: the same command continues."}};

}  // namespace

std::string program_page(const std::vector<VerbTable>& verbs) {
  std::string page = heading("manyworlds", "ranks layouts of LLM training by simulating each");
  page +=
      ".SH SYNOPSIS\n\\fBmanyworlds\\fR \\fIVERB\\fR [\\fIOPTION\\fR...]\n.br\n\\fBmanyworlds\\fR "
      "\\fB\\-\\-version\\fR\n";
  page +=
      ".SH DESCRIPTION\nSimulates the candidate layouts of a training step of a large language model on a cluster,\n"
      "kernel by kernel and packet by packet, on one machine or over MPI, and ranks them.\n"
      "Results are one HDF5 file and a page that shows what is in it.\n";
  page += ".SH VERBS\n";
  for (const VerbTable& verb : verbs)
    page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(verb.verb), roff(sentence(verb.summary)));
  page += ".SH EXIT STATUS\n";
  for (const ExitCode& one : kExitCodes) page += fmt::format(".TP\n{}\n{}\n", one.code, roff(one.meaning));
  page += ".SH SEE ALSO\n";
  for (const VerbTable& verb : verbs)
    page += fmt::format("\\fBmanyworlds\\-{}\\fR(1){}\n", roff(verb.verb), &verb == &verbs.back() ? "" : ",");
  return page;
}

std::string verb_page(const VerbTable& verb) {
  std::string page = heading("manyworlds-" + verb.verb, verb.summary);
  page += fmt::format(".SH SYNOPSIS\n\\fBmanyworlds {}\\fR [\\fIOPTION\\fR...]", roff(verb.verb));
  if (!verb.positional.empty()) page += fmt::format(" \\fI{}\\fR", roff(verb.positional));
  page += fmt::format("\n.SH DESCRIPTION\n{}\n.SH OPTIONS\n", roff(sentence(verb.description)));
  for (const bool positional : {true, false})
    for (const OptionRow& row : verb.options)
      if (row.positional == positional) page += option_text(row);
  return page + ".SH SEE ALSO\n\\fBmanyworlds\\fR(1), which has the exit codes\n";
}

}  // namespace manyworlds::farm::commands
