// JSON as profilers write it, made JSON as it is defined (RFC 8259). Kineto writes NaN, inf and N/A where a number is
// not known (occupancies, rates), names with bytes that are no UTF-8 and with line ends, and paths of Windows whose
// backslashes are not escaped. A number that is none becomes null; in texts such a byte becomes a question mark, a
// control character a space, and a backslash that begins no escape a slash. How often that was done is counted.
#pragma once

#include <cstdint>
#include <istream>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::kineto {

struct Mended {
  std::int64_t values = 0;      // that are no JSON: NaN, nan, inf, Infinity, N/A, each with a sign or without
  std::int64_t characters = 0;  // in texts: no UTF-8, control characters, backslashes that begin no escape
};

/// Mends a text piece by piece. A mended text is as long as what was given, but for a letter where a value of three
/// letters has no blank before it.
class JsonMender {
 public:
  /// Appends to `to` what is known of the text up to the end of a piece.
  void add(std::string_view piece, std::string& to);
  /// Appends what is left at the end of the text.
  void finish(std::string& to);
  const Mended& mended() const { return mended_; }

 private:
  enum class State : std::uint8_t { between, word, number, text, escape, unicode, sequence };

  void take(char c, std::string& to);
  void take_between(char c, std::string& to);
  void take_in_text(char c, std::string& to);
  void end_word(std::string& to);
  void give_up_sequence(std::string& to);
  void give_up_escape(std::string& to);

  State state_ = State::between;
  std::string held_;         // of a word, an escape or a character, until it is whole
  std::size_t wanted_ = 0;   // bytes that a character has
  std::uint64_t begun_ = 0;  // bytes taken
  Mended mended_;
};

/// The mended text of a stream of bytes, read as it is needed.
class MendedStream : public std::streambuf {
 public:
  explicit MendedStream(std::istream& bytes);
  const Mended& mended() const { return mender_.mended(); }

 protected:
  int_type underflow() override;

 private:
  std::istream& bytes_;
  JsonMender mender_;
  std::vector<char> piece_;
  std::string text_;
  bool has_ended_ = false;
};

}  // namespace manyworlds::experiments::kineto
