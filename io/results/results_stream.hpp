// Results on their way from the process that reads an HDF5 image to the one that asked for them: a message for each
// part of the file, in its order, and the receiver that reassembles them. Both sides bound their memory by the size of
// the file.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/sharing/bytes.hpp"
#include "io/results/results.hpp"

namespace manyworlds::io {

/// The file is not a valid results file; the message names the invalid part.
class InvalidResults : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Bounds the memory of a file's tables and texts, as our structures hold them: a file may claim to be far larger than
/// it is.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t file_bytes);
  std::uint64_t bytes() const { return bytes_; }
  /// Subtracts `count` items of `each` bytes. Throws InvalidResults if less than that is left.
  void charge(std::uint64_t count, std::uint64_t each, const std::string& what);
  /// Like charge(), but subtracts nothing.
  void check(std::uint64_t count, std::uint64_t each, const std::string& what) const;

 private:
  std::uint64_t bytes_, left_;
};

/// Maximum numbers of columns of a table and of attributes of /provenance.
inline constexpr std::uint64_t kMaxColumns = 1024, kMaxProvenanceEntries = 1024;
/// Maximum number of axes: each is analysed against all others.
inline constexpr std::uint64_t kMaxAxes = 256;
inline constexpr std::size_t kMaxNameBytes = 1024;

namespace results_message {

std::string format_version(std::int64_t version);
std::string spec(std::string_view text);
/// Begins a column of table number `table` in result_tables(); its values follow in messages of their own.
std::string column(std::size_t table, const Column& heading, ElementType type, std::uint64_t rows);
/// Elements of the column that began last, in HDF5's memory format; texts padded with NUL to `width` bytes each.
std::string values(std::string_view elements, std::uint64_t width);
std::string axis(std::string_view name);
std::string provenance_entry(const Attribute& attribute);
/// The image is not a results file; `words` says why.
std::string refusal(std::string_view words);
std::string end();

}  // namespace results_message

/// Reassembles results from messages, and trusts none of them.
class ResultsReceiver {
 public:
  explicit ResultsReceiver(std::uint64_t file_bytes) : budget_(file_bytes) {}

  /// Throws InvalidResults with the text of a refusal, or for parts that do not fit. Throws InternalError for bytes
  /// that are not a message.
  void take(std::string_view message);
  bool ended() const { return ended_; }
  /// Returns the format version once it is known. If it is not this build's, no other message follows.
  std::optional<std::int64_t> format_version() const { return format_version_; }
  /// Throws InvalidResults if a part is missing or parts do not fit together.
  Results finish();

 private:
  void begin_column(core::sharing::ByteReader& in);
  void add_values(core::sharing::ByteReader& in);
  void add_provenance_entry(core::sharing::ByteReader& in);
  void end_column();

  MemoryBudget budget_;
  Results results_;
  std::optional<std::int64_t> format_version_;
  std::size_t table_ = 0;     // of the last column
  Column* column_ = nullptr;  // the column that is being filled
  std::uint64_t rows_ = 0;    // its final number of rows
  bool ended_ = false;
};

}  // namespace manyworlds::io
