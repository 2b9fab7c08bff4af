#include "experiments/kineto/byte_stream.hpp"

#include <utility>

namespace manyworlds::experiments::kineto {

namespace {
constexpr std::size_t kBuffer = 1u << 20;
}

ByteStream::ByteStream(std::string path, Progress progress)
    : path_(std::move(path)),
      progress_(std::move(progress)),
      file_(path_, "the trace file of each rank"),
      buffer_(kBuffer) {}

ByteStream::int_type ByteStream::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  const std::size_t bytes = file_.read(buffer_.data(), buffer_.size());
  if (progress_) progress_(path_, file_.offset());
  if (bytes == 0) return traits_type::eof();
  setg(buffer_.data(), buffer_.data(), buffer_.data() + bytes);
  return traits_type::to_int_type(*gptr());
}

}  // namespace manyworlds::experiments::kineto
