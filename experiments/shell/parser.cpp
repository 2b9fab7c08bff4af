// Parses the grammar of bash by recursive descent.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "experiments/shell/scanner.hpp"
#include "experiments/shell/script.hpp"

namespace manyworlds::experiments::shell {
namespace {

using Kind = Command::Kind;
using Stops = std::vector<std::string_view>;

constexpr int kMaxDepth = 200;         // lists, pipelines and commands inside one another
constexpr int kMaxAlternatives = 500;  // commands joined by && and ||
constexpr std::array<std::string_view, 11> kReserved{"then", "elif", "else", "fi",   "do", "done",
                                                     "in",   "esac", "}",    "case", "!"};
constexpr std::array<std::string_view, 5> kDeclaring{"export", "declare", "local", "readonly", "typeset"};

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_name(char c) {
  return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

class Parser {
 public:
  Parser(const std::string& text, const std::string& file, int first_line) : scan_(text, file, first_line) {}

  Command script() {
    Command all = list({});
    if (!scan_.at_end()) scan_.fail(fmt::format("'{}' stands where a command would", unexpected()));
    return all;
  }

 private:
  struct Depth {
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxDepth) parser_.scan_.fail(fmt::format("more than {} commands nest", kMaxDepth));
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --parser_.depth_; }
    Parser& parser_;
  };

  Command list(const Stops& stops);
  Command and_or();
  Command pipeline();
  Command command();
  Command compound(const std::string& word);
  Command branch();
  Command loop(Kind kind);
  Command for_each();
  Command choice();
  Command function(const std::string& name);
  Command body();
  Command condition();
  Command arithmetic();
  Command simple();
  bool read_assignment(Command& to);
  void read_array(Assignment& to);
  bool redirection(Command& to);
  void here_document(Command& to);
  void redirections(Command& to);
  bool is_function(std::string& name);
  void expect(const char* word, const char* of);
  std::string unexpected() const;
  Command node(Kind kind) const {
    Command one;
    one.kind = kind;
    one.line = scan_.line();
    return one;
  }

  Scanner scan_;
  int depth_ = 0;
};

std::string Parser::unexpected() const {
  Scanner copy = scan_;
  const std::string word = copy.next_word();
  return word.empty() ? std::string(1, scan_.peek()) : word;
}

void Parser::expect(const char* word, const char* of) {
  scan_.skip_lines();
  if (scan_.next_word() != word) scan_.fail(fmt::format("'{}' of '{}' is missing", word, of));
  scan_.skip(std::string_view(word).size());
}

/// Reads commands up to one of the words `stops`, which is not read.
Command Parser::list(const Stops& stops) {
  const Depth depth(*this);
  Command all = node(Kind::list);
  for (;;) {
    scan_.skip_lines();
    if (scan_.at_end() || scan_.peek() == ')' || scan_.next_is(";;") || scan_.next_is(";&")) return all;
    const std::string word = scan_.next_word();
    if (std::find(stops.begin(), stops.end(), word) != stops.end()) return all;
    if (word == "}" ||
        (word != "case" && word != "!" && std::find(kReserved.begin(), kReserved.end(), word) != kReserved.end()))
      return all;
    all.parts.push_back(and_or());
    scan_.skip_blanks();
    if (scan_.next_is(";;") || scan_.next_is(";&")) return all;
    if (!scan_.accept(";") && !scan_.next_is("&&")) scan_.accept("&");
  }
}

Command Parser::and_or() {
  Command left = pipeline();
  for (int joined_commands = 1;; ++joined_commands) {
    if (joined_commands > kMaxAlternatives) scan_.fail("too many commands are joined by && and ||");
    scan_.skip_blanks();
    const bool both = scan_.next_is("&&");
    if (!both && !scan_.next_is("||")) return left;
    scan_.skip(2);
    scan_.skip_lines();
    Command joined = node(both ? Kind::and_then : Kind::or_else);
    joined.line = left.line;
    joined.parts.push_back(std::move(left));
    joined.parts.push_back(pipeline());
    left = std::move(joined);
  }
}

Command Parser::pipeline() {
  const Depth depth(*this);
  scan_.skip_blanks();
  if (scan_.next_word() == "!") {
    Command negation = node(Kind::negation);
    scan_.skip(1);
    negation.parts.push_back(pipeline());
    return negation;
  }
  Command all = node(Kind::pipeline);
  all.parts.push_back(command());
  for (scan_.skip_blanks(); scan_.peek() == '|' && scan_.peek(1) != '|'; scan_.skip_blanks()) {
    scan_.skip(scan_.peek(1) == '&' ? 2 : 1);
    scan_.skip_lines();
    all.parts.push_back(command());
  }
  if (all.parts.size() > 1) return all;
  Command only = std::move(all.parts.front());
  return only;
}

Command Parser::command() {
  const Depth depth(*this);
  scan_.skip_blanks();
  if (scan_.next_is("((")) return arithmetic();
  const int line = scan_.line();
  if (scan_.accept("(")) {
    Command group = node(Kind::subshell);
    group.line = line;
    group.parts.push_back(list({}));
    scan_.skip_lines();
    if (!scan_.accept(")")) scan_.fail_at(line, "the '(' that begins here never ends");
    redirections(group);
    return group;
  }
  const std::string word = scan_.next_word();
  if (word == "select" || word == "coproc") scan_.fail(fmt::format("'{}' is not understood here", word));
  Command one = compound(word);
  if (one.kind == Kind::simple) return one;
  one.line = line;
  redirections(one);
  return one;
}

Command Parser::compound(const std::string& word) {
  if (word == "if") return scan_.skip(2), branch();
  if (word == "while") return scan_.skip(5), loop(Kind::loop);
  if (word == "until") return scan_.skip(5), loop(Kind::until_loop);
  if (word == "for") return scan_.skip(3), for_each();
  if (word == "case") return scan_.skip(4), choice();
  if (word == "[[") return scan_.skip(2), condition();
  if (word == "{") {
    Command group = node(Kind::group);
    scan_.skip(1);
    group.parts.push_back(list({"}"}));
    expect("}", "{");
    return group;
  }
  if (word == "function") {
    scan_.skip(8);
    scan_.skip_blanks();
    const std::string name = scan_.read_word().raw;
    scan_.skip_blanks();
    if (scan_.accept("(")) scan_.skip_blanks(), scan_.accept(")");
    return function(name);
  }
  std::string name;
  if (is_function(name)) return function(name);
  return simple();
}

/// Reads "name ()" if it stands here.
bool Parser::is_function(std::string& name) {
  Scanner ahead = scan_;
  name = ahead.next_word();
  if (name.empty() || !is_name_start(name[0]) || name.find_first_of("$\"'=`") != std::string::npos) return false;
  ahead.skip(name.size());
  while (ahead.peek() == ' ') ahead.skip(1);
  if (!ahead.accept("(")) return false;
  while (ahead.peek() == ' ') ahead.skip(1);
  if (!ahead.accept(")")) return false;
  scan_.skip(ahead.position() - scan_.position());
  return true;
}

Command Parser::function(const std::string& name) {
  Command one = node(Kind::function);
  one.name = name;
  scan_.skip_lines();
  one.parts.push_back(command());
  return one;
}

Command Parser::branch() {
  Command one = node(Kind::branch);
  one.parts.push_back(list({"then"}));
  expect("then", "if");
  one.parts.push_back(list({"elif", "else", "fi"}));
  scan_.skip_lines();
  const std::string word = scan_.next_word();
  if (word == "elif") {
    const Depth depth(*this);
    scan_.skip(4);
    one.parts.push_back(branch());
    return one;  // the inner one has read `fi`
  }
  if (word == "else") {
    scan_.skip(4);
    one.parts.push_back(list({"fi"}));
  }
  expect("fi", "if");
  return one;
}

Command Parser::loop(Kind kind) {
  Command one = node(kind);
  one.parts.push_back(list({"do"}));
  one.parts.push_back(body());
  return one;
}

Command Parser::body() {
  expect("do", "a loop");
  Command commands = list({"done"});
  expect("done", "a loop");
  return commands;
}

Command Parser::for_each() {
  Command one = node(Kind::for_each);
  scan_.skip_blanks();
  if (scan_.next_is("((")) {  // for ((i = 0; i < n; i++)): followed once, with unknown values
    scan_.skip(2);
    one.words.push_back({"$((" + scan_.read_enclosed('(', ')') + "))", scan_.line()});
    scan_.accept(")");
    one.name = "";
  } else {
    one.name = scan_.read_word().raw;
    scan_.skip_lines();
    one.over_arguments = scan_.next_word() != "in";
    if (!one.over_arguments) {
      scan_.skip(2);
      for (scan_.skip_blanks(); !scan_.at_end() && scan_.peek() != ';' && scan_.peek() != '\n'; scan_.skip_blanks()) {
        Word word = scan_.read_word();
        if (word.raw.empty()) scan_.fail("the words of 'for' are not understood");
        one.words.push_back(std::move(word));
      }
    }
  }
  scan_.skip_blanks();
  scan_.accept(";");
  one.parts.push_back(body());
  return one;
}

Command Parser::choice() {
  Command one = node(Kind::choice);
  scan_.skip_blanks();
  one.words.push_back(scan_.read_word());
  expect("in", "case");
  for (scan_.skip_lines(); scan_.next_word() != "esac"; scan_.skip_lines()) {
    if (scan_.at_end()) scan_.fail_at(one.line, "the 'case' that begins here never ends");
    CaseArm arm;
    scan_.accept("(");
    for (;;) {
      scan_.skip_blanks();
      arm.patterns.push_back(scan_.read_word());
      scan_.skip_blanks();
      if (!scan_.accept("|")) break;
    }
    if (!scan_.accept(")")) scan_.fail("a pattern of 'case' lacks its ')'");
    arm.body = list({"esac"});
    scan_.skip_lines();
    if (!scan_.accept(";;&") && !scan_.accept(";;")) scan_.accept(";&");
    one.arms.push_back(std::move(arm));
  }
  scan_.skip(4);
  return one;
}

/// Reads the words of [[ ]], with its operators as words of their own.
Command Parser::condition() {
  Command one = node(Kind::condition);
  for (;;) {
    scan_.skip_lines();
    if (scan_.at_end()) scan_.fail_at(one.line, "the '[[' that begins here never ends");
    if (scan_.next_word() == "]]") break;
    Word word{"", scan_.line()};
    for (const char* op : {"&&", "||", "(", ")", "<", ">"})
      if (word.raw.empty() && scan_.accept(op)) word.raw = op;
    if (word.raw.empty()) word = scan_.read_word();
    if (word.raw.empty()) scan_.fail("this is not understood inside [[ ]]");
    if (!one.words.empty() && one.words.back().raw == "=~")  // the rest of a regular expression
      while (!scan_.at_end() && scan_.peek() != ' ' && scan_.peek() != '\n') word.raw += scan_.peek(), scan_.skip(1);
    one.words.push_back(std::move(word));
  }
  scan_.skip(2);
  return one;
}

Command Parser::arithmetic() {
  Command one = node(Kind::arithmetic);
  scan_.skip(2);
  one.words.push_back({scan_.read_enclosed('(', ')'), one.line});
  if (!scan_.accept(")")) scan_.fail_at(one.line, "the '((' that begins here lacks its '))'");
  return one;
}

void Parser::read_array(Assignment& to) {
  const int begin = scan_.line();
  to.array = true;
  for (;;) {
    scan_.skip_lines();
    if (scan_.at_end()) scan_.fail_at(begin, fmt::format("the array '{}' that begins here never ends", to.name));
    if (scan_.accept(")")) return;
    Word word = scan_.read_word();
    if (word.raw.empty()) scan_.fail(fmt::format("'{}' is not understood in an array", unexpected()));
    to.items.push_back(std::move(word));
  }
}

/// Reads NAME=… if it stands here.
bool Parser::read_assignment(Command& to) {
  Scanner ahead = scan_;
  Assignment one;
  one.line = scan_.line();
  if (!is_name_start(ahead.peek())) return false;
  for (; is_name(ahead.peek()); ahead.skip(1)) one.name.push_back(ahead.peek());
  if (ahead.peek() == '[') {
    ahead.skip(1);
    for (; !ahead.at_end() && ahead.peek() != ']' && ahead.peek() != '\n'; ahead.skip(1))
      one.index.push_back(ahead.peek());
    if (!ahead.accept("]") || one.index.empty()) return false;
  }
  one.append = ahead.accept("+=");
  if (!one.append && !ahead.accept("=")) return false;
  scan_.skip(ahead.position() - scan_.position());
  if (scan_.accept("("))
    read_array(one);
  else if (one.placeholder = scan_.read_placeholder(); one.placeholder.empty())
    one.value = scan_.read_word();
  to.assignments.push_back(std::move(one));
  return true;
}

void Parser::here_document(Command& to) {
  const bool strip = scan_.accept("-");
  scan_.skip_blanks();
  std::string end = scan_.read_word().raw;
  const std::size_t with_quotes = end.size();
  std::erase_if(end, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
  if (end.empty()) scan_.fail("a here-document lacks the word at its end");
  to.here_documents.push_back(scan_.announce(end, end.size() != with_quotes, strip));
}

/// Reads a redirection if one stands here; only here-documents are kept.
bool Parser::redirection(Command& to) {
  Scanner ahead = scan_;
  while (std::isdigit(static_cast<unsigned char>(ahead.peek())) != 0) ahead.skip(1);
  if (ahead.next_is("&>"))
    ahead.skip(1);
  else if (ahead.peek() != '<' && ahead.peek() != '>')
    return false;
  scan_.skip(ahead.position() - scan_.position());
  if (scan_.accept("<<<")) return scan_.skip_blanks(), scan_.read_word(), true;
  if (scan_.accept("<<")) return here_document(to), true;
  if (scan_.accept("<(") || scan_.accept(">(")) return scan_.read_enclosed('(', ')'), true;
  for (const char* op : {">>", ">|", "<>", ">&", "<&", ">", "<"})
    if (scan_.accept(op)) break;
  scan_.skip_blanks();
  if (scan_.accept("<(") || scan_.accept(">(")) return scan_.read_enclosed('(', ')'), true;
  scan_.read_word();
  return true;
}

void Parser::redirections(Command& to) {
  for (scan_.skip_blanks(); redirection(to);) scan_.skip_blanks();
}

Command Parser::simple() {
  Command one = node(Kind::simple);
  for (;;) {
    scan_.skip_blanks();
    const char c = scan_.peek();
    if (scan_.at_end() || c == '\n' || c == ';' || c == '|' || c == ')' || (c == '&' && !scan_.next_is("&>"))) break;
    const bool declares =
        !one.words.empty() && std::find(kDeclaring.begin(), kDeclaring.end(), one.words[0].raw) != kDeclaring.end();
    if ((one.words.empty() || declares) && read_assignment(one)) continue;
    if (Word word{scan_.read_placeholder(), scan_.line()}; !word.raw.empty()) {
      one.words.push_back(std::move(word));
      continue;
    }
    if (redirection(one)) continue;
    Word word = scan_.read_word();
    if (word.raw.empty()) scan_.fail(fmt::format("'{}' is not understood here", unexpected()));
    one.words.push_back(std::move(word));
  }
  if (one.words.empty() && one.assignments.empty() && one.here_documents.empty() && scan_.peek() == ';')
    scan_.fail("';' stands where a command would");
  return one;
}

}  // namespace

Command parse_script(const std::string& text, const std::string& file, int first_line) {
  return Parser(text, file, first_line).script();
}

}  // namespace manyworlds::experiments::shell
