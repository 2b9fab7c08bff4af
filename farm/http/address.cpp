#include "farm/http/address.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <thread>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm::serve {
namespace {

using boost::asio::ip::tcp;
using core::InputError;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kBindRetry{2};
constexpr int kBacklog = 512;

bool is_loopback(const boost::asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6()).is_loopback();
  return address.is_loopback();
}

/// Resolves `address`; the message of getaddrinfo is part of the error.
tcp::endpoint resolve(boost::asio::io_context& context, const Address& address, const std::string& option) {
  boost::system::error_code error;
  const auto found = tcp::resolver(context).resolve(address.host, std::to_string(address.port),
                                                    tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty())
    throw InputError(fmt::format("'{}' names no address of this machine: {}", address.host, error.message()), option);
  return *found.begin();
}

boost::system::error_code listen(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  if (error) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
  }
  return error;
}

}  // namespace

Address parse_address(const std::string& text, const std::string& option) {
  const auto invalid = [&](const std::string& what) {
    return InputError(fmt::format("{}; it takes [HOST:]PORT, as in 8080, 0.0.0.0:8080 or [::1]:8080", what),
                      fmt::format("{} {}", option, text));
  };
  Address address;
  std::string port = text;
  if (const auto colon = text.rfind(':'); colon != std::string::npos) {
    address.host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']')
      address.host = address.host.substr(1, address.host.size() - 2);
    else if (address.host.find_first_of(":[]") != std::string::npos)
      throw invalid("an IPv6 address stands in brackets");
    if (address.host.empty()) throw invalid("the host is missing");
  }
  const auto number = core::number_in<decltype(address.port)>(port);
  if (!number) throw invalid(fmt::format("'{}' is no port from 0 to 65535", port));
  address.port = *number;
  return address;
}

Listener Listener::at(const Address& address, const std::string& option) {
  boost::asio::io_context context;
  const tcp::endpoint endpoint = resolve(context, address, option);
  tcp::acceptor acceptor(context);
  const auto deadline = steady_clock::now() + kBindRetry;
  boost::system::error_code error = listen(acceptor, endpoint);
  while (error == boost::asio::error::address_in_use && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    error = listen(acceptor, endpoint);
  }
  if (error)
    throw InputError(fmt::format("cannot listen at port {} of {}: {}; give another, or 0 for any that is free",
                                 address.port, address.host, error.message()),
                     option);
  Listener listener(acceptor.release());
  ::fcntl(listener.descriptor_, F_SETFD, FD_CLOEXEC);
  listener.read_endpoint();
  return listener;
}

Listener Listener::inherited(int descriptor) {
  int listening = 0;
  socklen_t size = sizeof listening;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0)
    throw InputError(fmt::format("descriptor {} is no socket that listens", descriptor));
  Listener listener(descriptor);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  listener.read_endpoint();
  return listener;
}

void Listener::read_endpoint() {
  tcp::endpoint endpoint;
  socklen_t size = static_cast<socklen_t>(endpoint.capacity());
  if (::getsockname(descriptor_, endpoint.data(), &size) != 0) throw core::IoError("examine", "a listening socket");
  endpoint.resize(size);
  const auto address = endpoint.address();
  port_ = endpoint.port();
  v6_ = address.is_v6();
  loopback_ = is_loopback(address);
  host_ = address.is_unspecified() ? io::host_name()
          : v6_                    ? fmt::format("[{}]", address.to_string())
                                   : address.to_string();
}

Listener::Listener(Listener&& other) noexcept {
  *this = std::move(other);
}

Listener& Listener::operator=(Listener&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(port_, other.port_);
  std::swap(loopback_, other.loopback_);
  std::swap(v6_, other.v6_);
  std::swap(host_, other.host_);
  return *this;
}

Listener::~Listener() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int Listener::release() {
  return std::exchange(descriptor_, -1);
}

std::string Listener::url() const {
  return fmt::format("http://{}:{}/", host_, port_);
}

}  // namespace manyworlds::farm::serve
