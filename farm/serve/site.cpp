#include "farm/serve/site.hpp"

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
// A page may load what stands beside it here and nothing else; nobody may frame it.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const char* words_of(int status) {
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
      status, words_of(status), fmt::gmtime(std::time(nullptr)), kPolicy);
  for (const auto& [name, value] : fields) head += fmt::format("{}: {}\r\n", name, value);
  return head + "\r\n";
}

const char* connection(bool close) {
  return close ? "close" : "keep-alive";
}

Answer whole(int status, const std::string& type, Bytes body, bool close, const Fields& more = {}) {
  Answer answer;
  answer.status = status;
  answer.close = close;
  Fields fields{
      {"Content-Type", type}, {"Content-Length", std::to_string(body->size())}, {"Connection", connection(close)}};
  fields.insert(fields.end(), more.begin(), more.end());
  answer.head = head_of(status, fields);
  answer.body = std::move(body);
  return answer;
}

Answer words(int status, const std::string& text, bool close, const Fields& more = {}) {
  return whole(status, kText, std::make_shared<const std::string>(text + "\n"), close, more);
}

Answer stream() {
  Answer answer;
  answer.events = answer.close = true;
  answer.head = head_of(200, {{"Content-Type", kEvents}, {"Connection", "close"}});
  return answer;
}

/// The whole file as it is when it is opened: a newer one is put in its place, and does not change it.
Answer file(const std::filesystem::path& path, bool close) {
  Answer answer;
  try {
    answer.file = std::make_unique<io::File>(path, O_RDONLY);
    answer.file_bytes = answer.file->size();
  } catch (const core::IoError& error) {
    if (error.code == ENOENT || error.code == ENOTDIR) return words(404, "there are no results yet", close);
    return words(503, "the results cannot be read now", close);
  } catch (const core::InputError&) {  // a FIFO, say
    return words(503, "what is called results.h5 is no file", close);
  }
  answer.close = close;
  answer.head = head_of(200, {{"Content-Type", kHdf5},
                              {"Content-Length", std::to_string(answer.file_bytes)},
                              {"Content-Disposition", "attachment; filename=\"results.h5\""},
                              {"Connection", connection(close)}});
  return answer;
}

}  // namespace

Answer Site::refusal(int status) {
  return words(status, words_of(status), true);
}

Answer Site::answer(const Request& request) const {
  Answer answer;
  const auto verdict = access_.judge(request);
  if (verdict == Access::Verdict::refused) {
    answer = words(401, "this needs the token of the run: open the address that was printed when it began", true,
                   {{"WWW-Authenticate", "Bearer"}});
  } else if (verdict == Access::Verdict::misdirected) {
    answer = words(421, "this is served to this machine alone: open http://localhost with the port", true);
  } else {
    answer = answer_granted(request);
    if (verdict == Access::Verdict::granted_now)
      answer.head.insert(answer.head.size() - 2, fmt::format("Set-Cookie: {}\r\n", access_.cookie()));
  }
  if (request.method != Request::Method::head) return answer;
  answer.body = nullptr;
  answer.file = nullptr;
  answer.events = false;
  return answer;
}

Answer Site::answer_granted(const Request& request) const {
  const bool close = !request.keep_alive;
  if (request.method == Request::Method::other) return words(405, "GET or HEAD", close, {{"Allow", "GET, HEAD"}});
  if (const auto page = pages_.find(request.path); page != pages_.end())
    return whole(200, page->second.type, page->second.text, close);
  if (request.path == "/events") return stream();
  if (request.path == "/status.json") return whole(200, kJson, shown_.status, close);
  if (request.path == "/metrics")
    return whole(200, kMetrics, std::make_shared<const std::string>(*shown_.metrics + traffic_metrics(traffic_)),
                 close);
  if (request.path == "/results.h5") return file(shown_.results, close);
  if (request.path == "/healthz") return words(200, "ok", close);
  return words(404, "there are /, /events, /status.json, /metrics, /results.h5 and /healthz", close);
}

}  // namespace manyworlds::farm::serve
