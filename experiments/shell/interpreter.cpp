#include "experiments/shell/interpreter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.hpp"
#include "experiments/shell/builtins.hpp"
#include "experiments/shell/condition.hpp"
#include "experiments/shell/expansion.hpp"
#include "experiments/shell/pattern.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::shell {
namespace {

using Kind = Command::Kind;
using File = std::shared_ptr<const std::string>;

constexpr int kMaxCalls = 24;       // functions, files and scripts within scripts
constexpr int kMaxRounds = 10'000;  // of one loop
constexpr std::size_t kMaxLaunches = 1'000;

class Follower {
 public:
  explicit Follower(const ScriptInput& input) : input_(input) {
    environment_.given = input.given, environment_.batch = input.batch;
  }

  FollowedScript run();

 private:
  Truth follow(const Command& command);
  Truth follow_all(const std::vector<Command>& parts);
  Truth follow_pipeline(const Command& command);
  Truth follow_alternative(const Command& command);
  Truth follow_branch(const Command& command);
  Truth follow_loop(const Command& command);
  Truth follow_for(const Command& command);
  Truth follow_case(const Command& command);
  Truth follow_condition(const Command& command);
  Truth follow_simple(const Command& command);
  Truth follow_words(const std::vector<Text>& words, const Command& command);
  Truth call(const Command& function, const std::vector<Text>& words);
  Truth either(const std::string& why, const std::function<void()>& one, const std::function<void()>& other);
  void once_or_never(const std::string& why, const std::function<void()>& body);
  void assign(const Assignment& assignment);
  void source(const std::vector<Text>& words);
  void hand_over(const std::string& name, const Place& place);
  void keep(const Text& text);
  void within(const Text& text, const std::vector<Text>& launcher);
  void nested_scripts(const std::vector<Text>& words, const Command& command);
  std::string substitute(const std::string& commands, const Place& at);
  std::optional<std::string> printed(const Command& command);
  Expander expander() {
    return {state_, environment_, file_,
            [this](const std::string& commands, const Place& at) { return substitute(commands, at); }};
  }
  Place place(int line) const { return {file_, line}; }
  State copy() {
    environment_.work(size_of(state_), place(0));
    return state_;
  }

  const ScriptInput& input_;
  Environment environment_;
  State state_;
  File file_;
  FollowedScript result_;
  std::vector<Text> launcher_;           // words of the commands around
  std::vector<std::string> conditions_;  // why it is not known whether this runs
  std::vector<std::shared_ptr<const Command>> scripts_;
  std::string why_;  // why the last condition is not known
  int calls_ = 0;
};

FollowedScript Follower::run() {
  import::check_size(input_.text.size(), input_.file);
  import::check_text(input_.text, input_.file);
  file_ = std::make_shared<const std::string>(input_.file);
  result_.files.push_back(input_.file);
  scripts_.push_back(std::make_shared<const Command>(parse_script(input_.text, input_.file)));
  follow(*scripts_.front());
  for (const auto& [name, value] : input_.given)
    if (environment_.used.count(name) == 0 && !input_.given_may_be_unread)
      throw core::InputError(fmt::format("the script does not read '{}' from the environment", name), input_.file);
  result_.assumed = environment_.assumed;
  result_.state = std::move(state_);
  return std::move(result_);
}

Truth Follower::follow_all(const std::vector<Command>& parts) {
  Truth last = Truth::yes;
  for (const Command& part : parts) {
    if (state_.stopped()) break;
    last = follow(part);
  }
  return last;
}

Truth Follower::follow(const Command& command) {
  environment_.work(16, place(command.line));
  switch (command.kind) {
    case Kind::simple:
      return follow_simple(command);
    case Kind::list:
    case Kind::group:
      return follow_all(command.parts);
    case Kind::subshell:
    case Kind::pipeline:
      return follow_pipeline(command);
    case Kind::and_then:
    case Kind::or_else:
      return follow_alternative(command);
    case Kind::negation:
      return !follow(command.parts[0]);
    case Kind::branch:
      return follow_branch(command);
    case Kind::loop:
    case Kind::until_loop:
      return follow_loop(command);
    case Kind::for_each:
      return follow_for(command);
    case Kind::choice:
      return follow_case(command);
    case Kind::function:
      state_.functions[command.name] = std::make_shared<const Command>(command.parts[0]);
      return Truth::yes;
    case Kind::condition:
    case Kind::arithmetic:
      return follow_condition(command);
  }
  return Truth::unknown;
}

/// Follows each part in a copy of the state.
Truth Follower::follow_pipeline(const Command& command) {
  Truth last = Truth::unknown;
  const bool pipeline = command.kind == Kind::pipeline;
  for (const Command& part : command.parts) {
    State kept = copy();
    last = follow(part);
    state_ = std::move(kept);
  }
  return pipeline ? Truth::unknown : last;
}

/// Follows what nobody knows whether it runs, from one state each, and merges what is known then.
Truth Follower::either(const std::string& why, const std::function<void()>& one, const std::function<void()>& other) {
  const State before = copy();
  conditions_.push_back(why);
  one();
  State after = std::move(state_);
  state_ = before;
  other();
  conditions_.pop_back();
  state_ = merged(std::move(after), std::move(state_), why);
  return Truth::unknown;
}

Truth Follower::follow_alternative(const Command& command) {
  const Truth wanted = truth(command.kind == Kind::and_then);
  why_.clear();
  const Truth left = follow(command.parts[0]);
  if (state_.stopped()) return left;
  if (left == wanted) return follow(command.parts[1]);
  if (left != Truth::unknown) return left;
  const std::string why = why_.empty() ? fmt::format("line {}, a command that may fail", command.line) : why_;
  either(
      why, [&] { follow(command.parts[1]); }, [] {});
  return Truth::unknown;
}

Truth Follower::follow_branch(const Command& command) {
  why_.clear();
  const Truth condition = follow(command.parts[0]);
  if (state_.stopped()) return condition;
  const auto otherwise = [&] { return command.parts.size() > 2 ? follow(command.parts[2]) : Truth::yes; };
  if (condition == Truth::yes) return follow(command.parts[1]);
  if (condition == Truth::no) return otherwise();
  const std::string why = fmt::format("line {}, {}", command.line, why_.empty() ? "a condition" : why_);
  return either(
      why, [&] { follow(command.parts[1]); }, otherwise);
}

void Follower::once_or_never(const std::string& why, const std::function<void()>& body) {
  // Twice, so that what the first round leaves unknown is unknown in the second.
  const auto rounds = [&] {
    body();
    state_.broken = false;
    if (!state_.stopped()) body();
    state_.broken = false;
  };
  either(why, rounds, [] {});
}

Truth Follower::follow_loop(const Command& command) {
  const Truth stop = truth(command.kind == Kind::until_loop);
  for (int round = 0; round < kMaxRounds; ++round) {
    why_.clear();
    const Truth condition = follow(command.parts[0]);
    if (state_.stopped() || condition == stop) return Truth::yes;
    if (condition == Truth::unknown || round + 1 == kMaxRounds) {
      once_or_never(fmt::format("line {}, a loop", command.line), [&] { follow(command.parts[1]); });
      return Truth::unknown;
    }
    follow(command.parts[1]);
    const bool broken = state_.broken;
    state_.broken = false;
    if (broken || state_.stopped()) return Truth::yes;
  }
  return Truth::unknown;
}

Truth Follower::follow_for(const Command& command) {
  std::vector<Text> items = command.over_arguments ? state_.arguments : std::vector<Text>{};
  for (const Word& word : command.words)
    for (Text& field : expander().fields(word)) items.push_back(std::move(field));
  const bool known = !command.name.empty() && std::all_of(items.begin(), items.end(), [](const Text& one) {
    return is_known(one.text) && one.text.find_first_of("*?{") == std::string::npos;
  });
  if (!known) {
    const std::string why = fmt::format("line {}, a loop", command.line);
    if (!command.name.empty()) state_.variables[command.name] = {{{unknown(why), place(command.line)}}, false};
    once_or_never(why, [&] { follow(command.parts[0]); });
    return Truth::unknown;
  }
  for (Text& item : items) {
    state_.variables[command.name] = {{std::move(item)}, false};
    follow(command.parts[0]);
    const bool broken = state_.broken;
    state_.broken = false;
    if (broken || state_.stopped()) break;
  }
  return Truth::yes;
}

Truth Follower::follow_case(const Command& command) {
  const std::string subject = expander().text(command.words[0]);
  std::vector<const Command*> possible;
  const std::string name = name_if_unset(subject);
  if (!name.empty()) environment_.assumed[name] = "";
  for (const CaseArm& arm : command.arms) {
    Truth fits = Truth::no;
    for (const Word& pattern : arm.patterns) {
      const std::string text = expander().text(pattern, true);
      const bool known = is_known(text) && (is_known(subject) || !name.empty());
      const Truth one = known ? truth(matches(text, name.empty() ? subject : "")) : Truth::unknown;
      if (one == Truth::yes || fits == Truth::no) fits = one;
    }
    if (fits != Truth::no) possible.push_back(&arm.body);
    if (fits != Truth::yes) continue;
    if (possible.size() == 1) return follow(arm.body);
    break;
  }
  const std::string why = fmt::format("line {}, case {}", command.line, shown(subject));
  State result = copy();
  const State before = result;
  for (const Command* body : possible) {
    state_ = before;
    environment_.work(size_of(state_), place(command.line));
    conditions_.push_back(why);
    follow(*body);
    conditions_.pop_back();
    result = merged(std::move(state_), std::move(result), why);
  }
  state_ = std::move(result);
  return Truth::unknown;
}

Truth Follower::follow_condition(const Command& command) {
  if (command.kind == Kind::arithmetic) {
    const std::string& expression = command.words[0].raw;
    const auto value = expander().number(expression, command.line);
    why_ = fmt::format("(({}))", expression);
    if (!value) forget_assigned(expression, state_, fmt::format("line {}, (({}))", command.line, expression));
    return value ? truth(*value != 0) : Truth::unknown;
  }
  std::vector<Text> words;
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    const Word& word = command.words[i];
    const bool pattern = i > 0 && (command.words[i - 1].raw == "==" || command.words[i - 1].raw == "=" ||
                                   command.words[i - 1].raw == "!=");
    words.push_back({expander().text(word, pattern), place(word.line)});
  }
  const Truth value = condition_value(words, true, environment_);
  if (value == Truth::unknown) why_ = why_not_known(words);
  return value;
}

void Follower::assign(const Assignment& assignment) {
  Variable& variable = state_.variables[assignment.name];
  Variable before = variable;
  if (assignment.array) {
    std::vector<Text> items = assignment.append ? std::move(before.items) : std::vector<Text>{};
    for (const Word& word : assignment.items)
      for (Text& field : expander().fields(word)) items.push_back(std::move(field));
    state_.variables[assignment.name] = {std::move(items), true};
    return;
  }
  std::string value = assignment.placeholder.empty()
                          ? expander().text(assignment.value)
                          : unknown(fmt::format("{}, which is to be filled in", assignment.placeholder));
  Variable& target = state_.variables[assignment.name];
  if (!assignment.index.empty()) {
    // Which element it is matters too little to follow.
    target = {{{unknown(fmt::format("line {}, an element of {}", assignment.line, assignment.name)), {}}}, true};
    return;
  }
  if (assignment.append && !before.items.empty()) value = before.items.front().text + value;
  environment_.work(value.size(), place(assignment.line));
  target = {{{std::move(value), place(assignment.line)}}, false};
}

Truth Follower::follow_simple(const Command& command) {
  std::vector<Text> words;
  for (const Word& word : command.words)
    for (Text& field : expander().fields(word)) words.push_back(std::move(field));
  const bool declares = !words.empty() && is_declaring(words[0].text);
  if (words.empty() || declares)
    for (const Assignment& assignment : command.assignments) assign(assignment);
  if (declares) declare(words, state_);
  if (words.empty() || declares) return Truth::yes;
  return follow_words(words, command);
}

Truth Follower::follow_words(const std::vector<Text>& words, const Command& command) {
  const std::string& name = words[0].text;
  if (const auto function = state_.functions.find(name); function != state_.functions.end()) {
    const auto body = function->second;
    return call(*body, words);
  }
  if (name == "." || name == "source") return source(words), Truth::yes;
  if (name == "eval") {
    Text all{"", words[0].place};
    for (std::size_t i = 1; i < words.size(); ++i) all.text += (i > 1 ? " " : "") + words[i].text;
    within(all, {});
    return Truth::unknown;
  }
  if (name == "[" || name == "test") {
    std::vector<Text> inside(words.begin() + 1, words.end());
    if (name == "[" && !inside.empty() && inside.back().text == "]") inside.pop_back();
    const Truth value = condition_value(inside, false, environment_);
    if (value == Truth::unknown) why_ = why_not_known(inside);
    return value;
  }
  if (const auto status = follow_builtin(words, state_)) return *status;
  nested_scripts(words, command);
  std::vector<Text> all = launcher_;
  all.insert(all.end(), words.begin(), words.end());
  if (input_.is_launch(all) && result_.launches.size() < kMaxLaunches)
    result_.launches.push_back({all, place(command.line), conditions_.empty() ? "" : conditions_.back()});
  return Truth::unknown;
}

/// Follows what `bash -c`, a here-document or the like gives to another shell.
void Follower::nested_scripts(const std::vector<Text>& words, const Command& command) {
  const std::size_t shell = index_of_shell(words);
  const bool reads_input = shell < words.size() || words[0].text == "sbatch" || words[0].text.ends_with("/sbatch");
  for (const auto& document : command.here_documents)
    if (reads_input)
      within({expander().document(*document), place(document->line)}, words);
    else if (result_.documents.size() < kMaxLaunches)
      keep({expander().document(*document), place(document->line)});
  for (std::size_t i = shell + 1; i + 1 < words.size(); ++i)
    if (words[i].text.starts_with('-') && !words[i].text.starts_with("--") && words[i].text.ends_with('c')) {
      within(words[i + 1], {words.begin(), words.begin() + static_cast<std::ptrdiff_t>(shell)});
      return;
    }
}

/// Keeps the text of a here-document that no shell reads, such as a file that `cat` writes.
void Follower::keep(const Text& text) {
  environment_.work(text.text.size(), text.place);
  result_.documents.push_back(text);
}

/// Follows a script inside the script, in a copy of the state.
void Follower::within(const Text& text, const std::vector<Text>& launcher) {
  if (++calls_ > kMaxCalls) throw core::InputError("scripts nest too deep", *file_, text.place.line);
  result_.texts.push_back(text);
  environment_.work(text.text.size(), text.place);
  const auto script = std::make_shared<const Command>(parse_script(text.text, *file_, text.place.line));
  scripts_.push_back(script);
  State kept = copy();
  const std::size_t outside = launcher_.size();
  launcher_.insert(launcher_.end(), launcher.begin(), launcher.end());
  follow(*script);
  launcher_.resize(outside);
  state_ = std::move(kept);
  --calls_;
}

Truth Follower::call(const Command& function, const std::vector<Text>& words) {
  if (++calls_ > kMaxCalls) throw core::InputError("functions call one another too deep", *file_, words[0].place.line);
  std::vector<Text> arguments(words.begin() + 1, words.end());
  std::swap(state_.arguments, arguments);
  const Truth status = follow(function);
  std::swap(state_.arguments, arguments);
  state_.left = false;
  --calls_;
  return status;
}

void Follower::source(const std::vector<Text>& words) {
  const Place at = words[0].place;
  const std::string path = words.size() > 1 ? words[1].text : "";
  if (is_login_file(path)) return;
  const std::string name = shown(path.substr(path.rfind('/') + 1));
  const auto text = name.empty() || name.find('?') != std::string::npos ? std::nullopt : input_.sibling(name);
  if (!text) return hand_over(name.empty() ? shown(path) : name, at);
  if (++calls_ > kMaxCalls) throw core::InputError("files read one another too deep", *file_, at.line);
  import::check_size(text->size(), name);
  import::check_text(*text, name);
  environment_.work(text->size(), at);
  result_.files.push_back(name);
  const File outer = std::exchange(file_, std::make_shared<const std::string>(name));
  const auto script = std::make_shared<const Command>(parse_script(*text, name));
  scripts_.push_back(script);
  follow(*script);
  state_.left = false;
  file_ = outer;
  --calls_;
}

/// Nothing that was known is certain after a file that is not there.
void Follower::hand_over(const std::string& name, const Place& at) {
  result_.handovers.push_back({name, at, copy()});
  const std::string why = fmt::format("{}:{}, {} may set it, which is not there", *file_, at.line, name);
  for (auto& [variable, value] : state_.variables) value = {{{unknown(why), at}}, value.array};
  state_.variables["*"] = {{{unknown(why), at}}, false};
}

std::optional<std::string> Follower::printed(const Command& command) {
  if (command.kind != Kind::simple || command.words.empty()) return std::nullopt;
  std::vector<Text> words;
  for (const Word& word : command.words)
    for (Text& field : expander().fields(word)) words.push_back(std::move(field));
  if (!words.empty() && words[0].text == "cat" && words.size() == 1 && command.here_documents.size() == 1)
    return expander().document(*command.here_documents[0]);
  return printed_by_builtin(words);
}

std::string Follower::substitute(const std::string& commands, const Place& at) {
  const std::string why = unknown(fmt::format("$({}), the output of a command", commands));
  if (++calls_ > kMaxCalls) throw core::InputError("expansions nest too deep", *file_, at.line);
  environment_.work(commands.size(), at);
  const Command script = parse_script(commands + "\n", *file_, at.line);
  auto text = script.parts.size() == 1 ? printed(script.parts[0]) : std::nullopt;
  --calls_;
  if (!text) return why;
  while (text->ends_with('\n')) text->pop_back();
  return *text;
}

}  // namespace

FollowedScript follow(const ScriptInput& input) {
  return Follower(input).run();
}

}  // namespace manyworlds::experiments::shell
