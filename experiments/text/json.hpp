// Reads JSON from untrusted sources: limits on size and depth, and values checked against the types they must have.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {

/// Throws InputError for more than `maximum` bytes, and for nesting deeper than 64 levels.
void check_json_limits(std::string_view text, const std::string& name, std::size_t maximum);

/// Returns the error of a text that is no JSON as one of ours, with line and column: what stands there, and what would
/// be right. `line` is known by readers that count lines themselves, and is said if there is no other place; 0: the
/// error says it.
core::InputError bad_json(const nlohmann::json::exception& error, const std::string& name, std::string_view text,
                          int line = 0);

/// Parses `text`; `name` is its name in messages. Throws InputError for invalid JSON, for nesting deeper than 64 levels
/// (code that walks a document recurses once per level), and for more than `maximum` bytes.
nlohmann::json parse_json(std::string_view text, const std::string& name, std::size_t maximum = kMaxTextBytes);

/// A view of a value in a document, valid as long as the document exists. Reading it as a type that it does not have
/// throws an InputError that names the member, without a file.
class JsonView {
 public:
  /// The largest integer up to which every reader of JSON is exact, since it may store numbers as doubles.
  static constexpr std::int64_t kMaxExactInteger = std::int64_t{1} << 53;

  explicit JsonView(const nlohmann::json& document, const char* name = "the document")
      : value_(document), name_(name) {}

  bool is_null() const { return value_.is_null(); }
  /// Return a member of an object; at() requires it, find() does not.
  JsonView at(const char* member) const;
  std::optional<JsonView> find(const char* member) const;
  /// size() returns the length of a list. for_each() visits its elements, which have the list's name in messages.
  std::size_t size() const;
  void for_each(const std::function<void(const JsonView&)>& visit) const;

  const std::string& text() const;
  bool boolean() const;
  /// Returns an integer from `minimum` to `maximum`.
  std::int64_t whole(std::int64_t minimum = 0, std::int64_t maximum = kMaxExactInteger) const;
  double number(double minimum = std::numeric_limits<double>::lowest()) const;

 private:
  [[noreturn]] void refuse(const std::string& expected) const;
  const nlohmann::json& list() const;

  const nlohmann::json& value_;
  const char* name_;
};

}  // namespace manyworlds::experiments::import
