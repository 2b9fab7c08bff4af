#include "io/pictures/gzip.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::io {
namespace {

constexpr std::size_t kPieceBytes = 1 << 16;
constexpr int kGzipWindow = MAX_WBITS + 16;  // zlib writes gzip's header and trailer instead of its own
constexpr int kMemoryLevel = 8;              // zlib's default

}  // namespace

GzipStream::GzipStream(std::function<void(std::string_view)> append)
    : append_(std::move(append)), piece_(kPieceBytes, '\0') {
  const int code =
      deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY);
  MANYWORLDS_CHECK(code == Z_OK, "zlib cannot begin: {}", code);
}

GzipStream::~GzipStream() {
  deflateEnd(&stream_);
}

void GzipStream::append(std::string_view bytes) {
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kMost)))
    compress(bytes.substr(0, kMost), Z_NO_FLUSH);
}

void GzipStream::finish() {
  compress({}, Z_FINISH);
}

void GzipStream::compress(std::string_view bytes, int flush) {
  // zlib only reads from next_in; without ZLIB_CONST it is not declared so.
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_.avail_in = static_cast<uInt>(bytes.size());
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_out = static_cast<uInt>(piece_.size());
    const int code = deflate(&stream_, flush);
    MANYWORLDS_CHECK(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR, "zlib cannot go on: {}", code);
    const std::size_t written = piece_.size() - stream_.avail_out;
    if (written > 0) append_(std::string_view(piece_).substr(0, written));
  } while (stream_.avail_out == 0);
}

}  // namespace manyworlds::io
