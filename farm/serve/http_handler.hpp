// Maps requests to responses: a path to bytes, a file or an event stream, with header fields that restrict what a
// browser may do with them. Independent of sockets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "farm/http/access.hpp"
#include "farm/http/request.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm::serve {

using Bytes = std::shared_ptr<const std::string>;

/// The state of a run that clients can see now.
struct PublishedState {
  Bytes status;                   // JSON on one line
  Bytes metrics;                  // metrics of the run in Prometheus' text format
  std::filesystem::path results;  // path of results.h5, which may not exist yet
};

/// Counters of the server itself, for /metrics.
struct ServerCounters {
  std::uint64_t connections = 0;                                        // currently open
  std::uint64_t accepted = 0, rejected = 0, dropped = 0, requests = 0;  // since the start of the server
};

struct Page {
  std::string type;  // Content-Type
  Bytes text;
};
using Pages = std::map<std::string, Page>;  // by path

struct Response {
  int status = 200;
  std::string head;                // status line and header fields, including the empty line
  Bytes body;                      // may be null
  std::unique_ptr<io::File> file;  // source of the body, if not null
  std::uint64_t file_bytes = 0;
  bool events = false;  // the connection becomes an event stream
  bool close = false;   // the connection ends after this response
};

class HttpHandler {
 public:
  HttpHandler(Access access, Pages pages) : access_(std::move(access)), pages_(std::move(pages)) {}

  void publish(PublishedState published) { published_ = std::move(published); }
  const PublishedState& published() const { return published_; }
  ServerCounters& counters() { return counters_; }
  const ServerCounters& counters() const { return counters_; }

  Response response(const Request& request) const;
  /// Returns a response that consists of its status and ends the connection: 400, 408, 413, 431 or 503.
  static Response refusal(int status);

 private:
  Response granted_response(const Request& request) const;

  Access access_;
  Pages pages_;
  PublishedState published_;
  ServerCounters counters_;
};

}  // namespace manyworlds::farm::serve
