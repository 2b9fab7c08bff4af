// Journal records, matched to the tasks of a job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "farm/protocol/job.hpp"
#include "farm/protocol/outcome.hpp"
#include "io/log/journal.hpp"

namespace manyworlds::farm {

/// Decodes the payload of a failure record; nullopt if it is not a failure that this build writes.
std::optional<Outcome> parse_failure(const std::string& payload);

/// The tasks of a job by key. Several tasks may share one key when sharing is off: a record then serves all of them.
class TasksByKey {
 public:
  explicit TasksByKey(const Job& job);

  /// Returns whether a record is valid: a failure that can be decoded, or a result that its tasks can use. Records with
  /// unknown keys or kinds belong to no task and count as valid.
  bool accept(const io::Record& record) const;
  /// Returns the tasks with this key, in ascending order.
  const std::vector<std::uint32_t>& with_key(const core::sharing::Key& key) const;

 private:
  const Job& job_;
  std::map<core::sharing::Key, std::vector<std::uint32_t>> tasks_;
};

}  // namespace manyworlds::farm
