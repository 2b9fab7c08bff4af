// Access control of the live page. At a loopback address, requests are granted if their Host header names loopback,
// which excludes a page of another site whose name was made to resolve to this machine (DNS rebinding). At any other
// address, requests need the token of the run.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "farm/http/request.hpp"

namespace manyworlds::farm::serve {

/// Returns the path of the token file in a run directory.
std::filesystem::path token_file(const std::filesystem::path& run_directory);

/// Returns 128 random bits as 32 hexadecimal digits: the token in the run directory, or a new one that is stored there,
/// readable only by its owner. If the directory is not writable, every call returns a new token. Throws
/// core::InputError for a file that holds no token or that others can read, and core::IoError.
std::string token_of(const std::filesystem::path& run_directory);

/// Compares in constant time for texts of equal length.
bool same_secret(std::string_view left, std::string_view right);

/// Returns whether a Host header names this machine by a loopback name: localhost, 127.*, [::1], with any port.
bool names_loopback(std::string_view host);

class Access {
 public:
  enum class Verdict { granted, granted_by_query, refused, misdirected };

  /// `token` is empty at a loopback address. The name of the cookie contains the port, because cookies are not bound to
  /// one.
  Access(std::string token, std::uint16_t port);

  /// Decides on a request; granted_by_query means a token in the URL, which the cookie is to replace.
  Verdict check(const Request& request) const;
  /// Returns the value of the Set-Cookie header.
  std::string cookie() const;

 private:
  std::string token_, cookie_name_;
};

}  // namespace manyworlds::farm::serve
