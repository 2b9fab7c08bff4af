// Records of journals, as the tasks of a job take them.
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

/// What the payload of a failure's record says, or nothing where it is no failure that this build writes down.
std::optional<Outcome> failure_of(const std::string& payload);

/// The tasks of a job by key. Two may have one key when sharing is off: what is recorded serves all of them.
class TasksByKey {
 public:
  explicit TasksByKey(const Job& job);

  /// Whether a record holds what it says: a failure, or a result that its task can use. Records of keys and kinds that
  /// this job has not are nobody's, and right.
  bool hold(const io::Record& record) const;
  /// Those with this key, ascending.
  const std::vector<std::uint32_t>& of(const core::sharing::Key& key) const;

 private:
  const Job& job_;
  std::map<core::sharing::Key, std::vector<std::uint32_t>> tasks_;
};

}  // namespace manyworlds::farm
