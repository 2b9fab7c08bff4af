// One client of the server, with its socket and deadlines: it reads requests, sends responses, or streams events. Only
// the newest event is sent: a slow client skips states and never has a queue of them.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "farm/serve/http_session.hpp"
#include "farm/serve/server.hpp"

namespace manyworlds::farm::serve {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, boost::asio::ip::tcp::socket socket);

  void begin();
  /// Notifies the connection that a new state is published.
  void state_changed();
  /// Sends a comment line on an idle event stream, so that it stays open.
  void heartbeat();
  /// Ends the connection when the server stops, after the current response and the last state.
  void finish();
  void close();

 private:
  using Clock = std::chrono::steady_clock;

  void read();
  void received(std::size_t bytes);
  void proceed();
  void send(Response response);
  void send_events(std::string prefix);
  void start_write(std::uint64_t bytes);
  void write();
  bool refill();
  void write_completed();
  void linger();
  void set_deadline(Clock::time_point deadline, void (Connection::*on_late)());
  void clear_deadline();
  void request_timed_out();
  void drop();

  Server& server_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  HttpSession session_;
  std::array<char, 4096> read_buffer_;

  // The data being sent: a head, then bytes that connections share, then a tail or a file.
  std::string head_, tail_;
  Bytes body_;
  std::unique_ptr<io::File> file_;
  std::uint64_t file_at_ = 0, file_bytes_ = 0;
  std::string chunk_;
  std::size_t sent_ = 0;  // bytes sent of head, body, tail and chunk together
  Clock::time_point response_deadline_;

  std::optional<Clock::time_point> request_deadline_;  // deadline of a request that has begun
  std::uint64_t deadline_id_ = 0;                      // identifies the deadline that the timer belongs to
  std::uint64_t sent_version_ = 0;                     // version of the last state sent
  std::size_t discarded_bytes_ = 0;
  bool had_request_ = false, reading_ = false, writing_ = false, streaming_ = false;
  bool ending_ = false, lingering_ = false, closed_ = false;
};

}  // namespace manyworlds::farm::serve
