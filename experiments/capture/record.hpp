// The record of one process: a line of JSON for each call, written to the file at once, so that a process that is
// killed leaves all it did.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace manyworlds::experiments::capture {

/// One line in the making: members in the order in which they are given.
class Line {
 public:
  explicit Line(std::string_view call) { text("call", call); }
  Line& text(std::string_view key, std::string_view value);
  Line& number(std::string_view key, std::int64_t value);
  /// `json` is written as it stands.
  Line& json(std::string_view key, std::string_view json);
  const std::string& members() const { return members_; }

 private:
  void start(std::string_view key);
  std::string members_;
};

/// `value` as a JSON string, with its quotes.
std::string quoted(std::string_view value);

class Record {
 public:
  /// Opens FOLDER/rank<rank>.jsonl, which must not be there yet. Throws std::invalid_argument.
  Record(const std::string& folder, int rank);
  /// Writes the line, with the thread of the host that made the call, numbered in order of first calls, and the
  /// nanoseconds since the record was opened.
  void write(const Line& line, int thread);

 private:
  int file_;
  std::string path_;
  std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
};

}  // namespace manyworlds::experiments::capture
