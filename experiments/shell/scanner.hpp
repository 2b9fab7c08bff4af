// Reads the words of a bash script from its text: quotes and expansions stay as they are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/shell/script.hpp"

namespace manyworlds::experiments::shell {

class Scanner {
 public:
  Scanner(const std::string& text, const std::string& file, int first_line)
      : text_(text), file_(file), line_(first_line) {}

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool next_is(std::string_view what) const { return std::string_view(text_).substr(at_).starts_with(what); }
  int line() const { return line_; }
  std::size_t position() const { return at_; }

  void skip(std::size_t count);
  /// Skips blanks, comments and continued lines.
  void skip_blanks();
  /// Skips the same and line ends.
  void skip_lines();
  /// Skips a line end, and reads the here-documents that were announced before it.
  void skip_line_end();
  bool accept(std::string_view what);

  /// Reads a word up to a blank, line end or operator; empty if there is none here.
  Word read_word();
  /// Returns the word that follows, without reading it.
  std::string next_word();
  /// Reads the text up to `close`, which is skipped. `open` is already read; brackets of this kind nest.
  std::string read_enclosed(char open, char close);
  /// Returns the name of a placeholder such as <path to data> that begins here, or nothing.
  std::string read_placeholder();
  /// Announces a here-document, which has its text after the line's end.
  std::shared_ptr<HereDocument> announce(const std::string& end, bool quoted, bool strip_tabs);

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_at(int line, const std::string& what) const;

 private:
  void copy(std::string& to, std::size_t count);
  void copy_mark(std::string& to);
  void copy_single_quoted(std::string& to);
  void copy_double_quoted(std::string& to, int depth);
  void copy_backquoted(std::string& to);
  void copy_dollar(std::string& to, int depth);
  void copy_nested(std::string& to, char open, char close, int depth);
  void copy_one(std::string& to, int depth);
  void read_here_documents();

  struct Announced {
    std::string end;
    bool strip_tabs;
    std::shared_ptr<HereDocument> document;
  };

  const std::string& text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_;
  std::vector<Announced> announced_;
};

}  // namespace manyworlds::experiments::shell
