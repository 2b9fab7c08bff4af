#include "farm/protocol/frame.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.hpp"

namespace manyworlds::farm {

namespace {

constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{1} << 40;  // a longer length means that the stream is corrupt

bool read_all(int descriptor, char* target, std::size_t size) {
  while (size > 0) {
    const ssize_t bytes_read = ::read(descriptor, target, size);
    if (bytes_read < 0 && errno == EINTR) continue;
    if (bytes_read <= 0) return false;
    target += bytes_read;
    size -= static_cast<std::size_t>(bytes_read);
  }
  return true;
}

std::uint64_t length_of(const char* header) {
  std::uint64_t length = 0;
  std::memcpy(&length, header, sizeof length);
  MANYWORLDS_CHECK(length < kMaxFrameBytes, "frame of {} bytes", length);
  return length;
}

}  // namespace

std::string frame_of(const std::string& bytes) {
  const std::uint64_t length = bytes.size();
  std::string frame(sizeof length, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  return frame + bytes;
}

bool write_frame(int descriptor, const std::string& bytes) {
  const std::string frame = frame_of(bytes);
  for (std::size_t sent = 0; sent < frame.size();) {
    // With MSG_NOSIGNAL, the death of the reader shows as an error code and not as SIGPIPE.
    const ssize_t bytes_written = ::send(descriptor, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (bytes_written < 0 && errno == EINTR) continue;
    if (bytes_written < 0) return false;
    sent += static_cast<std::size_t>(bytes_written);
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

/// Returns whether bytes have arrived.
bool FrameReader::receive(int flags) {
  char chunk[65536];
  for (;;) {
    const ssize_t size = ::recv(descriptor_, chunk, sizeof chunk, flags);
    if (size < 0 && errno == EINTR) continue;
    if (size > 0) received_.append(chunk, static_cast<std::size_t>(size));
    return size > 0;
  }
}

std::optional<std::string> FrameReader::read() {
  for (;;) {
    if (auto frame = extract_frame(received_)) return frame;
    if (!receive(0)) return std::nullopt;
  }
}

std::optional<std::string> FrameReader::poll() {
  while (receive(MSG_DONTWAIT)) {
  }
  return extract_frame(received_);
}

std::optional<std::string> extract_frame(std::string& buffer) {
  if (buffer.size() < sizeof(std::uint64_t)) return std::nullopt;
  const std::uint64_t length = length_of(buffer.data());
  if (buffer.size() - sizeof length < length) return std::nullopt;
  std::string bytes = buffer.substr(sizeof length, length);
  buffer.erase(0, sizeof length + length);
  return bytes;
}

}  // namespace manyworlds::farm
