#include "farm/serve/connection.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <utility>

namespace manyworlds::farm::serve {
namespace {

using boost::system::error_code;

constexpr std::size_t kChunk = 64 << 10;
// What the system may keep for a client that does not read.
constexpr int kSystemBuffer = 128 << 10;
constexpr std::chrono::seconds kLinger{2};
constexpr std::size_t kThrownAway = 256 << 10;

}  // namespace

Connection::Connection(Server& server, boost::asio::ip::tcp::socket socket)
    : server_(server), socket_(std::move(socket)), timer_(server.context_), conversation_(server.site_) {}

void Connection::begin() {
  error_code ignored;
  socket_.set_option(boost::asio::socket_base::send_buffer_size(kSystemBuffer), ignored);
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  proceed();
}

/// The next answer, or more bytes.
void Connection::proceed() {
  if (ending_) return close();
  if (auto answer = conversation_.next()) return send(std::move(*answer));
  if (conversation_.over()) return linger();
  if (had_request_ && !conversation_.midway()) {
    request_by_.reset();
    expect(Clock::now() + server_.limits_.keep_alive, &Connection::close);
  } else {
    // More bytes of a request do not move its deadline.
    if (!request_by_) request_by_ = Clock::now() + server_.limits_.request;
    expect(*request_by_, &Connection::too_slow);
  }
  read();
}

void Connection::read() {
  if (std::exchange(reading_, true)) return;
  const bool asking = !streaming_ && !conversation_.over();
  const std::size_t room = asking ? std::min(in_.size(), conversation_.room()) : in_.size();
  socket_.async_read_some(boost::asio::buffer(in_.data(), room),
                          [self = shared_from_this()](error_code error, std::size_t got) {
                            self->reading_ = false;
                            if (self->closed_) return;
                            if (error) return self->close();
                            self->received(got);
                          });
}

void Connection::received(std::size_t bytes) {
  if (lingering_) {
    thrown_away_ += bytes;
    return thrown_away_ > kThrownAway ? close() : read();
  }
  if (streaming_) return close();    // who streams has nothing more to say
  if (conversation_.over()) return;  // it was told that it is too late
  conversation_.receive({in_.data(), bytes});
  proceed();
}

void Connection::send(Answer answer) {
  had_request_ = true;
  request_by_.reset();
  head_ = std::move(answer.head);
  body_ = std::move(answer.body);
  file_ = std::move(answer.file);
  file_at_ = 0, file_bytes_ = answer.file_bytes;
  streaming_ = answer.events;
  if (streaming_) {
    read();  // only to notice its end
    return send_events(head_ + "retry: 2000\n\n");
  }
  start_write(file_bytes_);
}

/// The state shown now, as an event behind `prefix`.
void Connection::send_events(std::string prefix) {
  seen_ = server_.version_;
  head_ = std::move(prefix) + "event: status\ndata: ";
  body_ = server_.site_.shown().status;
  tail_ = "\n\n";
  start_write(0);
}

void Connection::start_write(std::uint64_t bytes) {
  writing_ = true;
  sent_ = 0;
  chunk_.clear();
  bytes += head_.size() + tail_.size() + (body_ ? body_->size() : 0);
  answer_by_ = Clock::now() + server_.limits_.answer +
               std::chrono::milliseconds(bytes * 1'000 / std::max<std::uint64_t>(server_.limits_.bytes_per_s, 1));
  write();
}

/// The file's next bytes; false at its end.
bool Connection::refill() {
  if (!file_ || file_at_ >= file_bytes_) return false;
  chunk_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, file_bytes_ - file_at_)));
  chunk_.resize(file_->read_at(file_at_, chunk_.data(), chunk_.size()));
  file_at_ += chunk_.size();
  head_.clear(), tail_.clear(), body_ = nullptr, sent_ = 0;
  return !chunk_.empty();
}

void Connection::write() {
  std::array<boost::asio::const_buffer, 4> buffers;
  std::size_t skip = sent_, left = 0, i = 0;
  for (const std::string_view part : {std::string_view(head_), body_ ? std::string_view(*body_) : std::string_view(),
                                      std::string_view(tail_), std::string_view(chunk_)}) {
    const std::size_t off = std::min(skip, part.size());
    skip -= off;
    buffers[i++] = boost::asio::buffer(part.data() + off, part.size() - off);
    left += part.size() - off;
  }
  if (left == 0) {
    try {
      if (refill()) return write();
    } catch (const std::exception&) {
      return drop();  // a file that cannot be read any more: the client sees that bytes are missing
    }
    return written();
  }
  expect(std::min(Clock::now() + server_.limits_.stall, answer_by_), &Connection::drop);
  socket_.async_write_some(buffers, [self = shared_from_this()](error_code error, std::size_t put) {
    if (self->closed_) return;
    if (error) return self->close();
    self->sent_ += put;
    self->write();
  });
}

void Connection::written() {
  writing_ = false;
  expect_nothing();
  if (file_ && file_at_ < file_bytes_) return close();  // it is shorter than it was
  head_.clear(), tail_.clear(), chunk_.clear();
  body_ = nullptr, file_ = nullptr;
  if (!streaming_) return proceed();
  if (seen_ != server_.version_) return send_events("");
  if (ending_) close();
}

/// The last answer is out. Closing while bytes of the client are unread would take it back, so they are thrown away for
/// a moment.
void Connection::linger() {
  lingering_ = true;
  error_code ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  expect(Clock::now() + kLinger, &Connection::close);
  read();
}

void Connection::state_changed() {
  if (streaming_ && !writing_ && !closed_ && seen_ != server_.version_) send_events("");
}

void Connection::heartbeat() {
  if (!streaming_ || writing_ || closed_) return;
  head_ = ":\n\n";
  start_write(0);
}

void Connection::finish() {
  ending_ = true;
  if (!writing_) close();
}

void Connection::expect(Clock::time_point by, void (Connection::*late)()) {
  timer_.expires_at(by);
  // A wait may have ended, and its handler be on its way, when something else is expected.
  timer_.async_wait([self = shared_from_this(), late, patience = ++patience_](error_code error) {
    if (!error && patience == self->patience_ && !self->closed_) ((*self).*late)();
  });
}

void Connection::expect_nothing() {
  ++patience_;
  timer_.cancel();
}

/// A request that does not come; it is said where one has begun.
void Connection::too_slow() {
  ++server_.site_.traffic().dropped;
  if (auto answer = conversation_.too_slow()) return send(std::move(*answer));
  close();
}

void Connection::drop() {
  ++server_.site_.traffic().dropped;
  error_code ignored;
  // Unsent bytes are not worth waiting for.
  socket_.set_option(boost::asio::socket_base::linger(true, 0), ignored);
  close();
}

void Connection::close() {
  if (std::exchange(closed_, true)) return;
  expect_nothing();
  error_code ignored;
  socket_.close(ignored);
  server_.leave(shared_from_this());
}

}  // namespace manyworlds::farm::serve
