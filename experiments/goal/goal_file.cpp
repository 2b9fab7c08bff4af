#include "experiments/goal/goal_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include "core/base/error.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::goal {
namespace {

using core::InputError;

constexpr std::int64_t kMaxSize = std::int64_t{1} << 50;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  GoalFile read() {
    import::check_text(text_, name_);
    while (next_statement()) {
      const std::string_view word = identifier("num_ranks, rank or }");
      if (word == "num_ranks")
        ranks();
      else if (word == "rank")
        rank();
      else
        fail(fmt::format("'{}' where num_ranks or rank must stand", word));
    }
    if (file_.ranks.empty()) fail("no num_ranks");
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError("has " + what, name_, line_); }

  char at() const { return position_ < text_.size() ? text_[position_] : '\0'; }

  /// Skips blanks and comments, not line ends.
  void skip() {
    while (position_ < text_.size()) {
      if (at() == ' ' || at() == '\t' || at() == '\r') {
        ++position_;
      } else if (text_.substr(position_, 2) == "//") {
        while (position_ < text_.size() && at() != '\n') ++position_;
      } else if (text_.substr(position_, 2) == "/*") {
        const std::size_t end = text_.find("*/", position_ + 2);
        if (end == text_.npos) fail("a comment without an end");
        line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(position_),
                                             text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
        position_ = end + 2;
      } else {
        return;
      }
    }
  }

  /// Moves to the next statement, over empty lines; returns false at the end.
  bool next_statement() {
    while (true) {
      skip();
      if (at() != '\n') return position_ < text_.size();
      ++line_;
      ++position_;
    }
  }

  void end_statement() {
    skip();
    if (position_ < text_.size() && at() != '\n' && at() != '}')
      fail(fmt::format("'{}' where the line must end", text_.substr(position_, 1)));
  }

  std::string_view identifier(const char* expected) {
    skip();
    const std::size_t begin = position_;
    while (is_letter(at()) || (position_ > begin && is_digit(at()))) ++position_;
    if (begin == position_) fail(fmt::format("no {} where it must stand", expected));
    return text_.substr(begin, position_ - begin);
  }

  bool takes(std::string_view word) {
    skip();
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }

  void expect(std::string_view word) {
    if (!takes(word)) fail(fmt::format("no '{}' where it must stand", word));
  }

  std::int64_t number(const char* what, std::int64_t most) {
    skip();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + position_, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0 || value > most) {
      if (error == std::errc() && value == -1)
        fail(fmt::format("-1 as {}: receives of any source or any tag are not known here", what));
      const std::size_t length = std::min(text_.find_first_of(" \t\r\n}", position_), text_.size()) - position_;
      fail(fmt::format("'{}' as {}, where an integer from 0 to {} is right",
                       text_.substr(position_, std::min<std::size_t>(length, 40)), what, most));
    }
    position_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  void ranks() {
    if (!file_.ranks.empty()) fail("a second num_ranks");
    const std::int64_t count = number("num_ranks", programs::kMaxRanks);
    if (count == 0) fail("no rank");
    file_.ranks.resize(static_cast<std::size_t>(count));
    is_read_.resize(file_.ranks.size());
    end_statement();
  }

  void rank() {
    if (file_.ranks.empty()) fail("a rank before num_ranks");
    const std::int64_t number_of_rank = number("rank", std::ssize(file_.ranks) - 1);
    if (is_read_[static_cast<std::size_t>(number_of_rank)]) fail(fmt::format("rank {} twice", number_of_rank));
    is_read_[static_cast<std::size_t>(number_of_rank)] = true;
    ops_ = &file_.ranks[static_cast<std::size_t>(number_of_rank)];
    labels_.clear();
    dependencies_.clear();
    expect("{");
    while (true) {
      if (!next_statement()) fail(fmt::format("no }} of rank {}", number_of_rank));
      if (takes("}")) break;
      statement();
    }
    for (const Dependency& one : dependencies_) {
      GoalOp& op = (*ops_)[number_of(one.op, one.line)];
      (one.is_start ? op.starts : op.waits).push_back(number_of(one.on, one.line));
    }
  }

  std::uint32_t number_of(std::string_view label, int line) const {
    const auto found = labels_.find(label);
    if (found == labels_.end()) throw InputError(fmt::format("has no operation '{}' in this rank", label), name_, line);
    return found->second;
  }

  void statement() {
    const std::string_view word = identifier("send, recv, calc or label");
    if (word == "send" || word == "recv" || word == "calc") return operation(word, {});
    if (takes(":")) return operation(identifier("send, recv or calc"), word);
    const std::string_view how = identifier("':', requires or irequires");
    if (how != "requires" && how != "irequires") fail(fmt::format("'{}' where requires or irequires must stand", how));
    dependencies_.push_back({word, identifier("label"), line_, how == "irequires"});
    end_statement();
  }

  void operation(std::string_view word, std::string_view label) {
    if (++count_ > kMaxGoalOps) fail("more than 50,000,000 operations");
    GoalOp op;
    op.line = line_;
    if (word == "calc") {
      op.size = number("time", kMaxSize);
    } else if (word == "send" || word == "recv") {
      op.kind = word == "send" ? GoalKind::send : GoalKind::receive;
      op.size = number("size", kMaxSize);
      expect("b");
      expect(word == "send" ? "to" : "from");
      op.peer = static_cast<std::uint32_t>(number("peer", std::ssize(file_.ranks) - 1));
    } else {
      fail(fmt::format("'{}' where send, recv or calc must stand", word));
    }
    for (skip(); is_letter(at()); skip()) option(op);
    end_statement();
    if (!label.empty() && !labels_.emplace(label, static_cast<std::uint32_t>(ops_->size())).second)
      fail(fmt::format("label '{}' twice in a rank", label));
    ops_->push_back(std::move(op));
  }

  void option(GoalOp& op) {
    constexpr std::int64_t kLargestTag = std::numeric_limits<std::int64_t>::max(), kLargestUnit = 65'535;
    const std::string_view word = identifier("tag, cpu or nic");
    if (word == "tag" && op.kind != GoalKind::calculate)
      op.tag = static_cast<std::uint64_t>(number("tag", kLargestTag));
    else if (word == "cpu")
      op.cpu = static_cast<std::uint32_t>(number("cpu", kLargestUnit));
    else if (word == "nic")
      op.nic = static_cast<std::uint32_t>(number("nic", kLargestUnit));
    else
      fail(fmt::format("'{}' where tag, cpu, nic or the end of the line must stand", word));
  }

  struct Dependency {
    std::string_view op, on;
    int line;
    bool is_start;
  };

  std::string_view text_;
  const std::string& name_;
  std::size_t position_ = 0, count_ = 0;
  int line_ = 1;
  GoalFile file_;
  std::vector<bool> is_read_;
  std::vector<GoalOp>* ops_ = nullptr;
  std::map<std::string_view, std::uint32_t, std::less<>> labels_;
  std::vector<Dependency> dependencies_;
};

}  // namespace

bool is_goal_file(std::string_view text) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with("//") && !text.starts_with("/*")) return text.starts_with("num_ranks");
    const std::string_view mark = text[1] == '/' ? "\n" : "*/";
    const std::size_t end = text.find(mark, 2);
    if (end == text.npos) return false;
    text.remove_prefix(end + mark.size());
  }
}

GoalFile parse_goal_file(std::string_view text, const std::string& name) {
  return Reader(text, name).read();
}

}  // namespace manyworlds::experiments::goal
