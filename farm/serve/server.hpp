// The server: it accepts a limited number of connections, and polls the run directory once a second. It has one thread.
// A client that is slow, misbehaves or exceeds the limit is dropped; the server waits for nobody.
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
#include "farm/serve/http_handler.hpp"

namespace manyworlds::farm::serve {

class Connection;

struct ServerLimits {
  std::size_t connections = 512;
  std::chrono::milliseconds request{10'000};     // from its first byte, or from the start of the connection
  std::chrono::milliseconds keep_alive{30'000};  // between requests
  std::chrono::milliseconds stall{10'000};       // without progress on a response
  std::chrono::milliseconds response{30'000};    // per response, plus its size divided by bytes_per_s
  std::uint64_t bytes_per_s = 4'096;
  std::chrono::milliseconds poll{1'000};            // period of polling the run directory
  std::chrono::milliseconds heartbeat{15'000};      // period on idle event streams
  std::chrono::milliseconds shutdown_grace{2'000};  // for sending the last state
};

class Server {
 public:
  Server(boost::asio::io_context& context, Listener listener, const std::filesystem::path& run_directory, Access access,
         Pages pages, ServerLimits limits = {});
  ~Server();

  /// Closes the acceptor and sends the final state to all event streams; then the io_context runs out of work.
  void finish();

  const HttpHandler& handler() const { return handler_; }

 private:
  friend class Connection;
  void accept();
  void reject();
  void poll();
  void schedule_poll();
  void leave(const std::shared_ptr<Connection>& connection);

  boost::asio::io_context& context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::socket next_;
  boost::asio::steady_timer poll_timer_, shutdown_timer_, accept_timer_;
  std::filesystem::path run_directory_;
  ServerLimits limits_;
  HttpHandler handler_;
  std::uint64_t version_ = 0;  // incremented when the published state changes
  std::set<std::shared_ptr<Connection>> connections_;
  std::chrono::steady_clock::time_point last_heartbeat_ = std::chrono::steady_clock::now();
  bool finishing_ = false;
};

}  // namespace manyworlds::farm::serve
