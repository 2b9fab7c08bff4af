// What a result's record carries besides its checksums: an inner check behind the result that depends on its key too. A
// payload that was changed, or moved to another key, by somebody who mended the record's own checksums does not pass.
// It has no secret: it tells accidents and careless tools, not somebody who means to deceive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/sharing/key.hpp"

namespace manyworlds::io {

/// The kind of record that holds a result, in journals and stores alike.
inline constexpr std::uint32_t kResultRecord = 1;

/// The payload of a record that holds `result` under `key`.
std::string keyed_payload(const core::sharing::Key& key, std::string_view result);

/// The result in `payload`, or nothing where it is not what keyed_payload() made for `key`.
std::optional<std::string_view> result_in(std::string_view payload, const core::sharing::Key& key);

/// Records of one file that are whole but do not hold what their key promises.
struct Misfits {
  struct Misfit {
    std::uint64_t offset = 0;  // of the record in its file
    core::sharing::Key key;
    std::string reason;
  };
  std::uint64_t count = 0;
  std::vector<Misfit> named;  // the first few
  void add(std::uint64_t offset, const core::sharing::Key& key, std::string_view reason);
  /// A line for each that is named, and one for the others; empty where there are none.
  std::string describe(const std::string& path) const;
};

/// Why a record is a misfit.
inline constexpr std::string_view kChangedContent = "its content was changed, or is another key's";
inline constexpr std::string_view kNoSuchResult = "its content is no result of that task";
inline constexpr std::string_view kCollision = "another key has the same first digest: a collision";

}  // namespace manyworlds::io
