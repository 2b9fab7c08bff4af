// Results on their way from the process that reads an HDF5 image to the one that asked for them: a message for each
// part of the file, in its order, and what is made of them. Neither side takes more memory than the file may have.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/sharing/bytes.hpp"
#include "io/results/results.hpp"

namespace manyworlds::io {

/// Something is not as a results file has it, in words that name the part of the file.
class NoResults : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the tables and texts of a file may take in memory, as our structures hold them: files may say that they are
/// far larger than they are.
class ReadingBudget {
 public:
  explicit ReadingBudget(std::uint64_t file_bytes);
  std::uint64_t bytes() const { return bytes_; }
  /// Throws NoResults where `count` things of `each` bytes are more than is left; they are taken off otherwise.
  void charge(std::uint64_t count, std::uint64_t each, const std::string& what);
  /// The same, and they stay free.
  void check(std::uint64_t count, std::uint64_t each, const std::string& what) const;

 private:
  std::uint64_t bytes_, left_;
};

/// So many columns a table may have, and so many facts /provenance.
inline constexpr std::uint64_t kMostColumns = 1024, kMostFacts = 1024;
/// So many axes: what they do is looked at for each beside all others.
inline constexpr std::uint64_t kMostAxes = 256;
inline constexpr std::size_t kMostNameBytes = 1024;

namespace results_message {

std::string format_version(std::int64_t version);
std::string spec(std::string_view text);
/// Begins a column of table number `table` in answer_tables(); its values follow in messages of their own.
std::string column(std::size_t table, const Column& heading, ElementType type, std::uint64_t rows);
/// Elements of the column that began last, as HDF5 puts them into memory; texts padded with NUL to `width` bytes each.
std::string values(std::string_view elements, std::uint64_t width);
std::string axis(std::string_view name);
std::string fact(const Attribute& attribute);
/// The image is no results file, and why.
std::string refusal(std::string_view words);
std::string end();

}  // namespace results_message

/// Puts messages together. It trusts none of them.
class ResultsReceiver {
 public:
  explicit ResultsReceiver(std::uint64_t file_bytes) : budget_(file_bytes) {}

  /// Throws NoResults: the words of a refusal, or what does not fit. Throws InternalError for bytes that are no
  /// message.
  void take(std::string_view message);
  bool ended() const { return ended_; }
  /// Nothing until it is known. After one that is not this build's nothing else comes.
  std::optional<std::int64_t> format_version() const { return format_version_; }
  /// Throws NoResults where a part is missing or parts do not fit together.
  Results finish();

 private:
  void begin_column(core::sharing::ByteReader& in);
  void add_values(core::sharing::ByteReader& in);
  void add_fact(core::sharing::ByteReader& in);
  void end_column();

  ReadingBudget budget_;
  Results results_;
  std::optional<std::int64_t> format_version_;
  std::size_t table_ = 0;     // of the last column
  Column* column_ = nullptr;  // that is being filled
  std::uint64_t rows_ = 0;    // that it will have
  bool ended_ = false;
};

}  // namespace manyworlds::io
