#include "farm/serve/http_session.hpp"

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

/// Returns whether the request conforms to RFC 7230 for an origin server: one host, and a path.
bool well_formed(const Parser& parser) {
  const auto& message = parser.get();
  const auto hosts = message.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && message.version() >= 11)) return false;
  return message.target().starts_with('/') || message.method() == http::verb::options;
}

}  // namespace

void HttpSession::receive(std::string_view bytes) {
  MANYWORLDS_CHECK(bytes.size() <= free_bytes(), "{} bytes where {} fit", bytes.size(), free_bytes());
  input_ += bytes;
}

Response HttpSession::refuse(int status) {
  finished_ = true;
  input_.clear();
  return HttpHandler::refusal(status);
}

std::optional<Response> HttpSession::next() {
  // Empty lines before a request are allowed, and old clients send them (RFC 7230, section 3.5).
  input_.erase(0, std::min(input_.find_first_not_of("\r\n"), input_.size()));
  if (finished_ || input_.empty()) return std::nullopt;
  Parser parser;
  parser.header_limit(kHeadBytes);
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());  // a body is rejected below
  boost::system::error_code error;
  const std::size_t parsed_bytes = parser.put(boost::asio::buffer(input_), error);
  if (error == http::error::need_more && input_.size() <= kHeadBytes) return std::nullopt;
  if (error == http::error::need_more || error == http::error::header_limit) return refuse(431);
  if (error) return refuse(400);
  if (!parser.is_header_done()) return input_.size() > kHeadBytes ? std::optional(refuse(431)) : std::nullopt;
  if (!well_formed(parser)) return refuse(400);
  if (parser.chunked() || parser.content_length().value_or(0) > 0) return refuse(413);
  input_.erase(0, parsed_bytes);
  ++handler_.counters().requests;
  Response response = handler_.response(request_of(parser));
  finished_ = response.close;
  if (finished_) input_.clear();
  return response;
}

std::optional<Response> HttpSession::request_timed_out() {
  if (!has_partial_request() || finished_) return std::nullopt;
  return refuse(408);
}

}  // namespace manyworlds::farm::serve
