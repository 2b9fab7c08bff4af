// The payload of a result's record: the result followed by a checksum over the result and its key. A payload that was
// changed, or moved to another key, fails this checksum even if the record's own checksums were repaired. The checksum
// has no secret: it detects accidents and careless tools, not deliberate forgery.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/sharing/key.hpp"

namespace manyworlds::io {

/// The kind of record that holds a result, in journals and stores.
inline constexpr std::uint32_t kResultRecord = 1;

/// Returns the payload of a record that holds `result` under `key`.
std::string keyed_payload(const core::sharing::Key& key, std::string_view result);

/// Returns the result in `payload`, or nothing unless keyed_payload() made the payload for `key`.
std::optional<std::string_view> verified_result(std::string_view payload, const core::sharing::Key& key);

/// The intact records of one file whose content does not belong to their key.
struct InvalidRecords {
  struct InvalidRecord {
    std::uint64_t offset = 0;  // of the record in its file
    core::sharing::Key key;
    std::string reason;
  };
  std::uint64_t count = 0;
  std::vector<InvalidRecord> examples;  // the first few
  void add(std::uint64_t offset, const core::sharing::Key& key, std::string_view reason);
  /// Returns a line for each of the examples and one for the rest; empty where there are none.
  std::string describe(const std::string& path) const;
};

/// Reasons why a record is invalid.
inline constexpr std::string_view kChangedContent = "its content was changed, or is another key's";
inline constexpr std::string_view kInvalidResult = "its content is no result of that task";
inline constexpr std::string_view kCollision = "another key has the same first digest: a collision";

}  // namespace manyworlds::io
