// One client of the server, with its socket and its patience: reads, answers, or streams events. Of events it sends the
// newest alone: a slow client skips states and never has a queue of them.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "farm/serve/conversation.hpp"
#include "farm/serve/server.hpp"

namespace manyworlds::farm::serve {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, boost::asio::ip::tcp::socket socket);

  void begin();
  /// There is something new to see.
  void state_changed();
  /// For a stream in which nothing happens.
  void heartbeat();
  /// The server ends: what is being sent, and the last state, may still go.
  void finish();
  void close();

 private:
  using Clock = std::chrono::steady_clock;

  void read();
  void received(std::size_t bytes);
  void proceed();
  void send(Answer answer);
  void send_events(std::string prefix);
  void start_write(std::uint64_t bytes);
  void write();
  bool refill();
  void written();
  void linger();
  void expect(Clock::time_point by, void (Connection::*late)());
  void expect_nothing();
  void too_slow();
  void drop();

  Server& server_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  Conversation conversation_;
  std::array<char, 4096> in_;

  // What is being sent: a head, then bytes that many connections share, then a tail or a file.
  std::string head_, tail_;
  Bytes body_;
  std::unique_ptr<io::File> file_;
  std::uint64_t file_at_ = 0, file_bytes_ = 0;
  std::string chunk_;
  std::size_t sent_ = 0;  // of head, body, tail and chunk together
  Clock::time_point answer_by_;

  std::optional<Clock::time_point> request_by_;  // of one that has begun
  std::uint64_t patience_ = 0;                   // of whose end the timer tells
  std::uint64_t seen_ = 0;                       // version of the last state sent
  std::size_t thrown_away_ = 0;
  bool had_request_ = false, reading_ = false, writing_ = false, streaming_ = false;
  bool ending_ = false, lingering_ = false, closed_ = false;
};

}  // namespace manyworlds::farm::serve
