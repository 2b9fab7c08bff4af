// Work that may go wrong in ways no exception tells, as a library does that trusts the bytes it parses: it runs in a
// process of its own, under limits, without any file of ours, and what it makes of its input comes back as messages.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace manyworlds::io {

class Confined {
 public:
  struct Limits {
    std::uint64_t memory_bytes = 0;  // of address space, beyond what this process has
    std::chrono::seconds cpu{0};
    std::uint64_t message_bytes = 0;  // the longest message that may come back
  };
  using Send = std::function<void(std::string_view message)>;

  /// Begins `work`, which sees the memory of this process as it is now. It does not outlive the thread that began it.
  /// Throws IoError where no process can be had.
  Confined(const Limits& limits, const std::function<void(const Send&)>& work);
  /// Ends the work, wherever it is.
  ~Confined();
  Confined(const Confined&) = delete;
  Confined& operator=(const Confined&) = delete;

  /// The next message, or nothing when there are no more: then end() tells why.
  std::optional<std::string> next();

  struct End {
    bool well = true;          // the work came to its end
    std::string what, detail;  // else "crashed", "SIGSEGV"; "ran out of time", "30 s of CPU"; …
  };
  /// Waits for the process and says how it ended.
  End end();

 private:
  bool read_all(char* to, std::size_t size);
  int wait();

  Limits limits_;
  pid_t process_ = -1;
  int pipe_ = -1;
  bool broken_ = false;  // it sent what no work of ours sends
};

}  // namespace manyworlds::io
