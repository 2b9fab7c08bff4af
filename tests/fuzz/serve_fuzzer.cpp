// Any bytes as what a client sends to the live page's server, in any portions: it answers each request once, the same
// however the bytes were split, keeps no more than one request, and shows nothing to who has no token.
#include <algorithm>
#include <string>
#include <vector>

#include "farm/serve/http_session.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm::serve;

namespace {

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";
constexpr const char* kSecret = "what the run computes";

struct Heard {
  std::vector<int> statuses;
  std::string bytes;
  bool finished = false;
};

HttpHandler site_with(const std::string& token, const std::filesystem::path& results) {
  const auto secret = std::make_shared<const std::string>(kSecret);
  HttpHandler handler(Access(token, 8080), {{"/", {"text/html", secret}}});
  handler.publish({secret, secret, results});
  return handler;
}

/// `portions` say how many bytes come at a time, over and over. The site is the client's own, as it counts requests.
Heard hear(HttpHandler handler, std::string_view bytes, std::basic_string_view<std::uint8_t> portions) {
  HttpSession session(handler);
  Heard heard;
  std::size_t turn = 0;
  while (!bytes.empty() && !session.finished()) {
    const std::size_t wanted = portions.empty() ? bytes.size() : 1 + portions[turn++ % portions.size()];
    const std::size_t some = std::min({wanted, bytes.size(), session.free_bytes()});
    fuzz::require(some > 0);  // a conversation that is not over takes more
    session.receive(bytes.substr(0, some));
    bytes.remove_prefix(some);
    while (const auto response = session.next()) {
      fuzz::require(response->head.starts_with("HTTP/1.1 ") && response->head.ends_with("\r\n\r\n"));
      fuzz::require(response->head.find("\r\n\r\n") == response->head.size() - 4);  // nothing of a client's in there
      heard.statuses.push_back(response->status);
      if (response->body) heard.bytes += *response->body;
      if (response->events || response->file) heard.bytes += kSecret;
      fuzz::require(response->close == session.finished());
    }
  }
  heard.finished = session.finished();
  if (const auto late = session.request_timed_out()) fuzz::require(late->status == 408 && late->close);
  return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::WorkFolder folder;
  if (size < 1) return 0;
  folder.put("results.h5", kSecret);
  // One byte tells how many of the next ones tell portions; the rest is what the client says.
  const std::size_t portions = std::min<std::size_t>(data[0] % 8, size - 1);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1 + portions, size - 1 - portions);
  for (const char* token : {"", kToken}) {
    const HttpHandler handler = site_with(token, folder.path / "results.h5");
    const Heard whole = hear(handler, bytes, {}), split = hear(handler, bytes, {data + 1, portions});
    fuzz::require(whole.statuses == split.statuses && whole.bytes == split.bytes && whole.finished == split.finished);
    if (*token != 0 && bytes.find(kToken) == std::string_view::npos)
      fuzz::require(whole.bytes.find(kSecret) == std::string::npos);
  }
  return 0;
}
