// A bash script as a tree of commands whose words are not yet expanded.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace manyworlds::experiments::shell {

/// A word as it is written, with quotes and expansions. `\` before a line end is gone.
struct Word {
  std::string raw;
  int line = 0;
};

/// NAME=value, NAME+=value, NAME[index]=value or NAME=(words).
struct Assignment {
  std::string name;
  std::string index;  // of an element; empty: the whole variable
  bool append = false;
  bool array = false;
  Word value;               // without `array`
  std::vector<Word> items;  // with `array`
  std::string placeholder;  // NAME=<what to fill in>
  int line = 0;
};

struct HereDocument {
  std::string text;
  bool quoted = false;  // taken as it is, without expansions
  int line = 0;
};

struct CaseArm;

struct Command {
  enum class Kind {
    simple,      // assignments, words, here_documents
    list,        // parts, one after the other
    group,       // parts in braces
    subshell,    // parts, in a copy of the state
    pipeline,    // parts, each in a copy of the state
    and_then,    // parts[1] if parts[0] succeeds
    or_else,     // parts[1] if it fails
    negation,    // of parts[0]
    branch,      // if parts[0] then parts[1] else parts[2]
    loop,        // while parts[0] do parts[1]
    until_loop,  // until parts[0] do parts[1]
    for_each,    // for `name` in words do parts[0]; without words over the arguments if `over_arguments`
    choice,      // case words[0] in arms
    function,    // name() parts[0]
    condition,   // [[ words ]]
    arithmetic,  // (( words[0] ))
  };
  Kind kind = Kind::simple;
  int line = 0;
  std::string name;
  bool over_arguments = false;
  std::vector<Assignment> assignments;
  std::vector<Word> words;
  std::vector<std::shared_ptr<HereDocument>> here_documents;
  std::vector<Command> parts;
  std::vector<CaseArm> arms;
};

struct CaseArm {
  std::vector<Word> patterns;
  Command body;
};

/// Parses a script whose first line has this number. Throws InputError with file and line for what bash itself would
/// refuse, for `select` and `coproc`, and for commands nested too deep.
Command parse_script(const std::string& text, const std::string& file, int first_line = 1);

}  // namespace manyworlds::experiments::shell
