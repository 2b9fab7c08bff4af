// What the program says to people. Names, paths and texts of files are in it, which others may have made: none of them
// reaches a terminal as anything but visible text.
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/escape.hpp"

namespace manyworlds::farm {

/// Says lines on stderr, whose line ends are ours.
void tell_lines(std::string_view text);

/// Text on one line; of other values the value.
template <class T>
auto on_one_line(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return core::line_text(value);
  else
    return value;
}

/// Says on stderr what `format` makes of `values`. Line ends are those of `format`: one within a value is escaped.
template <class... T>
void tell(fmt::format_string<T...> format, T&&... values) {
  const auto made = [&](const auto&... shown) { return fmt::vformat(format, fmt::make_format_args(shown...)); };
  tell_lines(made(on_one_line(values)...));
}

/// While it lives, all that is written to `stream` goes through core::terminal_text() to where it went before. A
/// character whose bytes come one by one is held back until it is whole or the stream is flushed. What cannot be
/// written is an error of the stream, as ever.
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
  bool pass(std::string_view text);

  std::ostream& stream_;
  std::streambuf* sink_;
  std::string held_;  // the first bytes of a character
};

}  // namespace manyworlds::farm
