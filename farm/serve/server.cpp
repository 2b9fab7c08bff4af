#include "farm/serve/server.hpp"

#include <boost/asio/buffer.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.hpp"
#include "farm/serve/connection.hpp"
#include "farm/serve/metrics.hpp"
#include "farm/status/run_status.hpp"
#include "io/log/run_directory.hpp"

namespace manyworlds::farm::serve {
namespace {

using boost::system::error_code;

constexpr std::chrono::milliseconds kBreath{100};  // when the system has no room for a connection

/// What is said of a run that has not said anything yet, or nothing that can be read.
nlohmann::json status_of(const std::filesystem::path& run_directory) {
  try {
    if (auto status = look_at_run(run_directory)) return *std::move(status);
    return {{"format", 1}, {"state", "starting"}};
  } catch (const core::IoError& error) {
    return {{"format", 1}, {"state", "starting"}, {"reason", error.what()}};
  } catch (const core::InputError& error) {
    return {{"format", 1}, {"state", "starting"}, {"reason", error.what()}};
  }
}

}  // namespace

Server::Server(boost::asio::io_context& context, Listener listener, const std::filesystem::path& run_directory,
               Access access, Pages pages, ServerLimits limits)
    : context_(context),
      acceptor_(context),
      next_(context),
      look_timer_(context),
      farewell_timer_(context),
      accept_timer_(context),
      run_directory_(run_directory),
      limits_(limits),
      site_(std::move(access), std::move(pages)) {
  const auto protocol = listener.v6() ? boost::asio::ip::tcp::v6() : boost::asio::ip::tcp::v4();
  acceptor_.assign(protocol, listener.release());
  look();
  look_again();
  accept();
}

Server::~Server() = default;

void Server::accept() {
  acceptor_.async_accept(next_, [this](error_code error) {
    if (error == boost::asio::error::operation_aborted || finishing_) return;
    if (error) {
      accept_timer_.expires_after(kBreath);
      accept_timer_.async_wait([this](error_code stopped) {
        if (!stopped && !finishing_) accept();
      });
      return;
    }
    if (connections_.size() >= limits_.connections) {
      turn_away();
    } else {
      ++site_.traffic().accepted;
      const auto connection = std::make_shared<Connection>(*this, std::move(next_));
      connections_.insert(connection);
      site_.traffic().connections = connections_.size();
      connection->begin();
    }
    next_ = boost::asio::ip::tcp::socket(context_);
    accept();
  });
}

/// As much as fits into the socket at once.
void Server::turn_away() {
  ++site_.traffic().turned_away;
  const Answer answer = Site::refusal(503);
  error_code ignored;
  next_.non_blocking(true, ignored);
  next_.send(boost::asio::buffer(answer.head + *answer.body), 0, ignored);
  next_.close(ignored);
}

void Server::leave(const std::shared_ptr<Connection>& connection) {
  connections_.erase(connection);
  site_.traffic().connections = connections_.size();
  if (finishing_ && connections_.empty()) farewell_timer_.cancel();
}

/// Tells who watches, where something has changed.
void Server::look() {
  const nlohmann::json status = status_of(run_directory_);
  Shown shown;
  shown.results = run_directory_ / "results.h5";
  shown.metrics = std::make_shared<const std::string>(run_metrics(status));
  auto text = status.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (site_.shown().status && *site_.shown().status == text) return;
  shown.status = std::make_shared<const std::string>(std::move(text));
  site_.show(std::move(shown));
  ++version_;
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->state_changed();
}

void Server::look_again() {
  look_timer_.expires_after(limits_.look);
  look_timer_.async_wait([this](error_code error) {
    if (error || finishing_) return;
    look();
    const auto now = std::chrono::steady_clock::now();
    if (now - last_heartbeat_ >= limits_.heartbeat) {
      last_heartbeat_ = now;
      const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
      for (const auto& connection : all) connection->heartbeat();
    }
    look_again();
  });
}

void Server::finish() {
  if (std::exchange(finishing_, true)) return;
  error_code ignored;
  acceptor_.close(ignored);
  look_timer_.cancel();
  accept_timer_.cancel();
  look();
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->finish();
  if (connections_.empty()) return;
  farewell_timer_.expires_after(limits_.farewell);
  farewell_timer_.async_wait([this](error_code) {
    const std::vector<std::shared_ptr<Connection>> left(connections_.begin(), connections_.end());
    for (const auto& connection : left) connection->close();
  });
}

}  // namespace manyworlds::farm::serve
