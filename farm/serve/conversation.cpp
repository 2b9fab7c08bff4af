#include "farm/serve/conversation.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>

#include "core/base/error.hpp"

namespace manyworlds::farm::serve {
namespace {

namespace http = boost::beast::http;
using Parser = http::request_parser<http::buffer_body>;

std::string text_of(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

Request request_of(const Parser& parser) {
  const auto& message = parser.get();
  const std::string target = text_of(message.target());
  const auto question = std::min(target.find('?'), target.size());
  Request request;
  request.method = message.method() == http::verb::get    ? Request::Method::get
                   : message.method() == http::verb::head ? Request::Method::head
                                                          : Request::Method::other;
  request.path = target.substr(0, question);
  request.query = target.substr(std::min(question + 1, target.size()));
  request.host = text_of(message[http::field::host]);
  request.authorization = text_of(message[http::field::authorization]);
  request.cookie = text_of(message[http::field::cookie]);
  request.keep_alive = message.keep_alive();
  return request;
}

/// Whether it is what RFC 7230 asks of a request to an origin server: one host, and a path.
bool well_formed(const Parser& parser) {
  const auto& message = parser.get();
  const auto hosts = message.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && message.version() >= 11)) return false;
  return message.target().starts_with('/') || message.method() == http::verb::options;
}

}  // namespace

void Conversation::receive(std::string_view bytes) {
  MANYWORLDS_CHECK(bytes.size() <= room(), "{} bytes where {} fit", bytes.size(), room());
  here_ += bytes;
}

Answer Conversation::refused(int status) {
  over_ = true;
  here_.clear();
  return Site::refusal(status);
}

std::optional<Answer> Conversation::next() {
  // Line ends before a request are allowed, and left behind by old clients (RFC 7230, section 3.5).
  here_.erase(0, std::min(here_.find_first_not_of("\r\n"), here_.size()));
  if (over_ || here_.empty()) return std::nullopt;
  Parser parser;
  parser.header_limit(kHeadBytes);
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());  // whether there is one is looked at below
  boost::system::error_code error;
  const std::size_t used = parser.put(boost::asio::buffer(here_), error);
  if (error == http::error::need_more && here_.size() <= kHeadBytes) return std::nullopt;
  if (error == http::error::need_more || error == http::error::header_limit) return refused(431);
  if (error) return refused(400);
  if (!parser.is_header_done()) return here_.size() > kHeadBytes ? std::optional(refused(431)) : std::nullopt;
  if (!well_formed(parser)) return refused(400);
  if (parser.chunked() || parser.content_length().value_or(0) > 0) return refused(413);
  here_.erase(0, used);
  ++site_.traffic().requests;
  Answer answer = site_.answer(request_of(parser));
  over_ = answer.close;
  if (over_) here_.clear();
  return answer;
}

std::optional<Answer> Conversation::too_slow() {
  if (!midway() || over_) return std::nullopt;
  return refused(408);
}

}  // namespace manyworlds::farm::serve
