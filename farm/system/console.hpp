// Messages of the program to its user, on stderr. They contain names, paths and file contents that others may have
// written, so all control characters are escaped: nothing but visible text reaches a terminal.
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/escape.hpp"

namespace manyworlds::farm {

/// Prints `text`, which may contain several lines of this program's own, on stderr.
void print_lines(std::string_view text);

/// Escapes line ends in a string; returns any other value unchanged.
template <class T>
auto single_line(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return core::line_text(value);
  else
    return value;
}

/// Formats `values` and prints them on stderr. Line ends in `format` are printed; line ends within a value are escaped.
template <class... T>
void print_message(fmt::format_string<T...> format, T&&... values) {
  const auto formatted = [&](const auto&... escaped) {
    return fmt::vformat(format, fmt::make_format_args(escaped...));
  };
  print_lines(formatted(single_line(values)...));
}

/// While it exists, filters everything that is written to `stream` through core::terminal_text() before it reaches the
/// original buffer. A UTF-8 character whose bytes arrive one by one is held back until it is complete or the stream is
/// flushed. A write error sets the stream's error state, as usual.
class TerminalFilter final : public std::streambuf {
 public:
  explicit TerminalFilter(std::ostream& stream) : stream_(stream), sink_(stream.rdbuf(this)) {}
  ~TerminalFilter() override { stream_.rdbuf(sink_); }
  TerminalFilter(const TerminalFilter&) = delete;
  TerminalFilter& operator=(const TerminalFilter&) = delete;

 protected:
  int_type overflow(int_type byte) override;
  std::streamsize xsputn(const char* bytes, std::streamsize count) override;
  int sync() override;

 private:
  bool write_filtered(std::string_view text);

  std::ostream& stream_;
  std::streambuf* sink_;
  std::string incomplete_character_;  // first bytes of an incomplete UTF-8 character
};

}  // namespace manyworlds::farm
