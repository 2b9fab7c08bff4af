// One connection without its socket: bytes of a client in, answers out, one after another. What a client sends ahead is
// kept only as far as one request may be long.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "farm/serve/site.hpp"

namespace manyworlds::farm::serve {

class Conversation {
 public:
  static constexpr std::size_t kHeadBytes = 8192;  // of a request: its line and header fields

  /// `site` must outlive this.
  explicit Conversation(Site& site) : site_(site) {}

  /// How many bytes receive() takes now; 0 until next() has made room, and when the conversation is over.
  std::size_t room() const { return over_ ? 0 : kHeadBytes + 1 - here_.size(); }
  /// At most room() bytes.
  void receive(std::string_view bytes);
  /// To the next request that is here whole, or the refusal of what can be none; nothing while bytes are missing.
  std::optional<Answer> next();
  /// The client has not sent the rest of its request in time: its answer, or nothing where it had not begun one.
  std::optional<Answer> too_slow();

  /// A part of a request is here.
  bool midway() const { return !here_.empty(); }
  /// No answer comes after the last one.
  bool over() const { return over_; }

 private:
  Answer refused(int status);

  Site& site_;
  std::string here_;
  bool over_ = false;
};

}  // namespace manyworlds::farm::serve
