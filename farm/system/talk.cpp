#include "farm/system/talk.hpp"

#include <cstdio>

#include "core/base/utf8.hpp"

namespace manyworlds::farm {
namespace {

/// How much of `text` is before a UTF-8 character whose end is still to come.
std::size_t whole_characters(std::string_view text) {
  constexpr std::size_t kLongest = 4;
  for (std::size_t back = 1; back < kLongest && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) break;
    if (byte >= 0xC0) return core::utf8_length(byte) > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

void tell_lines(std::string_view text) {
  const std::string shown = core::terminal_text(text);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

bool TerminalFilter::pass(std::string_view text) {
  const std::string shown = core::terminal_text(text);
  const auto count = static_cast<std::streamsize>(shown.size());
  return sink_->sputn(shown.data(), count) == count;
}

std::streambuf::int_type TerminalFilter::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  const char one = traits_type::to_char_type(byte);
  return xsputn(&one, 1) == 1 ? byte : traits_type::eof();
}

std::streamsize TerminalFilter::xsputn(const char* bytes, std::streamsize count) {
  std::string_view text(bytes, static_cast<std::size_t>(count));
  if (!held_.empty()) text = held_.append(text);
  const std::size_t whole = whole_characters(text);
  const bool written = pass(text.substr(0, whole));
  held_ = std::string(text.substr(whole));
  return written ? count : 0;
}

int TerminalFilter::sync() {
  const bool written = pass(held_);
  held_.clear();
  return written && sink_->pubsync() == 0 ? 0 : -1;
}

}  // namespace manyworlds::farm
