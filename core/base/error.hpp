// The three kinds of error: InputError is a mistake of the user (exit code 2), IoError a failure of the machine (exit
// code 74), and InternalError, thrown by a failed MANYWORLDS_CHECK, a bug of this program (exit code 70).
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/base/escape.hpp"

namespace manyworlds::core {

/// Bad input. The message is one line that names the file, line and key and says which value would be valid: what it
/// quotes of the input is made one line by line_text(). `line` 0 means that the line is not known at the point of the
/// throw; a caller that knows file and line adds them with at().
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::string what, std::string file = {}, int line = 0)
      : std::runtime_error(compose(what, file, line)), what_(std::move(what)), file_(std::move(file)), line_(line) {}

  bool located() const { return line_ > 0; }
  InputError at(const std::string& file, int line) const { return InputError(what_, file, line); }

 private:
  static std::string compose(const std::string& what, const std::string& file, int line) {
    if (file.empty()) return line_text(what);
    return line_text(line > 0 ? fmt::format("{}:{}: {}", file, line, what) : fmt::format("{}: {}", file, what));
  }
  std::string what_, file_;
  int line_;
};

/// A file that cannot be read or written. `code` is the errno of the failed call.
class IoError : public std::runtime_error {
 public:
  IoError(const std::string& action, const std::string& path, int error = errno)
      : std::runtime_error(fmt::format("cannot {} {}: {}", action, path, std::strerror(error))), code(error) {}
  int code;
};

/// A violated internal invariant; the message contains the offending values.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace manyworlds::core

#define MANYWORLDS_CHECK(condition, ...)                                                                         \
  do {                                                                                                           \
    if (!(condition)) [[unlikely]]                                                                               \
      throw ::manyworlds::core::InternalError(                                                                   \
          fmt::format("{}:{}: {} does not hold: {}", __FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__))); \
  } while (false)
