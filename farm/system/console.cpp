#include "farm/system/console.hpp"

#include <cstdio>

#include "core/base/utf8.hpp"

namespace manyworlds::farm {
namespace {

/// Returns the length of the longest prefix of `text` that does not end within a UTF-8 character.
std::size_t complete_characters(std::string_view text) {
  constexpr std::size_t kMaxBytes = 4;
  for (std::size_t back = 1; back < kMaxBytes && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) break;
    if (byte >= 0xC0) return core::utf8_length(byte) > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

void print_lines(std::string_view text) {
  const std::string escaped = core::terminal_text(text);
  std::fwrite(escaped.data(), 1, escaped.size(), stderr);
}

bool TerminalFilter::write_filtered(std::string_view text) {
  const std::string escaped = core::terminal_text(text);
  const auto count = static_cast<std::streamsize>(escaped.size());
  return sink_->sputn(escaped.data(), count) == count;
}

std::streambuf::int_type TerminalFilter::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  const char one = traits_type::to_char_type(byte);
  return xsputn(&one, 1) == 1 ? byte : traits_type::eof();
}

std::streamsize TerminalFilter::xsputn(const char* bytes, std::streamsize count) {
  std::string_view text(bytes, static_cast<std::size_t>(count));
  if (!incomplete_character_.empty()) text = incomplete_character_.append(text);
  const std::size_t complete = complete_characters(text);
  const bool written = write_filtered(text.substr(0, complete));
  incomplete_character_ = std::string(text.substr(complete));
  return written ? count : 0;
}

int TerminalFilter::sync() {
  const bool written = write_filtered(incomplete_character_);
  incomplete_character_.clear();
  return written && sink_->pubsync() == 0 ? 0 : -1;
}

}  // namespace manyworlds::farm
