// The lines of a log as they are looked at: streamed from a file of any size, without colours and other escapes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace manyworlds::experiments::logs {

/// What is behind this many bytes of a line is not looked at.
inline constexpr std::size_t kMaxLine = 64u << 10;

/// Splits a stream of bytes into lines. A carriage return ends a line too, as progress bars use it, but only a line
/// feed counts in the numbers, which are those of an editor.
class LineSplitter {
 public:
  using Receiver = std::function<void(std::string_view line, int number)>;
  explicit LineSplitter(Receiver receiver) : receiver_(std::move(receiver)) {}

  void add(std::string_view bytes);
  void finish();

 private:
  void end_line();

  Receiver receiver_;
  std::string line_;
  int number_ = 1;
};

/// Returns the line as plain ASCII: terminal escapes are removed, other bytes than printable ASCII become blanks.
void clean_line(std::string_view line, std::string& result);

/// Passes every line of a file to `receiver`, whether it is compressed by gzip or not. Throws InputError if it cannot
/// be read, is a folder, or its compressed data are damaged.
void read_lines(const std::string& path, const LineSplitter::Receiver& receiver);

}  // namespace manyworlds::experiments::logs
