// What is answered to a request: paths to bytes, a file or a stream of events, with the header fields that keep a
// browser from doing anything else with them. Knows nothing of sockets.
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

/// What there is to see of a run now.
struct Shown {
  Bytes status;                   // JSON on one line
  Bytes metrics;                  // of the run, in Prometheus' text format
  std::filesystem::path results;  // may not be there yet
};

/// How the server itself fares, for /metrics.
struct Traffic {
  std::uint64_t connections = 0;                                           // now
  std::uint64_t accepted = 0, turned_away = 0, dropped = 0, requests = 0;  // since it began
};

struct Page {
  std::string type;  // Content-Type
  Bytes text;
};
using Pages = std::map<std::string, Page>;  // by path

struct Answer {
  int status = 200;
  std::string head;                // the status line and header fields, with the empty line behind them
  Bytes body;                      // may be null
  std::unique_ptr<io::File> file;  // whose bytes are the body
  std::uint64_t file_bytes = 0;
  bool events = false;  // the connection is a stream of events from now on
  bool close = false;   // the connection ends behind it
};

class Site {
 public:
  Site(Access access, Pages pages) : access_(std::move(access)), pages_(std::move(pages)) {}

  void show(Shown shown) { shown_ = std::move(shown); }
  const Shown& shown() const { return shown_; }
  Traffic& traffic() { return traffic_; }
  const Traffic& traffic() const { return traffic_; }

  Answer answer(const Request& request) const;
  /// An answer that is nothing but its status, and the connection's last: 400, 408, 413, 431, 503.
  static Answer refusal(int status);

 private:
  Answer answer_granted(const Request& request) const;

  Access access_;
  Pages pages_;
  Shown shown_;
  Traffic traffic_;
};

}  // namespace manyworlds::farm::serve
