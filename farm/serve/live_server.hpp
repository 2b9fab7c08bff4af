// The live-page server of a run: a separate process that only reads the run directory, so that no client can affect the
// run. It ends with the run, however the run ends.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "farm/http/address.hpp"

namespace manyworlds::farm::serve {

/// Environment variable of a server that a run started: the descriptor of its listening socket.
inline constexpr const char* kSocketVariable = "MANYWORLDS_SERVE_SOCKET";

class LiveServer {
 public:
  /// Opens the port. Throws core::InputError as Listener::at() does.
  explicit LiveServer(const Address& address);
  /// Stops the server after its clients have received the last state: usually within two seconds, at most five.
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  /// Starts the process and prints the URL on stderr. Throws core::InputError and core::IoError.
  void start(const std::filesystem::path& run_directory);
  /// Prints a message on stderr, once, if the server has died.
  void poll();

 private:
  Listener listener_;
  int lifetime_pipe_ = -1;  // write end of a pipe that closes when this process ends, which ends the server
  pid_t process_ = -1;
};

/// Returns the URL to open, with the token if one is needed, and with the host name if only that host can open it.
std::string live_page_url(const Listener& listener, const std::string& token);

}  // namespace manyworlds::farm::serve
