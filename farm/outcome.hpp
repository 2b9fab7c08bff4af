// What became of a task: its bytes, or why there are none. Only `ok` is ever journalled or stored.
#pragma once

#include <cstdint>
#include <string>

namespace manyworlds::farm {

enum class Status : std::uint8_t {
  ok,
  error,        // the task threw: the same again next time
  crash,        // the simulator died by a signal of its own making, twice
  environment,  // this machine: out of memory, killed from outside; another try may succeed
  input,        // a task whose result it needs failed
};

struct Outcome {
  Status status = Status::ok;
  std::string bytes;            // the result when ok, else the reason in words
  std::int64_t elapsed_us = 0;  // how long it ran; 0 when it came from the journal or the store
  bool ok() const { return status == Status::ok; }
};

inline const char* name_of(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::error:
      return "error";
    case Status::crash:
      return "crash";
    case Status::environment:
      return "environment";
    case Status::input:
      return "input";
  }
  return "?";
}

}  // namespace manyworlds::farm
