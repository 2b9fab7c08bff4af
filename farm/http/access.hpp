// Who may look. At an address that only this machine can reach, whoever names it so (a page from elsewhere that had its
// own name resolve to us does not); at any other, whoever has the token of the run.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "farm/http/request.hpp"

namespace manyworlds::farm::serve {

/// Where a run directory keeps its token.
std::filesystem::path token_file(const std::filesystem::path& run_directory);

/// 128 random bits as 32 hexadecimal digits: those in the run directory, else new ones that are left there, for the
/// eyes of their owner alone. Where nothing can be written there, new ones each time. Throws InputError for a file that
/// holds no token or that others can read, IoError.
std::string token_of(const std::filesystem::path& run_directory);

/// Takes equally long wherever two texts of one length differ.
bool same_secret(std::string_view left, std::string_view right);

/// Whether a Host header names this machine as only itself can: localhost, 127.*, [::1], with any port.
bool names_loopback(std::string_view host);

class Access {
 public:
  enum class Verdict { granted, granted_now, refused, misdirected };

  /// `token` is empty at a loopback address. The cookie's name has the port in it, as cookies know none.
  Access(std::string token, std::uint16_t port);

  /// granted_now: by a token in the address, which the cookie is to replace.
  Verdict judge(const Request& request) const;
  /// The value of Set-Cookie.
  std::string cookie() const;

 private:
  std::string token_, cookie_name_;
};

}  // namespace manyworlds::farm::serve
