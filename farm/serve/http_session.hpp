// One HTTP session without its socket: bytes of a client in, responses out, one after another. Input is buffered only
// up to the maximum length of one request.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "farm/serve/http_handler.hpp"

namespace manyworlds::farm::serve {

class HttpSession {
 public:
  static constexpr std::size_t kHeadBytes = 8192;  // maximum length of a request line and its header fields

  /// `handler` must outlive this object.
  explicit HttpSession(HttpHandler& handler) : handler_(handler) {}

  /// Returns how many bytes receive() accepts now: 0 until next() frees space, and after the session has ended.
  std::size_t free_bytes() const { return finished_ ? 0 : kHeadBytes + 1 - input_.size(); }
  /// Appends at most free_bytes() bytes of input.
  void receive(std::string_view bytes);
  /// Returns the response to the next complete request, or the refusal of an invalid one; nullopt while bytes are
  /// missing.
  std::optional<Response> next();
  /// Returns the response when a request has timed out; nullopt if none had begun.
  std::optional<Response> request_timed_out();

  /// Returns whether part of a request has arrived.
  bool has_partial_request() const { return !input_.empty(); }
  /// Returns whether the session has ended, so that no further response follows.
  bool finished() const { return finished_; }

 private:
  Response refuse(int status);

  HttpHandler& handler_;
  std::string input_;
  bool finished_ = false;
};

}  // namespace manyworlds::farm::serve
