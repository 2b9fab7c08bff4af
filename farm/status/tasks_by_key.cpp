#include "farm/status/tasks_by_key.hpp"

#include <algorithm>

namespace manyworlds::farm {

std::optional<Outcome> parse_failure(const std::string& payload) {
  const std::size_t end = payload.find('\n');
  const auto status = parse_status_name(payload.substr(0, end));
  if (end == std::string::npos || !status) return std::nullopt;
  if (*status != Status::error && *status != Status::crash && *status != Status::environment) return std::nullopt;
  return Outcome{*status, payload.substr(end + 1), 0};
}

TasksByKey::TasksByKey(const Job& job) : job_(job) {
  for (std::uint32_t task = 0; task < job.tasks().size(); ++task) tasks_[job.tasks()[task].key].push_back(task);
}

bool TasksByKey::accept(const io::Record& record) const {
  const auto& tasks = with_key(record.key);
  if (tasks.empty()) return true;
  if (record.kind == io::kFailureRecord) return parse_failure(record.payload).has_value();
  return record.kind != io::kResultRecord || std::all_of(tasks.begin(), tasks.end(), [&](std::uint32_t task) {
           return job_.is_valid_result(task, record.payload);
         });
}

const std::vector<std::uint32_t>& TasksByKey::with_key(const core::sharing::Key& key) const {
  static const std::vector<std::uint32_t> kNone;
  const auto found = tasks_.find(key);
  return found == tasks_.end() ? kNone : found->second;
}

}  // namespace manyworlds::farm
