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

constexpr std::chrono::milliseconds kAcceptRetry{100};  // delay after the system could not accept a connection

/// Returns the status of a run; `state` is "starting" if there is no status.json yet or it cannot be read.
nlohmann::json status_of(const std::filesystem::path& run_directory) {
  try {
    if (auto status = read_run_status(run_directory)) return *std::move(status);
    return {{"format", 2}, {"state", "starting"}};
  } catch (const core::IoError& error) {
    return {{"format", 2}, {"state", "starting"}, {"reason", error.what()}};
  } catch (const core::InputError& error) {
    return {{"format", 2}, {"state", "starting"}, {"reason", error.what()}};
  }
}

}  // namespace

Server::Server(boost::asio::io_context& context, Listener listener, const std::filesystem::path& run_directory,
               Access access, Pages pages, ServerLimits limits)
    : context_(context),
      acceptor_(context),
      next_(context),
      poll_timer_(context),
      shutdown_timer_(context),
      accept_timer_(context),
      run_directory_(run_directory),
      limits_(limits),
      handler_(std::move(access), std::move(pages)) {
  const auto protocol = listener.v6() ? boost::asio::ip::tcp::v6() : boost::asio::ip::tcp::v4();
  acceptor_.assign(protocol, listener.release());
  poll();
  schedule_poll();
  accept();
}

Server::~Server() = default;

void Server::accept() {
  acceptor_.async_accept(next_, [this](error_code error) {
    if (error == boost::asio::error::operation_aborted || finishing_) return;
    if (error) {
      accept_timer_.expires_after(kAcceptRetry);
      accept_timer_.async_wait([this](error_code stopped) {
        if (!stopped && !finishing_) accept();
      });
      return;
    }
    if (connections_.size() >= limits_.connections) {
      reject();
    } else {
      ++handler_.counters().accepted;
      const auto connection = std::make_shared<Connection>(*this, std::move(next_));
      connections_.insert(connection);
      handler_.counters().connections = connections_.size();
      connection->begin();
    }
    next_ = boost::asio::ip::tcp::socket(context_);
    accept();
  });
}

/// Sends as much of a refusal as fits into the socket at once.
void Server::reject() {
  ++handler_.counters().rejected;
  const Response response = HttpHandler::refusal(503);
  error_code ignored;
  next_.non_blocking(true, ignored);
  next_.send(boost::asio::buffer(response.head + *response.body), 0, ignored);
  next_.close(ignored);
}

void Server::leave(const std::shared_ptr<Connection>& connection) {
  connections_.erase(connection);
  handler_.counters().connections = connections_.size();
  if (finishing_ && connections_.empty()) shutdown_timer_.cancel();
}

/// Reads the status of the run and notifies the clients if it has changed.
void Server::poll() {
  const nlohmann::json status = status_of(run_directory_);
  PublishedState published;
  published.results = run_directory_ / "results.h5";
  published.metrics = std::make_shared<const std::string>(run_metrics(status));
  auto text = status.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (handler_.published().status && *handler_.published().status == text) return;
  published.status = std::make_shared<const std::string>(std::move(text));
  handler_.publish(std::move(published));
  ++version_;
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->state_changed();
}

void Server::schedule_poll() {
  poll_timer_.expires_after(limits_.poll);
  poll_timer_.async_wait([this](error_code error) {
    if (error || finishing_) return;
    poll();
    const auto now = std::chrono::steady_clock::now();
    if (now - last_heartbeat_ >= limits_.heartbeat) {
      last_heartbeat_ = now;
      const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
      for (const auto& connection : all) connection->heartbeat();
    }
    schedule_poll();
  });
}

void Server::finish() {
  if (std::exchange(finishing_, true)) return;
  error_code ignored;
  acceptor_.close(ignored);
  poll_timer_.cancel();
  accept_timer_.cancel();
  poll();
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->finish();
  if (connections_.empty()) return;
  shutdown_timer_.expires_after(limits_.shutdown_grace);
  shutdown_timer_.async_wait([this](error_code) {
    const std::vector<std::shared_ptr<Connection>> left(connections_.begin(), connections_.end());
    for (const auto& connection : left) connection->close();
  });
}

}  // namespace manyworlds::farm::serve
