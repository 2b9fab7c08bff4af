// Finds the training that a launch script runs, and its arguments.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "core/base/error.hpp"
#include "experiments/megatron/arguments.hpp"
#include "experiments/megatron/launch_size.hpp"
#include "experiments/shell/interpreter.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr std::string_view kTellTale = "--num-layers";

bool has_layers(const std::vector<Text>& words) {
  return std::any_of(words.begin(), words.end(), [](const Text& one) {
    return one.text == kTellTale || one.text.starts_with(std::string(kTellTale) + "=");
  });
}

bool same_words(const shell::Launch& a, const shell::Launch& b) {
  return std::equal(a.words.begin(), a.words.end(), b.words.begin(), b.words.end(),
                    [](const Text& one, const Text& other) { return one.text == other.text; });
}

/// Returns the words of a variable that holds a job's arguments; empty if it does not.
std::vector<Text> arguments_in(const shell::Variable& variable) {
  std::vector<Text> words;
  for (const Text& item : variable.items) {
    std::string word;
    bool in_mark = false;
    for (const char c : item.text + " ") {
      in_mark = (in_mark || c == shell::kMarkBegin) && c != shell::kMarkEnd;
      if (in_mark || (c != ' ' && c != '\n' && c != '\t')) {
        word.push_back(c);
      } else if (!word.empty()) {
        words.push_back({word, item.place});
        word.clear();
      }
    }
  }
  return has_layers(words) ? words : std::vector<Text>{};
}

/// Takes the arguments that a script prepares for a file that is not there.
std::vector<Text> prepared_arguments(const shell::FollowedScript& script, const std::string& path, JobArguments& to) {
  std::vector<const shell::State*> states;
  for (const shell::Handover& one : script.handovers) states.push_back(&one.state);
  states.push_back(&script.state);
  for (auto state = states.rbegin(); state != states.rend(); ++state) {
    std::vector<std::string> names;
    std::vector<Text> found;
    for (const auto& [name, variable] : (*state)->variables)
      if (std::vector<Text> words = arguments_in(variable); !words.empty()) {
        names.push_back(name);
        if (words.size() > found.size()) found = std::move(words);
      }
    if (names.size() > 1)
      throw core::InputError(
          fmt::format("no command of it trains, and several variables hold arguments: {}", fmt::join(names, ", ")),
          path);
    if (names.empty()) continue;
    to.notes.push_back(
        fmt::format("the file runs no training itself; taken are the arguments in its variable {}", names.front()));
    return found;
  }
  return {};
}

/// Splits a command at the program that is trained with; returns its arguments.
std::vector<Text> arguments_of(const shell::Launch& launch, std::vector<Text>& launcher) {
  const auto program = std::find_if(launch.words.begin(), launch.words.end(),
                                    [](const Text& one) { return shell::shown(one.text).ends_with(".py"); });
  if (program == launch.words.end())
    fail_at(launch.place, "the command has model arguments and no program that ends in .py");
  launcher.assign(launch.words.begin(), program);
  return {program + 1, launch.words.end()};
}

/// Arguments of a script within the script stand on lines that only the whole text tells.
void find_lines(std::vector<Argument>& arguments, const std::string& text, const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  const auto has = [&](std::size_t index, const std::string& name) {
    const std::size_t at = index < lines.size() ? lines[index].find("--" + name) : std::string::npos;
    if (at == std::string::npos || lines[index].find('#') < at) return false;
    const std::size_t end = at + 2 + name.size();
    return end == lines[index].size() ||
           std::string_view(" =\t\\\"'").find(lines[index][end]) != std::string_view::npos;
  };
  constexpr std::size_t kMaxSearched = 20'000'000;
  if (lines.size() * arguments.size() > kMaxSearched) return;
  for (Argument& one : arguments) {
    if (!one.place.file || *one.place.file != path || one.place.line < 1) continue;
    const auto begin = static_cast<std::size_t>(one.place.line) - 1;
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (const std::size_t index = (begin + i) % lines.size(); has(index, one.name)) {
        one.place.line = static_cast<int>(index) + 1;
        break;
      }
  }
}

void note_assumed(const shell::FollowedScript& script, JobArguments& to) {
  std::vector<std::string> taken;
  for (const auto& [name, value] : script.assumed) taken.push_back(fmt::format("{}={}", name, shell::shown(value)));
  constexpr std::size_t kMaxShown = 12;
  const std::size_t more = taken.size() > kMaxShown ? taken.size() - kMaxShown : 0;
  taken.resize(taken.size() - more);
  if (!taken.empty())
    to.notes.push_back(fmt::format("assumed of the environment (--env NAME=VALUE): {}{}", fmt::join(taken, ", "),
                                   more > 0 ? fmt::format(" and {} more", more) : ""));
}

}  // namespace

JobArguments read_script(const std::string& text, const std::string& path,
                         const std::map<std::string, std::string>& environment) {
  JobArguments result;
  result.kind = "a launch script of Megatron-LM";
  shell::ScriptInput input{text,
                           path,
                           environment,
                           batch_variables(text),
                           [&](const std::string& name) { return import::read_text_beside(path, name); },
                           has_layers};
  const shell::FollowedScript script = shell::follow(input);
  for (const shell::Launch& other : script.launches)
    if (!same_words(script.launches.front(), other))
      fail_at(other.place,
              fmt::format("two commands train, here and on line {}; leave one", script.launches.front().place.line));
  std::vector<Text> launcher;
  std::vector<Text> words = script.launches.empty() ? prepared_arguments(script, path, result)
                                                    : arguments_of(script.launches.front(), launcher);
  if (words.empty()) {
    const std::string lacks =
        script.handovers.empty() ? "" : fmt::format("; {} is not beside it", script.handovers.front().name);
    throw core::InputError(fmt::format("it runs nothing with Megatron-LM's arguments (--num-layers …){}", lacks), path);
  }
  if (!script.launches.empty() && !script.launches.front().condition.empty())
    result.notes.push_back(fmt::format("whether it trains depends on {}", script.launches.front().condition));
  result.arguments = split_arguments(words);
  result.documents = script.documents;
  find_lines(result.arguments, text, path);
  std::vector<std::string> texts{text};
  for (const Text& one : script.texts) texts.push_back(one.text);
  read_launch_size(launcher, texts, result);
  note_assumed(script, result);
  return result;
}

}  // namespace manyworlds::experiments::jobs
