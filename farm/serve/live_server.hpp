// The server as a run has it: a process of its own that reads the run directory and nothing else, so that nothing that
// is done to it reaches the run. It ends with the run, however that ends.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "farm/http/address.hpp"

namespace manyworlds::farm::serve {

/// In the environment of a server that a run started: the descriptor of the socket it is to listen at.
inline constexpr const char* kSocketVariable = "MANYWORLDS_SERVE_SOCKET";

class LiveServer {
 public:
  /// Takes the port. Throws InputError as Listener::at() does.
  explicit LiveServer(const Address& address);
  /// Whoever watches sees the last state first; that takes two seconds at most.
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  /// Starts the process, and says on stderr what to open. Throws InputError and IoError.
  void start(const std::filesystem::path& run_directory);
  /// Says once on stderr if it has died.
  void look();

 private:
  Listener listener_;
  int life_ = -1;  // its end closes with this process: then the server ends
  pid_t process_ = -1;
};

/// What to open: the address, with the token where it needs one, and on which machine where only that one can.
std::string invitation(const Listener& listener, const std::string& token);

}  // namespace manyworlds::farm::serve
