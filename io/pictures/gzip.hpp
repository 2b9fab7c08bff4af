// Bytes compressed piece by piece into the gzip format (RFC 1952), by zlib.
#pragma once

#include <zlib.h>

#include <functional>
#include <string>
#include <string_view>

namespace manyworlds::io {

/// Compresses what is appended into one gzip member without a name or a time, so that equal bytes have equal results,
/// and passes it on in pieces.
class GzipStream {
 public:
  /// Passes the compressed pieces to `append`. Throws core::InternalError where zlib has no memory.
  explicit GzipStream(std::function<void(std::string_view)> append);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  void append(std::string_view bytes);
  /// Passes on what is left, the end of the member included; nothing may be appended after it.
  void finish();

 private:
  void compress(std::string_view bytes, int flush);

  std::function<void(std::string_view)> append_;
  z_stream stream_{};
  std::string piece_;
};

}  // namespace manyworlds::io
