// JSON that others may have made: how much and how deep it may be, and its values by the types they must have.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {

/// The document that `text` is, called `name` in messages. Throws InputError for what is no JSON, is nested deeper than
/// 64 levels (what walks a document calls itself for each), or has more than `most` bytes.
nlohmann::json parse_json(std::string_view text, const std::string& name, std::size_t most = kMaximumTextBytes);

/// A value of a document, for as long as the document stands. Whoever asks for what it is not gets an InputError that
/// names the member, without a file.
class JsonView {
 public:
  /// The largest whole number that a double holds exactly, as every reader of JSON has it.
  static constexpr std::int64_t kMostWhole = std::int64_t{1} << 53;

  explicit JsonView(const nlohmann::json& document, const char* name = "the document")
      : value_(document), name_(name) {}

  bool is_null() const { return value_.is_null(); }
  /// A member of an object, which must be there, or may be.
  JsonView at(const char* member) const;
  std::optional<JsonView> find(const char* member) const;
  /// How many values a list has; and each of them, under the list's own name.
  std::size_t size() const;
  void for_each(const std::function<void(const JsonView&)>& visit) const;

  const std::string& text() const;
  bool boolean() const;
  /// A whole number from `least` to `most`.
  std::int64_t whole(std::int64_t least = 0, std::int64_t most = kMostWhole) const;
  double number(double least = std::numeric_limits<double>::lowest()) const;

 private:
  [[noreturn]] void refuse(const std::string& wanted) const;
  const nlohmann::json& list() const;

  const nlohmann::json& value_;
  const char* name_;
};

}  // namespace manyworlds::experiments::import
