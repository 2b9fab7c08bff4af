#include "farm/protocol/frame.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.hpp"

namespace manyworlds::farm {

namespace {

constexpr std::uint64_t kLongestFrame = std::uint64_t{1} << 40;  // beyond this the stream is garbage

bool read_all(int descriptor, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::read(descriptor, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

std::uint64_t length_of(const char* header) {
  std::uint64_t length = 0;
  std::memcpy(&length, header, sizeof length);
  MANYWORLDS_CHECK(length < kLongestFrame, "frame of {} bytes", length);
  return length;
}

}  // namespace

std::string framed(const std::string& bytes) {
  const std::uint64_t length = bytes.size();
  std::string frame(sizeof length, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  return frame + bytes;
}

bool write_frame(int descriptor, const std::string& bytes) {
  const std::string frame = framed(bytes);
  for (std::size_t sent = 0; sent < frame.size();) {
    // MSG_NOSIGNAL: a reader that died is an answer, not a SIGPIPE.
    const ssize_t put = ::send(descriptor, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    sent += static_cast<std::size_t>(put);
  }
  return true;
}

std::optional<std::string> read_frame(int descriptor) {
  char header[sizeof(std::uint64_t)];
  if (!read_all(descriptor, header, sizeof header)) return std::nullopt;
  std::string bytes(length_of(header), '\0');
  if (!read_all(descriptor, bytes.data(), bytes.size())) return std::nullopt;
  return bytes;
}

std::optional<std::string> take_frame(std::string& buffer) {
  if (buffer.size() < sizeof(std::uint64_t)) return std::nullopt;
  const std::uint64_t length = length_of(buffer.data());
  if (buffer.size() - sizeof length < length) return std::nullopt;
  std::string bytes = buffer.substr(sizeof length, length);
  buffer.erase(0, sizeof length + length);
  return bytes;
}

}  // namespace manyworlds::farm
