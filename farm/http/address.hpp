// Where a server listens: [HOST:]PORT as people write it, and the socket that is made of it.
#pragma once

#include <cstdint>
#include <string>

namespace manyworlds::farm::serve {

struct Address {
  std::string host = "127.0.0.1";  // an address without brackets, or a name
  std::uint16_t port = 0;          // 0: any that is free
};

/// "8080", "0.0.0.0:8080", "[::1]:8080", "login1:0". Throws InputError, naming `word` ("--serve").
Address parse_address(const std::string& text, const std::string& word);

/// A listening TCP socket, close-on-exec, that closes itself.
class Listener {
 public:
  /// Throws InputError, naming `word`, the port and why, where that address cannot be listened at. A port in use is
  /// tried for two seconds: the server of a life of the run that has just ended may still hold it.
  static Listener at(const Address& address, const std::string& word);
  /// One that whoever started this process made. Throws InputError for anything that is no listening TCP socket.
  static Listener inherited(int descriptor);

  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();

  int descriptor() const { return descriptor_; }
  /// Gives the socket away.
  int release();
  std::uint16_t port() const { return port_; }
  bool v6() const { return v6_; }
  /// Only this machine can reach it.
  bool loopback() const { return loopback_; }
  /// What a browser is pointed at: "http://127.0.0.1:8080/"; of a socket at every address, with this host's name.
  std::string url() const;

 private:
  explicit Listener(int descriptor) : descriptor_(descriptor) {}
  void look();

  int descriptor_ = -1;
  std::uint16_t port_ = 0;
  bool loopback_ = false, v6_ = false;
  std::string host_;
};

}  // namespace manyworlds::farm::serve
