// Copies and sets of rows with gaps between them (CUDA Runtime API reference, cudaMemcpy2D and cudaMemset2D). What
// moves is the width of the rows; what must be there reaches from the first row's begin to the last one's end.
#include "experiments/capture/call_lines.hpp"
#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture {
namespace {

/// Rows in memory: `pitch` bytes from the begin of one to that of the next.
struct Rows {
  const void* begin;
  std::size_t pitch;

  std::size_t span(std::size_t width, std::size_t height) const {
    return width == 0 || height == 0 ? 0 : (height - 1) * pitch + width;
  }
  char* row(std::size_t number) const { return const_cast<char*>(static_cast<const char*>(begin)) + number * pitch; }
};

struct Extent {
  std::size_t width, height;

  std::int64_t bytes() const { return static_cast<std::int64_t>(width * height); }
};

void describe(Line& line, const Extent& extent, void* stream) {
  line.number("bytes", extent.bytes()).number("rows", static_cast<std::int64_t>(extent.height));
  line.number("stream", stream_number(stream));
}

Error copy(const char* call, const Rows& to, const Rows& from, const Extent& extent, int kind, void* stream) {
  const std::lock_guard lock(session().mutex);
  Line line(call);
  line.json("to", place(to.begin)).json("from", place(from.begin));
  line.text("direction", direction(to.begin, from.begin));
  describe(line, extent, stream);
  if (extent.width > to.pitch || extent.width > from.pitch) return recorded(line, kInvalidPitch);
  if (stream_number(stream) < 0) return recorded(line, kInvalidHandle);
  const bool is_there = fits(to.begin, to.span(extent.width, extent.height), line) &&
                        fits(from.begin, from.span(extent.width, extent.height), line);
  if (!is_there || !is_direction(kind, to.begin, from.begin)) return recorded(line, kInvalidValue);
  for (std::size_t i = 0; i < extent.height; ++i) move_for_host(to.row(i), from.row(i), extent.width);
  return recorded(line);
}

Error set(const char* call, const Rows& to, int value, const Extent& extent, void* stream) {
  const std::lock_guard lock(session().mutex);
  Line line(call);
  line.json("to", place(to.begin)).number("value", value);
  describe(line, extent, stream);
  if (extent.width > to.pitch && extent.height > 1) return recorded(line, kInvalidValue);
  if (stream_number(stream) < 0) return recorded(line, kInvalidHandle);
  const bool is_there = session().memory.find(to.begin) && fits(to.begin, to.span(extent.width, extent.height), line);
  if (extent.bytes() > 0 && !is_there) return recorded(line, kInvalidValue);
  for (std::size_t i = 0; i < extent.height; ++i)
    set_for_host(to.row(i), static_cast<unsigned>(value), 1, extent.width);
  return recorded(line);
}

}  // namespace

extern "C" {

Error cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                   std::size_t height, int kind) {
  return copy("cudaMemcpy2D", {to, to_pitch}, {from, from_pitch}, {width, height}, kind, nullptr);
}
Error cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                        std::size_t height, int kind, void* stream) {
  return copy("cudaMemcpy2DAsync", {to, to_pitch}, {from, from_pitch}, {width, height}, kind, stream);
}
Error cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return set("cudaMemset2D", {to, pitch}, value, {width, height}, nullptr);
}
Error cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height, void* stream) {
  return set("cudaMemset2DAsync", {to, pitch}, value, {width, height}, stream);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
