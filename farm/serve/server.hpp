// The server: connections, how many and how long, and the run it looks at once a second. One thread. A client that is
// slow, broken or one too many is dropped; nobody is waited for.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "farm/http/address.hpp"
#include "farm/serve/site.hpp"

namespace manyworlds::farm::serve {

class Connection;

struct ServerLimits {
  std::size_t connections = 512;
  std::chrono::milliseconds request{10'000};     // from its first byte, or from the connection's beginning
  std::chrono::milliseconds keep_alive{30'000};  // between requests
  std::chrono::milliseconds stall{10'000};       // of a client that takes no byte of its answer
  std::chrono::milliseconds answer{30'000};      // of an answer, and as long again as it takes at bytes_per_s
  std::uint64_t bytes_per_s = 4'096;
  std::chrono::milliseconds look{1'000};        // from one look at the run to the next
  std::chrono::milliseconds heartbeat{15'000};  // of streams in which nothing happens
  std::chrono::milliseconds farewell{2'000};    // for the last state to leave
};

class Server {
 public:
  Server(boost::asio::io_context& context, Listener listener, const std::filesystem::path& run_directory, Access access,
         Pages pages, ServerLimits limits = {});
  ~Server();

  /// No new connections; whoever watches gets the state the run is in now, and then the server's context runs out of
  /// work.
  void finish();

  const Site& site() const { return site_; }

 private:
  friend class Connection;
  void accept();
  void turn_away();
  void look();
  void look_again();
  void leave(const std::shared_ptr<Connection>& connection);

  boost::asio::io_context& context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::socket next_;
  boost::asio::steady_timer look_timer_, farewell_timer_, accept_timer_;
  std::filesystem::path run_directory_;
  ServerLimits limits_;
  Site site_;
  std::uint64_t version_ = 0;  // of what is shown
  std::set<std::shared_ptr<Connection>> connections_;
  std::chrono::steady_clock::time_point last_heartbeat_ = std::chrono::steady_clock::now();
  bool finishing_ = false;
};

}  // namespace manyworlds::farm::serve
