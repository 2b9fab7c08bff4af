#include "experiments/shell/builtins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "experiments/shell/arithmetic.hpp"

namespace manyworlds::experiments::shell {
namespace {

constexpr std::array<std::string_view, 5> kDeclaring{"export", "declare", "local", "readonly", "typeset"};
constexpr std::array<std::string_view, 8> kWithoutEffect{":",    "true",   "echo",  "printf",
                                                         "trap", "ulimit", "umask", "wait"};
constexpr std::array<std::string_view, 10> kLoginFiles{"bin/activate", ".bashrc",    ".bash_profile", ".profile",
                                                       "conda.sh",     "modules.sh", "setvars.sh",    "/etc/profile",
                                                       "init/bash",    "lmod.sh"};

void set_unknown(State& state, const Text& name, const std::string& why) {
  if (is_known(name.text) && !name.text.empty()) state.variables[name.text] = {{{unknown(why), name.place}}, false};
}

Truth shift(const std::vector<Text>& words, State& state) {
  const auto count = words.size() > 1 ? integer_of(words[1].text) : std::optional<std::int64_t>(1);
  const auto size = static_cast<std::int64_t>(state.arguments.size());
  if (!count || *count < 0 || *count > size) return truth(false);
  state.arguments.erase(state.arguments.begin(), state.arguments.begin() + *count);
  return Truth::yes;
}

Truth set(const std::vector<Text>& words, State& state) {
  const auto dashes = std::find_if(words.begin(), words.end(), [](const Text& one) { return one.text == "--"; });
  if (dashes != words.end()) state.arguments.assign(dashes + 1, words.end());
  return Truth::yes;
}

Truth getopts(const std::vector<Text>& words, State& state) {
  if (state.arguments.empty()) return Truth::no;
  if (words.size() > 2) set_unknown(state, words[2], "an option of the script");
  set_unknown(state, {"OPTARG", {}}, "the value of an option of the script");
  return Truth::unknown;
}

/// Names of variables that are set from what is read.
Truth read(const std::vector<Text>& words, State& state) {
  for (std::size_t i = 1; i < words.size(); ++i)
    if (!words[i].text.starts_with('-')) set_unknown(state, words[i], "what `" + words[0].text + "` reads");
  return Truth::unknown;
}

std::string base_name(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

bool is_declaring(const std::string& name) {
  return std::find(kDeclaring.begin(), kDeclaring.end(), name) != kDeclaring.end();
}

void declare(const std::vector<Text>& words, State& state) {
  const bool map = std::any_of(words.begin(), words.end(), [](const Text& one) {
    return one.text.starts_with('-') && one.text.find('A') != std::string::npos;
  });
  for (std::size_t i = 1; i < words.size() && map; ++i)
    if (!words[i].text.starts_with('-')) set_unknown(state, words[i], "an array with names for its elements");
}

std::optional<Truth> follow_builtin(const std::vector<Text>& words, State& state) {
  const std::string& name = words[0].text;
  if (name == "exit") return state.ended = true, Truth::unknown;
  if (name == "return") return state.left = true, Truth::unknown;
  if (name == "break") return state.broken = true, Truth::yes;
  if (name == "false") return Truth::no;
  if (name == "shift") return shift(words, state);
  if (name == "set") return set(words, state);
  if (name == "getopts") return getopts(words, state);
  if (name == "read" || name == "mapfile" || name == "readarray") return read(words, state);
  if (name == "let") {
    for (const Text& one : words) forget_assigned(one.text, state, "let " + one.text);
    return Truth::unknown;
  }
  if (name == "unset") {
    for (std::size_t i = 1; i < words.size(); ++i) state.variables.erase(words[i].text);
    return Truth::yes;
  }
  if (name == "printf" && words.size() > 2 && words[1].text == "-v") return read({words[0], words[2]}, state);
  if (std::find(kWithoutEffect.begin(), kWithoutEffect.end(), name) != kWithoutEffect.end()) return Truth::yes;
  return std::nullopt;
}

void forget_assigned(const std::string& expression, State& state, const std::string& why) {
  std::string name;
  for (std::size_t i = 0; i <= expression.size(); ++i) {
    const char c = i < expression.size() ? expression[i] : ' ';
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      name.push_back(c);
      continue;
    }
    if (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0)
      state.variables[name] = {{{unknown(why), {}}}, false};
    name.clear();
  }
}

std::optional<std::string> printed_by_builtin(const std::vector<Text>& words) {
  if (words.empty()) return std::nullopt;
  for (const Text& word : words)
    if (!is_known(word.text)) return std::nullopt;
  const std::string& name = words[0].text;
  if (name == "basename" && words.size() == 2) return base_name(words[1].text);
  if (name == "expr" && words.size() == 4) {
    const auto value = arithmetic_value(words[1].text + words[2].text + words[3].text,
                                        [](const std::string&) { return std::optional<std::int64_t>(); });
    return value ? std::optional(std::to_string(*value)) : std::nullopt;
  }
  if (name != "echo" || (words.size() > 1 && words[1].text.starts_with('-'))) return std::nullopt;
  std::string text;
  for (std::size_t i = 1; i < words.size(); ++i) text += (i > 1 ? " " : "") + words[i].text;
  return text;
}

std::size_t index_of_shell(const std::vector<Text>& words) {
  const auto found = std::find_if(words.begin(), words.end(), [](const Text& one) {
    const std::string name = base_name(one.text);
    return name == "bash" || name == "sh" || name == "zsh";
  });
  return static_cast<std::size_t>(found - words.begin());
}

bool is_login_file(const std::string& path) {
  return path == "activate" || path.ends_with("/activate") ||
         std::any_of(kLoginFiles.begin(), kLoginFiles.end(), [&](std::string_view one) { return path.ends_with(one); });
}

}  // namespace manyworlds::experiments::shell
