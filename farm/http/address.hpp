// The address of a server: [HOST:]PORT as a user writes it, and the listening socket opened there.
#pragma once

#include <cstdint>
#include <string>

namespace manyworlds::farm::serve {

struct Address {
  std::string host = "127.0.0.1";  // an address without brackets, or a name
  std::uint16_t port = 0;          // 0: any free port
};

/// Parses "8080", "0.0.0.0:8080", "[::1]:8080" or "login1:0". Throws core::InputError, which names `option`
/// ("--serve").
Address parse_address(const std::string& text, const std::string& option);

/// A listening TCP socket, close-on-exec, that its destructor closes.
class Listener {
 public:
  /// Opens a socket at `address`. Retries for two seconds if the port is in use, because the server of an incarnation
  /// of the run that has just ended may still hold it. Throws core::InputError, which names `option`, the port and the
  /// cause.
  static Listener at(const Address& address, const std::string& option);
  /// Adopts a socket that the parent process opened. Throws core::InputError for anything but a listening TCP socket.
  static Listener inherited(int descriptor);

  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();

  int descriptor() const { return descriptor_; }
  /// Transfers ownership of the descriptor to the caller.
  int release();
  std::uint16_t port() const { return port_; }
  bool v6() const { return v6_; }
  /// Returns whether only this machine can reach the socket.
  bool loopback() const { return loopback_; }
  /// Returns the URL for a browser: "http://127.0.0.1:8080/". For a socket at all addresses, it contains this host's
  /// name.
  std::string url() const;

 private:
  explicit Listener(int descriptor) : descriptor_(descriptor) {}
  void read_endpoint();

  int descriptor_ = -1;
  std::uint16_t port_ = 0;
  bool loopback_ = false, v6_ = false;
  std::string host_;
};

}  // namespace manyworlds::farm::serve
