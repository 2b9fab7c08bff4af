// What the tests of the live page's server share: a server on a free port in a thread of its own, and a client that
// writes and reads bytes and nothing more.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "farm/serve/server.hpp"
#include "io/log/file.hpp"
#include "tests/temporary_folder.hpp"

namespace manyworlds::farm::serve::testing {

/// No test waits longer, however busy the machine is.
inline constexpr std::chrono::minutes kLong{10};

/// What a run of a sweep says of itself.
inline nlohmann::json sample_status(const std::string& state = "complete") {
  return {
      {"format", 2},
      {"state", state},
      {"kinds",
       {{{"name", "collectives"}, {"total", 3}, {"done", 3}, {"failed", 0}},
        {{"name", "steps"}, {"total", 5}, {"done", 4}, {"failed", 1}}}},
      {"total", 8},
      {"done", 7},
      {"failed", 1},
      {"quarantined", 0},
      {"known_before", 2},
      {"rate_per_s", 1.5},
      {"time_left_s", nullptr},
      {"sharing", 12.25},
      {"elapsed_s", 3.5},
      {"simulated_s", 6.75},
      {"ranks", 2},
      {"ranks_lost", 1},
      {"load", {{"rank", {0, 1}}, {"alive", {true, false}}, {"done", {4, 3}}, {"busy", {0.5, 0.25}}, {"held", {0, 1}}}},
      {"host", io::host_name()},
      {"pid", 1},
      {"updated", 1'700'000'000},
      {"resume", "manyworlds resume somewhere"}};
}

/// A run directory as a server sees it.
struct Run {
  Run() {
    folder.put("sweep.resolved.json", "{}");
    say(sample_status());
    folder.put("results.h5", results);
  }
  void say(const nlohmann::json& status) const { io::write_atomically(folder / "status.json", status.dump(1)); }
  /// What is told of sample_status(): the line that goes on is that of this folder, whatever the file says.
  nlohmann::json told() const {
    nlohmann::json status = sample_status();
    status["resume"] = "manyworlds resume " + folder.path.string();
    return status;
  }

  TemporaryFolder folder;
  std::string results = std::string(100'000, 'r') + "end";
};

class Client {
 public:
  explicit Client(std::uint16_t port, int receive_buffer = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    const timeval patience{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~Client() { ::close(socket_); }
  Client(Client&& other) noexcept : socket_(std::exchange(other.socket_, -1)), here_(std::move(other.here_)) {}

  /// False when the other side has gone.
  bool send(std::string_view bytes) const {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  /// All up to and with `end`, or up to the connection's end. A silence of 20 s fails the test.
  std::string read_to(const std::string& end) {
    std::size_t from = 0;
    for (;;) {
      if (const auto at = here_.find(end, from); at != std::string::npos) return taken(at + end.size());
      from = here_.size() - std::min(here_.size(), end.size());
      if (!more()) return taken(here_.size());
    }
  }
  std::string read_all() {
    while (more()) {
    }
    return taken(here_.size());
  }
  std::string read(std::size_t bytes) {
    while (here_.size() < bytes && more()) {
    }
    return taken(std::min(bytes, here_.size()));
  }
  bool ended() { return here_.empty() && !more(); }

 private:
  bool more() {
    std::array<char, 65536> buffer;
    const auto got = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) FAIL("nothing came for 20 s");
    if (got <= 0) return false;
    here_.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
  }
  std::string taken(std::size_t bytes) {
    std::string text = here_.substr(0, bytes);
    here_.erase(0, bytes);
    return text;
  }

  int socket_;
  std::string here_;
};

struct Reply {
  int status = 0;
  std::map<std::string, std::string> fields;
  std::string body;
};

/// Reads one answer; its body only where it has one.
inline Reply reply(Client& client, bool body = true) {
  const std::string head = client.read_to("\r\n\r\n");
  INFO(head);
  REQUIRE(head.starts_with("HTTP/1.1 "));
  Reply result;
  result.status = std::stoi(head.substr(9, 3));
  for (std::size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
    const auto colon = head.find(": ", at), end = head.find("\r\n", at);
    result.fields[head.substr(at, colon - at)] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  if (body && result.fields.contains("Content-Length"))
    result.body = client.read(std::stoul(result.fields["Content-Length"]));
  return result;
}

class Served {
 public:
  explicit Served(const Run& run, ServerLimits limits = patient(), std::string token = "")
      : Served(run, limits, std::move(token), Listener::at({}, "test")) {}
  ~Served() {
    finish();
    if (thread_.joinable()) thread_.join();
  }

  void finish() {
    boost::asio::post(context_, [this] { server_->finish(); });
  }
  /// Waits for the server to have nothing more to do.
  void join() { thread_.join(); }
  std::uint16_t port() const { return port_; }
  Client client(int receive_buffer = 0) const { return Client(port_, receive_buffer); }
  Reply ask(const std::string& target, const std::string& more = "", const std::string& method = "GET") const {
    Client asking = client();
    asking.send(method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n");
    return reply(asking, method != "HEAD");
  }
  double metric(const std::string& name) const {
    const std::string text = ask("/metrics").body;
    const auto at = text.find("\n" + name + " ");
    REQUIRE(at != std::string::npos);
    return std::stod(text.substr(at + name.size() + 2));
  }

  /// What is told once it is what `wanted` wants; what is told after kLong where it never is.
  template <class Wanted>
  nlohmann::json status_when(const Wanted& wanted) const {
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      nlohmann::json told = nlohmann::json::parse(ask("/status.json").body);
      if (wanted(told) || std::chrono::steady_clock::now() - begin > kLong) return told;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  /// Looks often and waits long, for machines that are busy with something else; a test of a limit sets that limit.
  static ServerLimits patient() {
    ServerLimits limits;
    limits.request = limits.keep_alive = limits.stall = limits.response = limits.heartbeat = limits.shutdown_grace =
        kLong;
    limits.poll = std::chrono::milliseconds(20);
    return limits;
  }
  static Pages pages() {
    return {{"/", {"text/html; charset=utf-8", std::make_shared<const std::string>("<p>a page</p>")}}};
  }

 private:
  Served(const Run& run, ServerLimits limits, std::string token, Listener listener)
      : port_(listener.port()),
        server_(std::make_unique<Server>(context_, std::move(listener), run.folder.path,
                                         Access(std::move(token), port_), pages(), limits)),
        thread_([this] { context_.run(); }) {}

  std::uint16_t port_;
  boost::asio::io_context context_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

}  // namespace manyworlds::farm::serve::testing
