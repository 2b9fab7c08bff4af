// Expands words: quotes, parameters, arrays, arithmetic, and splitting into fields.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/shell/environment.hpp"
#include "experiments/shell/script.hpp"
#include "experiments/shell/state.hpp"

namespace manyworlds::experiments::shell {

class Expander {
 public:
  /// `substitute` returns what a command substitution prints, which may be unknown.
  using Substitute = std::function<std::string(const std::string& commands, const Place& at)>;
  Expander(State& state, Environment& environment, std::shared_ptr<const std::string> file, Substitute substitute)
      : state_(state), environment_(environment), file_(std::move(file)), substitute_(std::move(substitute)) {}

  /// Returns the fields of a word.
  std::vector<Text> fields(const Word& word);
  /// Returns a word as one text, as in an assignment. With `as_pattern`, quoted characters of patterns are escaped.
  std::string text(const Word& word, bool as_pattern = false);
  /// Returns a here-document's text.
  std::string document(const HereDocument& document);
  std::optional<std::int64_t> number(const std::string& expression, int line);

 private:
  struct Parameter;

  void expand(const std::string& raw, bool quoted);
  void add_mark(const std::string& raw, std::size_t& at);
  void expand_quoted(const std::string& raw, std::size_t& at);
  void expand_dollar(const std::string& raw, std::size_t& at, bool quoted);
  void expand_braced(const std::string& content, bool quoted);
  void add(const std::string& piece, bool quoted);
  void add_all(const std::vector<Text>& items, bool quoted, bool joined);
  void end_field();
  std::string nested(const std::string& raw, bool as_pattern = false);
  std::optional<Parameter> parse(const std::string& content) const;
  std::string value_of(const Parameter& parameter);
  std::string operated(const Parameter& parameter, const std::string& value);
  std::string or_default(const Parameter& parameter, const std::string& value);
  bool add_whole_array(const Parameter& parameter, bool quoted);
  const std::vector<Text>* array_of(const std::string& name) const;
  std::string scalar(const std::string& name);
  std::string why_no_value(const std::string& expression);
  std::string element(const std::string& name, const std::string& index);

  State& state_;
  Environment& environment_;
  std::shared_ptr<const std::string> file_;
  Substitute substitute_;

  int depth_ = 0;
  int line_ = 0;
  bool split_ = true, as_pattern_ = false;
  bool has_field_ = false;
  Text field_;
  std::vector<Text> fields_;
};

}  // namespace manyworlds::experiments::shell
