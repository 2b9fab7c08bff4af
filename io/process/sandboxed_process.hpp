// Runs code that may fail in ways no exception reports, such as a library that trusts the bytes it parses, in a process
// of its own: under limits, without open files, and with messages as its only output.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace manyworlds::io {

class SandboxedProcess {
 public:
  struct Limits {
    std::uint64_t memory_bytes = 0;  // of address space, beyond what this process has
    std::chrono::seconds cpu{0};
    std::uint64_t message_bytes = 0;  // the longest message that is accepted
  };
  using Send = std::function<void(std::string_view message)>;

  /// Starts `work`, which sees a copy of this process's memory. It does not outlive the thread that started it. Throws
  /// IoError where no process can be started.
  SandboxedProcess(const Limits& limits, const std::function<void(const Send&)>& work);
  /// Kills the process if it still runs.
  ~SandboxedProcess();
  SandboxedProcess(const SandboxedProcess&) = delete;
  SandboxedProcess& operator=(const SandboxedProcess&) = delete;

  /// Returns the next message, or nothing when there are no more; then exit_report() has the reason.
  std::optional<std::string> next();

  struct ExitReport {
    bool succeeded = true;        // `work` returned
    std::string failure, detail;  // otherwise "crashed", "SIGSEGV"; "ran out of time", "30 s of CPU"; …
  };
  /// Waits for the process and reports how it ended.
  ExitReport exit_report();

 private:
  bool read_all(char* to, std::size_t size);
  int wait();

  Limits limits_;
  pid_t process_ = -1;
  int pipe_ = -1;
  bool invalid_message_ = false;  // it sent a message that `work` never sends
};

}  // namespace manyworlds::io
