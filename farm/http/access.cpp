#include "farm/http/access.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "core/base/error.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm::serve {
namespace {

constexpr std::size_t kTokenDigits = 32;
constexpr int kMaxReads = 5;  // reads of a file that another process may be writing
constexpr std::string_view kBearer = "Bearer ";

bool is_token(std::string_view text) {
  return text.size() == kTokenDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string read_token(const std::filesystem::path& file) {
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0) throw core::IoError("examine", file.string());
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid())
    throw core::InputError(
        "is not a regular file of this user, so others may know the token; remove it to get a new one", file.string());
  if ((status.st_mode & 077) != 0)
    throw core::InputError("others can read it; remove it, and a new one is made", file.string());
  for (int attempt = 0; attempt < kMaxReads; ++attempt) {
    std::string token = io::read_file(file);
    if (token.ends_with('\n')) token.pop_back();
    if (is_token(token)) return token;
    ::usleep(20'000);
  }
  throw core::InputError("holds no token of 32 hexadecimal digits; remove it, and a new one is made", file.string());
}

/// Creates and fills the file. Returns 0, or the errno that explains why it cannot be created.
int create_token_file(const std::filesystem::path& file, const std::string& token) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return errno;
  const std::string line = token + "\n";
  const bool complete = ::write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = complete ? 0 : errno;
  ::close(descriptor);
  if (complete) return 0;
  ::unlink(file.c_str());
  throw core::IoError("write", file.string(), error);
}

/// Returns the value of `name` in "a=1<separator>b=2", or nullopt.
std::optional<std::string_view> value_of(std::string_view pairs, char separator, std::string_view name) {
  while (!pairs.empty()) {
    const auto end = std::min(pairs.find(separator), pairs.size());
    std::string_view pair = pairs.substr(0, end);
    pairs.remove_prefix(std::min(end + 1, pairs.size()));
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) return pair.substr(name.size() + 1);
  }
  return std::nullopt;
}

}  // namespace

std::filesystem::path token_file(const std::filesystem::path& run_directory) {
  return run_directory / "serve.token";
}

std::string token_of(const std::filesystem::path& run_directory) {
  const auto file = token_file(run_directory);
  std::string token = io::random_hex_digits(kTokenDigits);
  switch (const int error = create_token_file(file, token)) {
    case EEXIST:
      if (::access(file.c_str(), R_OK) == 0) return read_token(file);
      return token;
    case 0:
    case EACCES:
    case EPERM:
    case EROFS:  // the run of another user may be watched too
      return token;
    default:
      throw core::IoError("create", file.string(), error);
  }
}

bool same_secret(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  volatile unsigned char differs = 0;
  for (std::size_t i = 0; i < left.size(); ++i) differs = static_cast<unsigned char>(differs | (left[i] ^ right[i]));
  return differs == 0;
}

bool names_loopback(std::string_view host) {
  if (const auto port = host.rfind(':'); port != std::string_view::npos && !host.ends_with(']')) {
    const std::string_view digits = host.substr(port + 1);
    if (digits.empty() || digits.size() > 5 || digits.find_first_not_of("0123456789") != std::string_view::npos)
      return false;
    host = host.substr(0, port);
  }
  if (host == "[::1]") return true;
  std::string lower(host);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : static_cast<char>(c);
  });
  if (lower == "localhost") return true;
  // 127.a.b.c: four numbers, hence no name that a name server could resolve.
  if (!lower.starts_with("127.") || lower.find_first_not_of("0123456789.") != std::string::npos) return false;
  return std::count(lower.begin(), lower.end(), '.') == 3 && lower.find("..") == std::string::npos &&
         lower.back() != '.';
}

Access::Access(std::string token, std::uint16_t port)
    : token_(std::move(token)), cookie_name_(fmt::format("manyworlds_{}", port)) {}

Access::Verdict Access::check(const Request& request) const {
  if (token_.empty()) return names_loopback(request.host) ? Verdict::granted : Verdict::misdirected;
  if (const auto query_token = value_of(request.query, '&', "token"))
    return same_secret(*query_token, token_) ? Verdict::granted_by_query : Verdict::refused;
  if (request.authorization.starts_with(kBearer))
    return same_secret(std::string_view(request.authorization).substr(kBearer.size()), token_) ? Verdict::granted
                                                                                               : Verdict::refused;
  const auto cookie = value_of(request.cookie, ';', cookie_name_);
  return cookie && same_secret(*cookie, token_) ? Verdict::granted : Verdict::refused;
}

std::string Access::cookie() const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict", cookie_name_, token_);
}

}  // namespace manyworlds::farm::serve
