// Length-prefixed messages over a socket, for processes of one machine: 8 bytes of length, then the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace manyworlds::farm {

/// Writes all of it, through EINTR and short writes; false when the other side is gone.
bool write_frame(int descriptor, const std::string& bytes);

/// Blocks for one frame; nothing when the other side closed, also in the middle of a frame.
std::optional<std::string> read_frame(int descriptor);

/// `bytes` with the length before them.
std::string framed(const std::string& bytes);

/// Takes the first whole frame off `buffer`, if it is there yet.
std::optional<std::string> take_frame(std::string& buffer);

}  // namespace manyworlds::farm
