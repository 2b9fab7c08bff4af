// The outcome of a task: its result, or the reason why there is none. Only an outcome with status `ok` is ever stored.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace manyworlds::farm {

enum class Status : std::uint8_t {
  ok,
  error,        // the task threw an exception; it would do so again
  crash,        // a signal that its own code raised ended the simulator
  environment,  // caused by this machine: a memory or time limit, or a signal from outside; a retry may succeed
  input,        // a task whose result it needs failed
  pending,      // not computed yet; only shown, never sent or written
  left_out,     // what is known of others says that nobody needs it; never sent or written
};

struct Outcome {
  Status status = Status::ok;
  std::string bytes;              // the result if ok, otherwise the reason as text
  std::int64_t elapsed_us = 0;    // run time; 0 if it came from the journal or the store
  std::uint8_t max_failures = 1;  // the task fails for good after this many failures with this status
  bool ok() const { return status == Status::ok; }
  bool is_failure() const { return !ok() && status != Status::left_out; }
};

inline constexpr const char* kStatusNames[] = {"ok", "error", "crash", "environment", "input", "pending", "left_out"};

/// Returns "ok" or the class of the failure.
inline const char* name_of(Status status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

/// Returns the status called `name`, or nullopt.
inline std::optional<Status> parse_status_name(std::string_view name) {
  for (std::size_t status = 0; status < std::size(kStatusNames); ++status)
    if (name == kStatusNames[status]) return static_cast<Status>(status);
  return std::nullopt;
}

}  // namespace manyworlds::farm
