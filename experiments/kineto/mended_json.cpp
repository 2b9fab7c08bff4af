#include "experiments/kineto/mended_json.hpp"

namespace manyworlds::experiments::kineto {
namespace {

constexpr std::size_t kPiece = 64u << 10;
constexpr std::size_t kLongestWord = 9;  // -Infinity
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_of_number(char c) {
  return (c >= '0' && c <= '9') || is_letter(c) || c == '.' || c == '+' || c == '-';
}
bool is_hexadecimal(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// Whether a word outside of texts stands for a number that is not known.
bool is_no_number(std::string_view word) {
  if (!word.empty() && (word[0] == '-' || word[0] == '+')) word.remove_prefix(1);
  for (const std::string_view one : {"NaN", "nan", "inf", "Inf", "Infinity", "N/A"})
    if (word == one) return true;
  return false;
}

/// Returns how many bytes a character of UTF-8 has that begins with a byte; 0: none does.
std::size_t bytes_of_character(std::uint8_t first) {
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/// Whether a byte may come behind those of a character (RFC 3629, section 4).
bool continues(std::string_view before, std::uint8_t next) {
  if (next < 0x80 || next > 0xbf) return false;
  if (before.size() > 1) return true;
  switch (static_cast<std::uint8_t>(before[0])) {
    case 0xe0:
      return next >= 0xa0;
    case 0xed:
      return next <= 0x9f;
    case 0xf0:
      return next >= 0x90;
    case 0xf4:
      return next <= 0x8f;
    default:
      return true;
  }
}

/// Whether a character of a text stands for itself, and nothing begins with it.
bool is_plain(char c) {
  const auto byte = static_cast<std::uint8_t>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

}  // namespace

void JsonMender::add(std::string_view piece, std::string& to) {
  if (begun_ == 0 && piece.starts_with(kByteOrderMark)) {
    to.append(kByteOrderMark.size(), ' ');
    begun_ += kByteOrderMark.size();
    piece.remove_prefix(kByteOrderMark.size());
  }
  begun_ += piece.size();
  for (std::size_t i = 0; i < piece.size(); ++i) {
    if (state_ == State::text) {
      const std::size_t from = i;
      while (i < piece.size() && is_plain(piece[i])) ++i;
      to.append(piece, from, i - from);
      if (i == piece.size()) return;
    }
    take(piece[i], to);
  }
}

void JsonMender::finish(std::string& to) {
  if (state_ == State::word) end_word(to);
  to += held_;  // of a text that is torn
  held_.clear();
}

void JsonMender::take(char c, std::string& to) {
  switch (state_) {
    case State::between:
      return take_between(c, to);
    case State::word:
      if ((is_of_number(c) || c == '/') && held_.size() < kLongestWord) {
        held_ += c;
        return;
      }
      end_word(to);
      state_ = is_of_number(c) ? State::number : State::between;
      return take(c, to);
    case State::number:
      if (is_of_number(c)) {
        to += c;
        return;
      }
      state_ = State::between;
      return take_between(c, to);
    case State::text:
      return take_in_text(c, to);
    case State::escape:
      if (c == 'u') {
        held_ = "\\u";
        state_ = State::unicode;
      } else if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
        to += '\\';
        to += c;
        held_.clear();
        state_ = State::text;
      } else {
        give_up_escape(to);
        take_in_text(c, to);
      }
      return;
    case State::unicode:
      if (!is_hexadecimal(c)) {
        give_up_escape(to);
        return take_in_text(c, to);
      }
      held_ += c;
      if (held_.size() < 6) return;
      to += held_;
      held_.clear();
      state_ = State::text;
      return;
    case State::sequence:
      if (!continues(held_, static_cast<std::uint8_t>(c))) {
        give_up_sequence(to);
        return take_in_text(c, to);
      }
      held_ += c;
      if (held_.size() < wanted_) return;
      to += held_;
      held_.clear();
      state_ = State::text;
      return;
  }
}

void JsonMender::take_between(char c, std::string& to) {
  if (c == '"') {
    to += c;
    state_ = State::text;
  } else if (c >= '0' && c <= '9') {
    to += c;
    state_ = State::number;
  } else if (is_letter(c) || c == '-' || c == '+') {
    held_.assign(1, c);
    state_ = State::word;
  } else {
    to += c;
  }
}

void JsonMender::take_in_text(char c, std::string& to) {
  const auto byte = static_cast<std::uint8_t>(c);
  if (c == '"') {
    to += c;
    state_ = State::between;
  } else if (c == '\\') {
    held_.assign(1, c);
    state_ = State::escape;
  } else if (is_plain(c)) {
    to += c;
  } else if (byte < 0x20) {
    to += ' ';
    ++mended_.characters;
  } else if ((wanted_ = bytes_of_character(byte)) > 0) {
    held_.assign(1, c);
    state_ = State::sequence;
  } else {
    to += '?';
    ++mended_.characters;
  }
}

void JsonMender::end_word(std::string& to) {
  if (is_no_number(held_)) {
    constexpr std::string_view kNull = "null";
    if (held_.size() < kNull.size() && !to.empty() && to.back() == ' ') to.pop_back();
    to += kNull;
    if (held_.size() > kNull.size()) to.append(held_.size() - kNull.size(), ' ');
    ++mended_.values;
  } else {
    to += held_;
  }
  held_.clear();
}

void JsonMender::give_up_sequence(std::string& to) {
  to.append(held_.size(), '?');
  mended_.characters += static_cast<std::int64_t>(held_.size());
  held_.clear();
  state_ = State::text;
}

void JsonMender::give_up_escape(std::string& to) {
  to += '/';
  to.append(held_, 1);
  ++mended_.characters;
  held_.clear();
  state_ = State::text;
}

MendedStream::MendedStream(std::istream& bytes) : bytes_(bytes), piece_(kPiece) {}

MendedStream::int_type MendedStream::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  text_.clear();
  while (text_.empty() && !has_ended_) {
    const std::streamsize bytes = bytes_.rdbuf()->sgetn(piece_.data(), std::ssize(piece_));
    if (bytes > 0)
      mender_.add({piece_.data(), static_cast<std::size_t>(bytes)}, text_);
    else
      mender_.finish(text_), has_ended_ = true;
  }
  if (text_.empty()) return traits_type::eof();
  setg(text_.data(), text_.data(), text_.data() + text_.size());
  return traits_type::to_int_type(*gptr());
}

}  // namespace manyworlds::experiments::kineto
