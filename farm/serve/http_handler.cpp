#include "farm/serve/http_handler.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "core/base/error.hpp"
#include "farm/serve/metrics.hpp"

namespace manyworlds::farm::serve {
namespace {

constexpr const char* kJson = "application/json; charset=utf-8";
constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kMetrics = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kHdf5 = "application/x-hdf5";
constexpr const char* kEvents = "text/event-stream; charset=utf-8";
// The page may load files of this server only, and nobody may embed it in a frame.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const char* reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Payload Too Large";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      MANYWORLDS_CHECK(false, "no words for status {}", status);
  }
}

using Fields = std::vector<std::pair<const char*, std::string>>;

std::string head_of(int status, const Fields& fields) {
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nDate: {:%a, %d %b %Y %H:%M:%S GMT}\r\nServer: manyworlds\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"
      "Content-Security-Policy: {}\r\n",
      status, reason_phrase(status), fmt::gmtime(std::time(nullptr)), kPolicy);
  for (const auto& [name, value] : fields) head += fmt::format("{}: {}\r\n", name, value);
  return head + "\r\n";
}

const char* connection_value(bool close) {
  return close ? "close" : "keep-alive";
}

Response body_response(int status, const std::string& type, Bytes body, bool close, const Fields& extra_fields = {}) {
  Response response;
  response.status = status;
  response.close = close;
  Fields fields{{"Content-Type", type},
                {"Content-Length", std::to_string(body->size())},
                {"Connection", connection_value(close)}};
  fields.insert(fields.end(), extra_fields.begin(), extra_fields.end());
  response.head = head_of(status, fields);
  response.body = std::move(body);
  return response;
}

Response text_response(int status, const std::string& text, bool close, const Fields& extra_fields = {}) {
  return body_response(status, kText, std::make_shared<const std::string>(text + "\n"), close, extra_fields);
}

Response event_stream_response() {
  Response response;
  response.events = response.close = true;
  response.head = head_of(200, {{"Content-Type", kEvents}, {"Connection", "close"}});
  return response;
}

/// Responds with the file as it is when opened. A newer version replaces the file by renaming, so an open file does not
/// change.
Response file(const std::filesystem::path& path, bool close) {
  Response response;
  try {
    response.file = std::make_unique<io::File>(path, O_RDONLY);
    response.file_bytes = response.file->size();
  } catch (const core::IoError& error) {
    if (error.code == ENOENT || error.code == ENOTDIR) return text_response(404, "there are no results yet", close);
    return text_response(503, "the results cannot be read now", close);
  } catch (const core::InputError&) {  // not a regular file, for example a FIFO
    return text_response(503, "what is called results.h5 is no file", close);
  }
  response.close = close;
  response.head = head_of(200, {{"Content-Type", kHdf5},
                                {"Content-Length", std::to_string(response.file_bytes)},
                                {"Content-Disposition", "attachment; filename=\"results.h5\""},
                                {"Connection", connection_value(close)}});
  return response;
}

}  // namespace

Response HttpHandler::refusal(int status) {
  return text_response(status, reason_phrase(status), true);
}

Response HttpHandler::response(const Request& request) const {
  Response response;
  const auto verdict = access_.check(request);
  if (verdict == Access::Verdict::refused) {
    response = text_response(401, "this needs the token of the run: open the address that was printed when it began",
                             true, {{"WWW-Authenticate", "Bearer"}});
  } else if (verdict == Access::Verdict::misdirected) {
    response = text_response(421, "this is served to this machine alone: open http://localhost with the port", true);
  } else {
    response = granted_response(request);
    if (verdict == Access::Verdict::granted_by_query)
      response.head.insert(response.head.size() - 2, fmt::format("Set-Cookie: {}\r\n", access_.cookie()));
  }
  if (request.method != Request::Method::head) return response;
  response.body = nullptr;
  response.file = nullptr;
  response.events = false;
  return response;
}

Response HttpHandler::granted_response(const Request& request) const {
  const bool close = !request.keep_alive;
  if (request.method == Request::Method::other)
    return text_response(405, "GET or HEAD", close, {{"Allow", "GET, HEAD"}});
  if (const auto page = pages_.find(request.path); page != pages_.end())
    return body_response(200, page->second.type, page->second.text, close);
  if (request.path == "/events") return event_stream_response();
  if (request.path == "/status.json") return body_response(200, kJson, published_.status, close);
  if (request.path == "/metrics")
    return body_response(200, kMetrics,
                         std::make_shared<const std::string>(*published_.metrics + server_metrics(counters_)), close);
  if (request.path == "/results.h5") return file(published_.results, close);
  if (request.path == "/healthz") return text_response(200, "ok", close);
  return text_response(404, "there are /, /events, /status.json, /metrics, /results.h5 and /healthz", close);
}

}  // namespace manyworlds::farm::serve
