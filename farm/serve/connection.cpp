#include "farm/serve/connection.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <utility>

namespace manyworlds::farm::serve {
namespace {

using boost::system::error_code;

constexpr std::size_t kChunkBytes = 64 << 10;
// Bytes that the operating system may buffer for a client that does not read.
constexpr int kSendBufferBytes = 128 << 10;
constexpr std::chrono::seconds kLingerTime{2};
constexpr std::size_t kMaxDiscardedBytes = 256 << 10;

}  // namespace

Connection::Connection(Server& server, boost::asio::ip::tcp::socket socket)
    : server_(server), socket_(std::move(socket)), timer_(server.context_), session_(server.handler_) {}

void Connection::begin() {
  error_code ignored;
  socket_.set_option(boost::asio::socket_base::send_buffer_size(kSendBufferBytes), ignored);
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  proceed();
}

/// Sends the next response, or reads more bytes.
void Connection::proceed() {
  if (ending_) return close();
  if (auto response = session_.next()) return send(std::move(*response));
  if (session_.finished()) return linger();
  if (had_request_ && !session_.has_partial_request()) {
    request_deadline_.reset();
    set_deadline(Clock::now() + server_.limits_.keep_alive, &Connection::close);
  } else {
    // The deadline of a request does not move when more of its bytes arrive.
    if (!request_deadline_) request_deadline_ = Clock::now() + server_.limits_.request;
    set_deadline(*request_deadline_, &Connection::request_timed_out);
  }
  read();
}

void Connection::read() {
  if (std::exchange(reading_, true)) return;
  const bool expects_request = !streaming_ && !session_.finished();
  const std::size_t free_bytes =
      expects_request ? std::min(read_buffer_.size(), session_.free_bytes()) : read_buffer_.size();
  socket_.async_read_some(boost::asio::buffer(read_buffer_.data(), free_bytes),
                          [self = shared_from_this()](error_code error, std::size_t bytes_read) {
                            self->reading_ = false;
                            if (self->closed_) return;
                            if (error) return self->close();
                            self->received(bytes_read);
                          });
}

void Connection::received(std::size_t bytes) {
  if (lingering_) {
    discarded_bytes_ += bytes;
    return discarded_bytes_ > kMaxDiscardedBytes ? close() : read();
  }
  if (streaming_) return close();   // a client that streams has nothing more to send
  if (session_.finished()) return;  // it has been answered that it is too late
  session_.receive({read_buffer_.data(), bytes});
  proceed();
}

void Connection::send(Response response) {
  had_request_ = true;
  request_deadline_.reset();
  head_ = std::move(response.head);
  body_ = std::move(response.body);
  file_ = std::move(response.file);
  file_at_ = 0, file_bytes_ = response.file_bytes;
  streaming_ = response.events;
  if (streaming_) {
    read();  // only to detect the end of the connection
    return send_events(head_ + "retry: 2000\n\n");
  }
  start_write(file_bytes_);
}

/// Sends the published state as an event, after `prefix`.
void Connection::send_events(std::string prefix) {
  sent_version_ = server_.version_;
  head_ = std::move(prefix) + "event: status\ndata: ";
  body_ = server_.handler_.published().status;
  tail_ = "\n\n";
  start_write(0);
}

void Connection::start_write(std::uint64_t bytes) {
  writing_ = true;
  sent_ = 0;
  chunk_.clear();
  bytes += head_.size() + tail_.size() + (body_ ? body_->size() : 0);
  response_deadline_ =
      Clock::now() + server_.limits_.response +
      std::chrono::milliseconds(bytes * 1'000 / std::max<std::uint64_t>(server_.limits_.bytes_per_s, 1));
  write();
}

/// Reads the next bytes of the file; returns false at its end.
bool Connection::refill() {
  if (!file_ || file_at_ >= file_bytes_) return false;
  chunk_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kChunkBytes, file_bytes_ - file_at_)));
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
    const std::size_t offset = std::min(skip, part.size());
    skip -= offset;
    buffers[i++] = boost::asio::buffer(part.data() + offset, part.size() - offset);
    left += part.size() - offset;
  }
  if (left == 0) {
    try {
      if (refill()) return write();
    } catch (const std::exception&) {
      return drop();  // the file became unreadable: the missing bytes tell the client
    }
    return write_completed();
  }
  set_deadline(std::min(Clock::now() + server_.limits_.stall, response_deadline_), &Connection::drop);
  socket_.async_write_some(buffers, [self = shared_from_this()](error_code error, std::size_t bytes_written) {
    if (self->closed_) return;
    if (error) return self->close();
    self->sent_ += bytes_written;
    self->write();
  });
}

void Connection::write_completed() {
  writing_ = false;
  clear_deadline();
  if (file_ && file_at_ < file_bytes_) return close();  // the file has become shorter
  head_.clear(), tail_.clear(), chunk_.clear();
  body_ = nullptr, file_ = nullptr;
  if (!streaming_) return proceed();
  if (sent_version_ != server_.version_) return send_events("");
  if (ending_) close();
}

/// Closes after the last response. Closing a socket with unread input would reset the connection and discard that
/// response, so input is read and discarded for a moment.
void Connection::linger() {
  lingering_ = true;
  error_code ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  set_deadline(Clock::now() + kLingerTime, &Connection::close);
  read();
}

void Connection::state_changed() {
  if (streaming_ && !writing_ && !closed_ && sent_version_ != server_.version_) send_events("");
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

void Connection::set_deadline(Clock::time_point deadline, void (Connection::*on_late)()) {
  timer_.expires_at(deadline);
  // A cancelled timer may already have queued its handler, hence the identifier of the deadline.
  timer_.async_wait([self = shared_from_this(), on_late, deadline_id = ++deadline_id_](error_code error) {
    if (!error && deadline_id == self->deadline_id_ && !self->closed_) ((*self).*on_late)();
  });
}

void Connection::clear_deadline() {
  ++deadline_id_;
  timer_.cancel();
}

/// Handles a request that did not arrive in time; the client gets a response if the request had begun.
void Connection::request_timed_out() {
  ++server_.handler_.counters().dropped;
  if (auto response = session_.request_timed_out()) return send(std::move(*response));
  close();
}

void Connection::drop() {
  ++server_.handler_.counters().dropped;
  error_code ignored;
  // Closing must not wait for unsent bytes.
  socket_.set_option(boost::asio::socket_base::linger(true, 0), ignored);
  close();
}

void Connection::close() {
  if (std::exchange(closed_, true)) return;
  clear_deadline();
  error_code ignored;
  socket_.close(ignored);
  server_.leave(shared_from_this());
}

}  // namespace manyworlds::farm::serve
