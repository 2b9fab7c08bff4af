#include "io/log/record_log.hpp"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/plural.hpp"
#include "io/log/little_endian.hpp"

namespace manyworlds::io {

namespace {

using core::IoError;
using core::sharing::Key;

constexpr std::string_view kMagic = "MWRECLOG";
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kFileHeaderFixedBytes = 16;  // magic, version, length of the fingerprint
constexpr std::uint32_t kMaxFingerprintBytes = 4096;
constexpr std::string_view kMarker = "MWRC";
constexpr std::size_t kHeaderBytes = 72;
constexpr std::size_t kCheckedBytes = 64;  // the record header without its own checksum
constexpr std::size_t kBufferBytes = 1 << 16;

std::uint64_t checksum(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

/// Encodes a record header. The record's offset seeds the checksum, so that a copy of a record elsewhere, such as
/// inside a payload, is not taken for a record.
std::string encode_header(std::uint64_t offset, std::uint32_t kind, const Key& key, std::string_view payload) {
  std::string header(kMarker);
  put_little_endian(header, kind);
  put_little_endian(header, static_cast<std::uint64_t>(payload.size()));
  for (const std::uint64_t word : {key.digest[0], key.digest[1], key.check[0], key.check[1], key.length})
    put_little_endian(header, word);
  put_little_endian(header, checksum(payload, 0));
  put_little_endian(header, checksum(header, offset));
  return header;
}

std::string encode_file_header(std::string_view fingerprint) {
  MANYWORLDS_CHECK(fingerprint.size() <= kMaxFingerprintBytes, "a fingerprint of {} bytes", fingerprint.size());
  std::string header(kMagic);
  put_little_endian(header, kFormatVersion);
  put_little_endian(header, static_cast<std::uint32_t>(fingerprint.size()));
  header += fingerprint;
  put_little_endian(header, checksum(header, 0));
  return header;
}

}  // namespace

void SkippedRegions::add(std::uint64_t offset, std::uint64_t size, bool is_torn) {
  if (count == 0) first_offset = offset;
  ++count;
  bytes += size;
  if (is_torn) torn = true, torn_bytes = size, torn_offset = offset;
}

std::string SkippedRegions::describe(const std::string& path) const {
  std::string lines;
  if (damaged() > 0)
    lines += fmt::format("{}: damaged in {} {}, {} bytes in all, the first at byte {}\n", path, damaged(),
                         core::plural(damaged(), "place"), bytes - torn_bytes, first_offset);
  if (torn)
    lines += fmt::format("{}: the record at byte {} was never finished ({} bytes), as when its writer is killed\n",
                         path, torn_offset, torn_bytes);
  return lines;
}

RecordReader::RecordReader(const std::filesystem::path& path) : file_(path, O_RDONLY), size_(file_.size()) {
  read_file_header();
  if (!readable_) {
    skipped_.add(0, size_, is_torn_at(0));
    position_ = size_;
  }
}

void RecordReader::read_file_header() {
  const std::string_view start = buffered(0);
  if (start.size() < kFileHeaderFixedBytes || start.substr(0, kMagic.size()) != kMagic) return;
  const auto version = get_little_endian<std::uint32_t>(start, 8);
  const auto length = get_little_endian<std::uint32_t>(start, 12);
  if (length > kMaxFingerprintBytes || start.size() < kFileHeaderFixedBytes + length + 8) return;
  const std::size_t checked = kFileHeaderFixedBytes + length;
  if (get_little_endian<std::uint64_t>(start, checked) != checksum(start.substr(0, checked), 0)) return;
  if (version != kFormatVersion)
    throw core::InputError(fmt::format("{}: records of format version {}; this build reads version {}", file_.path(),
                                       version, kFormatVersion));
  fingerprint_ = start.substr(kFileHeaderFixedBytes, length);
  position_ = checked + 8;
  readable_ = true;
}

/// Returns the buffered bytes from `offset` on: at least one header (a file header at offset 0) unless the file ends
/// there.
std::string_view RecordReader::buffered(std::uint64_t offset) {
  if (offset >= size_) return {};
  const std::uint64_t end = buffer_begin_ + buffer_.size();
  const std::uint64_t wanted = std::min<std::uint64_t>(kHeaderBytes, size_ - offset);
  if (offset < buffer_begin_ || offset + wanted > end) {
    buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kBufferBytes, size_ - offset)));
    const std::size_t bytes_read = file_.read_at(offset, buffer_.data(), buffer_.size());
    if (bytes_read < buffer_.size())
      size_ = offset + bytes_read;  // another process truncated the file: it ends here now
    buffer_.resize(bytes_read);
    buffer_begin_ = offset;
  }
  const auto offset_in_buffer = static_cast<std::size_t>(offset - buffer_begin_);
  return std::string_view(buffer_.data(), buffer_.size()).substr(offset_in_buffer);
}

std::optional<RecordHeader> RecordReader::header_at(std::uint64_t offset) {
  const std::string_view bytes = buffered(offset);
  if (bytes.size() < kHeaderBytes || bytes.substr(0, kMarker.size()) != kMarker) return {};
  if (get_little_endian<std::uint64_t>(bytes, kCheckedBytes) != checksum(bytes.substr(0, kCheckedBytes), offset))
    return {};
  RecordHeader header;
  header.offset = offset;
  header.kind = get_little_endian<std::uint32_t>(bytes, 4);
  header.payload_bytes = get_little_endian<std::uint64_t>(bytes, 8);
  header.key.digest = {get_little_endian<std::uint64_t>(bytes, 16), get_little_endian<std::uint64_t>(bytes, 24)};
  header.key.check = {get_little_endian<std::uint64_t>(bytes, 32), get_little_endian<std::uint64_t>(bytes, 40)};
  header.key.length = get_little_endian<std::uint64_t>(bytes, 48);
  header.payload_checksum = get_little_endian<std::uint64_t>(bytes, 56);
  if (header.payload_bytes > kMaxPayloadBytes) return {};
  return header;
}

/// Returns the offset of the first valid header at or after `from`, or the end of the file.
std::uint64_t RecordReader::find_header(std::uint64_t from) {
  std::uint64_t offset = from;
  while (offset < size_ && size_ - offset >= kHeaderBytes) {
    const std::string_view bytes = buffered(offset);
    const std::size_t at = bytes.find(kMarker);
    if (at == std::string_view::npos) {
      offset += bytes.size() < kMarker.size() ? bytes.size() : bytes.size() - (kMarker.size() - 1);
    } else if (header_at(offset + at)) {
      return offset + at;
    } else {
      offset += at + 1;
    }
  }
  return size_;
}

std::optional<RecordHeader> RecordReader::next_header() {
  while (position_ < size_) {
    const auto header = header_at(position_);
    const std::uint64_t begin = position_;
    if (header && header->payload_bytes <= size_ - begin - kHeaderBytes) {
      position_ = begin + kHeaderBytes + header->payload_bytes;
      return header;
    }
    // A valid header vouches for its length: if the payload does not fit, this is the torn tail.
    position_ = header ? size_ : find_header(begin + 1);
    skipped_.add(begin, position_ - begin, header || is_torn_at(begin));
  }
  return {};
}

/// Returns whether the file ends inside a header that begins correctly at `offset`; offset 0 is the file header.
bool RecordReader::is_torn_at(std::uint64_t offset) {
  const std::string_view bytes = buffered(offset), magic = offset == 0 ? kMagic : kMarker;
  if (bytes.substr(0, magic.size()) != magic.substr(0, bytes.size())) return false;
  if (offset > 0) return bytes.size() < kHeaderBytes;
  if (bytes.size() < kFileHeaderFixedBytes) return true;
  const auto length = get_little_endian<std::uint32_t>(bytes, 12);
  if (length > kMaxFingerprintBytes || bytes.size() >= kFileHeaderFixedBytes + length + 8) return false;
  return find_header(0) == size_;  // no writer appends to half a header: if records follow, the length is damaged
}

std::optional<Record> RecordReader::payload_of(const RecordHeader& header) {
  Record record{header.kind, header.key, {}};
  const std::uint64_t begin = header.offset + kHeaderBytes;
  const auto size = static_cast<std::size_t>(header.payload_bytes);
  const std::uint64_t buffer_end = buffer_begin_ + buffer_.size();
  if (begin >= buffer_begin_ && begin + size <= buffer_end) {
    record.payload.assign(buffer_.data() + (begin - buffer_begin_), size);
  } else {
    record.payload.resize(size);
    if (file_.read_at(begin, record.payload.data(), size) < size) return {};
  }
  if (checksum(record.payload, 0) != header.payload_checksum) return {};
  return record;
}

std::optional<Record> RecordReader::next() {
  while (const auto header = next_header()) {
    last_offset_ = header->offset;
    if (auto record = payload_of(*header)) return record;
    skipped_.add(header->offset, kHeaderBytes + header->payload_bytes);
  }
  return {};
}

std::optional<Record> RecordReader::read(std::uint64_t offset) {
  const auto header = header_at(offset);
  if (!header || header->payload_bytes > size_ - offset - kHeaderBytes) return {};
  return payload_of(*header);
}

RecordWriter::RecordWriter(const std::filesystem::path& path, std::string_view fingerprint, SyncPolicy policy,
                           Clock clock)
    : file_(path, O_RDWR | O_CREAT | O_EXCL, Access::by_folder), policy_(policy), clock_(std::move(clock)) {
  try {
    write_all_or_nothing(encode_file_header(fingerprint));
    file_.sync_data();
    sync_directory(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
  } catch (const IoError&) {
    ::unlink(path.c_str());  // a file without a header is of no use
    throw;
  }
}

RecordWriter::~RecordWriter() {
  try {
    flush();
  } catch (const IoError&) {  // a destructor cannot report the error
  }
}

/// Writes all of `bytes` or, after an IoError, nothing: a partial record must not precede the next one.
void RecordWriter::write_all_or_nothing(std::string_view bytes) {
  try {
    file_.write_at(size_, bytes);
  } catch (const IoError&) {
    file_.truncate(size_);
    throw;
  }
  size_ += bytes.size();
}

std::uint64_t RecordWriter::append(std::uint32_t kind, const Key& key, std::string_view payload) {
  MANYWORLDS_CHECK(payload.size() <= kMaxPayloadBytes, "a payload of {} bytes", payload.size());
  const std::uint64_t offset = size_;
  std::string bytes = encode_header(offset, kind, key, payload);
  bytes += payload;
  write_all_or_nothing(bytes);
  if (unsynced_++ == 0) oldest_unsynced_ = clock_();
  if (unsynced_ >= policy_.records) flush();
  sync_if_due();
  return offset;
}

bool RecordWriter::lock_for_lifetime() {
  try {
    return file_.try_lock() && file_.linked();
  } catch (const IoError&) {
    return true;
  }
}

void RecordWriter::sync_if_due() {
  if (unsynced_ > 0 && clock_() - oldest_unsynced_ >= policy_.interval) flush();
}

void RecordWriter::flush() {
  if (unsynced_ == 0) return;
  file_.sync_data();
  unsynced_ = 0;
}

}  // namespace manyworlds::io
