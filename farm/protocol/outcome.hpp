// What became of a task: its bytes, or why there are none. Only `ok` is ever stored.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace manyworlds::farm {

enum class Status : std::uint8_t {
  ok,
  error,        // the task threw: the same again next time
  crash,        // the simulator died by a signal of its own making
  environment,  // this machine: a limit of memory or time, killed from outside; another try may succeed
  input,        // a task whose result it needs failed
  pending,      // not computed yet; only told, never sent or written down
};

struct Outcome {
  Status status = Status::ok;
  std::string bytes;            // the result when ok, else the reason in words
  std::int64_t elapsed_us = 0;  // how long it ran; 0 when it came from the journal or the store
  std::uint8_t tries = 1;       // so many ends like this one settle the task
  bool ok() const { return status == Status::ok; }
};

inline constexpr const char* kStatusNames[] = {"ok", "error", "crash", "environment", "input", "pending"};

/// "ok", or the class of a failure.
inline const char* name_of(Status status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

/// The status called `name`, or nothing.
inline std::optional<Status> status_named(std::string_view name) {
  for (std::size_t status = 0; status < std::size(kStatusNames); ++status)
    if (name == kStatusNames[status]) return static_cast<Status>(status);
  return std::nullopt;
}

}  // namespace manyworlds::farm
