#include "experiments/text/text.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;

constexpr int kFifoTimeout_ms = 1000;  // time for the writer of a FIFO to open its end

int lines_before(std::string_view text, std::size_t at) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

/// A file opened for reading in non-blocking mode. Only wait() blocks; read() calls it if no data is there yet.
class Source {
 public:
  explicit Source(const std::string& path) : path_(path) {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (descriptor_ < 0) fail(errno);
    if (::fstat(descriptor_, &status_) != 0) fail(errno);
  }
  ~Source() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  bool is_folder() const { return S_ISDIR(status_.st_mode); }
  bool is_pipe() const { return S_ISFIFO(status_.st_mode); }
  /// Returns how many bytes a regular file has; 0 of anything else.
  std::size_t size() const { return S_ISREG(status_.st_mode) ? static_cast<std::size_t>(status_.st_size) : 0; }

  /// Reads at most `max_bytes` bytes, waiting until there are some; returns 0 at the end.
  std::size_t read(char* to, std::size_t max_bytes) const {
    for (;;) {
      const auto received = ::read(descriptor_, to, max_bytes);
      if (received >= 0) return static_cast<std::size_t>(received);
      if (errno == EAGAIN)
        wait(-1);
      else if (errno != EINTR)
        fail(errno);
    }
  }
  /// Waits until there is something to read or the writer has closed; a negative timeout waits forever.
  void wait(int timeout_ms) const {
    pollfd watched{descriptor_, POLLIN, 0};
    if (::poll(&watched, 1, timeout_ms) < 0 && errno != EINTR) fail(errno);
  }

 private:
  [[noreturn]] void fail(int code) const {
    if (code == ENXIO) throw InputError("is a socket or a device without a driver; give a file", path_);
    throw InputError(fmt::format("cannot be read: {}", std::strerror(code)), path_);
  }

  const std::string& path_;
  int descriptor_ = -1;
  struct stat status_ {};
};

constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, and a gzip header
constexpr std::size_t kFirstBuffer = 64u << 10, kMaxRatio = 64;

[[noreturn]] void fail_size(std::size_t max_bytes, const std::string& name) {
  throw InputError(fmt::format("larger than {} bytes", max_bytes), name);
}

/// Makes room for twice as much text, and one byte more than it may have, by which a longer one shows.
void grow(std::string& text, std::size_t max_bytes) {
  text.resize(std::min(std::max(2 * text.size(), kFirstBuffer), max_bytes) + 1);
}

/// Beyond the size of a table, text has at most 64 bytes for each compressed one.
std::string decompressed(std::string data, const std::string& path, std::size_t max_bytes) {
  max_bytes = std::min(max_bytes, std::max(kMaxTableBytes, kMaxRatio * data.size()));
  z_stream stream{};
  MANYWORLDS_CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK, "zlib cannot start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> owner(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(data.data());
  stream.avail_in = static_cast<uInt>(data.size());
  std::string text;
  std::size_t size = 0;
  for (int result = Z_OK; result != Z_STREAM_END;) {
    grow(text, max_bytes);
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + size);
    stream.avail_out = static_cast<uInt>(text.size() - size);
    result = inflate(&stream, Z_NO_FLUSH);
    size = text.size() - stream.avail_out;
    if (size > max_bytes) fail_size(max_bytes, path);
    if (result != Z_STREAM_END && (result != Z_OK || stream.avail_out > 0))
      throw InputError("its compressed data are damaged", path);
  }
  text.resize(size);
  text.shrink_to_fit();
  return text;
}

}  // namespace

std::size_t valid_text_length(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto [length, code] = core::utf8_at(text, at);
    const bool control = (code < 0x20 && code != '\n' && code != '\t' && code != '\r') || code == 0x7F;
    if (code == core::kInvalidUtf8 || control) break;
    at += length;
  }
  return at;
}

void check_text(std::string_view text, const std::string& name) {
  const std::size_t length = valid_text_length(text);
  if (length < text.size())
    throw InputError(
        fmt::format("byte 0x{:02x} is no text; the file must be UTF-8", static_cast<unsigned char>(text[length])), name,
        lines_before(text, length));
}

std::string read_text(const std::string& path, std::size_t max_bytes) {
  const Source source(path);
  if (source.is_folder()) throw InputError("is a folder; give a file", path);
  if (source.is_pipe()) source.wait(kFifoTimeout_ms);
  if (source.size() > max_bytes) fail_size(max_bytes, path);
  std::string text(source.size() + 1, '\0');
  std::size_t size = 0;
  while (const std::size_t received = source.read(text.data() + size, text.size() - size)) {
    size += received;
    if (size > max_bytes) break;
    if (size == text.size()) grow(text, max_bytes);
  }
  if (size == 0 && source.is_pipe())
    throw InputError("is a pipe and nobody writes to it; start the writer first, or give a file", path);
  if (size > max_bytes) fail_size(max_bytes, path);
  text.resize(size);
  text.shrink_to_fit();
  return text;
}

std::optional<std::string> read_text_beside(const std::string& path, const std::string& name) {
  const auto file = std::filesystem::path(path).parent_path() / name;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return std::nullopt;
  return read_text(file.string());
}

std::string read_table_text(const std::string& path, std::size_t max_bytes) {
  std::string text = read_text(path, max_bytes);
  return text.starts_with(kGzipMagic) ? decompressed(std::move(text), path, max_bytes) : text;
}

void check_size(std::size_t bytes, const std::string& name) {
  if (bytes > kMaxTextBytes) fail_size(kMaxTextBytes, name);
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::vector<std::string_view> words_of(std::string_view text, std::string_view blanks) {
  std::vector<std::string_view> words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    if (text.empty()) return words;
    const std::size_t end = std::min(text.find_first_of(blanks), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

}  // namespace manyworlds::experiments::import
