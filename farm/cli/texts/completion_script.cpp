#include "farm/cli/texts/completion_script.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/base/error.hpp"
#include "experiments/sweep/schema.hpp"

namespace manyworlds::farm::commands {

namespace {

/// What a shell offers for a value: names of a kind of the catalog, words, or, if both are empty, files.
struct Values {
  std::string kind;                // "models"
  std::vector<std::string> words;  // "today", "2021"
};

/// Returns the words of "today|2021", or none if what is between the bars is not all lower case: such are kinds of
/// values, not values.
std::vector<std::string> alternatives(std::string text) {
  std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
  std::vector<std::string> words;
  std::size_t begin = 0;
  for (std::size_t bar = 0; bar != std::string::npos; begin = bar + 1) {
    bar = text.find('|', begin);
    const std::string word = text.substr(begin, bar == std::string::npos ? bar : bar - begin);
    if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos && !word.empty())
      words.push_back(word);
  }
  return text.find('|') == std::string::npos ? std::vector<std::string>() : words;
}

Values values_of(const std::string& name, const std::string& value) {
  static const std::map<std::string, std::string> kinds{{"model", "models"},        {"gpu", "gpus"},
                                                        {"cluster", "clusters"},    {"stack", "stacks"},
                                                        {"topology", "topologies"}, {"algorithm", "collectives"}};
  if (const std::vector<std::string> words = alternatives(value); !words.empty()) return {"", words};
  if (const auto kind = kinds.find(name); kind != kinds.end()) return {kind->second, {}};
  return {};
}

/// What a verb takes without an option.
Values positional_values(const VerbTable& verb) {
  if (verb.positional.starts_with("[KIND")) return {"", experiments::listings()};
  for (const OptionRow& row : verb.options)
    if (row.positional) return values_of(row.name, verb.positional);
  return {};
}

std::string bash_words(const Values& values) {
  if (!values.kind.empty()) return fmt::format("$(\"$program\" completion names {} 2>/dev/null)", values.kind);
  return fmt::format("{}", fmt::join(values.words, " "));
}

std::string bash_script(const std::vector<VerbTable>& verbs) {
  std::string names, options, values;
  for (const VerbTable& verb : verbs) {
    names += (names.empty() ? "" : " ") + verb.verb;
    std::string own;
    for (const OptionRow& row : verb.options) {
      if (row.positional) continue;
      std::vector<std::string> patterns;
      if (row.letter != '\0') own += fmt::format(" -{}", row.letter);
      if (row.letter != '\0') patterns.push_back(fmt::format("'{} -{}'", verb.verb, row.letter));
      if (!row.name.empty()) own += " --" + row.name;
      if (!row.name.empty()) patterns.push_back(fmt::format("'{} --{}'", verb.verb, row.name));
      if (row.value.empty() || row.value_is_optional) continue;
      values += fmt::format("    {}) words=\"{}\" ;;\n", fmt::join(patterns, " | "),
                            bash_words(values_of(row.name, row.value)));
    }
    options += fmt::format("    {}) options='{}' words=\"{}\" ;;\n", verb.verb, own.substr(1),
                           bash_words(positional_values(verb)));
  }
  return fmt::format(
      R"script(# bash completion for manyworlds, made by `manyworlds completion bash`. What has no words is a file.
_manyworlds() {{
  local program=${{COMP_WORDS[0]}} current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local verb=${{COMP_WORDS[1]-}} options='' words=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W '{0} --help --version' -- "$current")
    return
  fi
  if [ "$current" = = ]; then  # bash splits --name=value into three words
    current=''
  elif [ "$previous" = = ]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case $current in
    -*) case $verb in
{1}    esac
      mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
      return ;;
  esac
  case "$verb $previous" in
{2}    *) case $verb in
{1}    esac ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _manyworlds manyworlds
)script",
      names, options, values);
}

/// Text in single quotes of zsh or fish, in which `also` have a backslash before them as well.
std::string quoted(const std::string& text, const std::string& quote, const std::string& also) {
  std::string result;
  for (const char c : text) {
    if (c == '\'')
      result += quote;
    else if (also.find(c) != std::string::npos)
      result += std::string("\\") + c;
    else
      result += c;
  }
  return result;
}

std::string zsh_action(const Values& values) {
  if (!values.kind.empty()) return "->" + values.kind;
  return values.words.empty() ? "_files" : fmt::format("({})", fmt::join(values.words, " "));
}

std::string zsh_script(const std::vector<VerbTable>& verbs) {
  const auto text = [](const std::string& plain) { return quoted(plain, "'\\''", "[]:\\"); };
  std::string names, cases;
  for (const VerbTable& verb : verbs) {
    names += fmt::format("    '{}:{}'\n", verb.verb, text(verb.summary));
    std::string arguments;
    for (const OptionRow& row : verb.options) {
      if (row.positional) continue;
      const std::string value = row.value.empty()
                                    ? ""
                                    : fmt::format("{}:{}:{}", row.value_is_optional ? ":" : "", text(row.value),
                                                  zsh_action(values_of(row.name, row.value)));
      const std::string after = row.value.empty() ? "" : row.value_is_optional ? "=-" : "=";
      if (row.letter != '\0') arguments += fmt::format(" \\\n        '*-{}[{}]{}'", row.letter, text(row.help), value);
      if (!row.name.empty())
        arguments += fmt::format(" \\\n        '*--{}{}[{}]{}'", row.name, after, text(row.help), value);
    }
    if (!verb.positional.empty())
      arguments += fmt::format(" \\\n        '*:{}:{}'", text(verb.positional), zsh_action(positional_values(verb)));
    cases += fmt::format("    {})\n      _arguments{} ;;\n", verb.verb, arguments);
  }
  return fmt::format(R"script(#compdef manyworlds
# zsh completion for manyworlds, made by `manyworlds completion zsh`.
_manyworlds() {{
  local context state state_descr line program=$words[1]
  typeset -A opt_args
  local -a verbs
  verbs=(
{}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
{}  esac
  if [[ -n $state ]]; then
    compadd -- ${{(f)"$("$program" completion names $state 2>/dev/null)"}}
    _files
  fi
}}
_manyworlds "$@"
)script",
                     names, cases);
}

std::string fish_script(const std::vector<VerbTable>& verbs) {
  const auto text = [](const std::string& plain) { return quoted(plain, "\\'", "\\"); };
  const auto arguments = [](const Values& values) {
    if (!values.kind.empty()) return fmt::format(" -a '(manyworlds completion names {} 2>/dev/null)'", values.kind);
    return values.words.empty() ? std::string() : fmt::format(" -f -a '{}'", fmt::join(values.words, " "));
  };
  std::string script = "# fish completion for manyworlds, made by `manyworlds completion fish`.\n";
  for (const VerbTable& verb : verbs)
    script += fmt::format("complete -c manyworlds -n __fish_use_subcommand -f -a {} -d '{}'\n", verb.verb,
                          text(verb.summary));
  for (const VerbTable& verb : verbs) {
    const std::string when = fmt::format("complete -c manyworlds -n '__fish_seen_subcommand_from {}'", verb.verb);
    if (const Values values = positional_values(verb); !values.kind.empty() || !values.words.empty())
      script += when + arguments(values) + "\n";
    for (const OptionRow& row : verb.options) {
      if (row.positional) continue;
      script += when;
      if (row.letter != '\0') script += fmt::format(" -s {}", row.letter);
      if (!row.name.empty()) script += fmt::format(" -l {}", row.name);
      if (!row.value.empty() && !row.value_is_optional) script += " -r" + arguments(values_of(row.name, row.value));
      script += fmt::format(" -d '{}'\n", text(row.help));
    }
  }
  return script;
}

}  // namespace

const std::vector<std::string>& completed_shells() {
  static const std::vector<std::string> shells{"bash", "zsh", "fish"};
  return shells;
}

std::string completion_script(const std::string& shell, const std::vector<VerbTable>& verbs) {
  if (shell == "bash") return bash_script(verbs);
  if (shell == "zsh") return zsh_script(verbs);
  MANYWORLDS_CHECK(shell == "fish", "no completion for {}", shell);
  return fish_script(verbs);
}

}  // namespace manyworlds::farm::commands
