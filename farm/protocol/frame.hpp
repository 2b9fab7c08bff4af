// Length-prefixed messages over a socket between processes of one machine: 8 bytes of length, then the payload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace manyworlds::farm {

/// Writes the whole frame, through EINTR and short writes. Returns false if the peer is gone.
bool write_frame(int descriptor, const std::string& bytes);

/// Blocks until one frame has arrived. Returns nullopt if the peer closed the socket, even in the middle of a frame.
std::optional<std::string> read_frame(int descriptor);

/// Returns `bytes` with their length in front.
std::string frame_of(const std::string& bytes);

/// Reads frames with and without waiting. It may have read further than the frames that it has returned.
class FrameReader {
 public:
  explicit FrameReader(int descriptor) : descriptor_(descriptor) {}
  /// Blocks until one frame has arrived. Returns nullopt if the peer closed the socket.
  std::optional<std::string> read();
  /// Returns the next frame if all of it has arrived.
  std::optional<std::string> poll();

 private:
  bool receive(int flags);
  int descriptor_;
  std::string received_;
};

/// Removes and returns the first frame of `buffer`, or returns nullopt if it is not complete yet.
std::optional<std::string> extract_frame(std::string& buffer);

}  // namespace manyworlds::farm
