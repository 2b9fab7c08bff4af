#include "experiments/capture/record.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace manyworlds::experiments::capture {

std::string quoted(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

void Line::start(std::string_view key) {
  if (!members_.empty()) members_ += ',';
  members_ += quoted(key) + ':';
}

Line& Line::text(std::string_view key, std::string_view value) {
  return json(key, quoted(value));
}
Line& Line::number(std::string_view key, std::int64_t value) {
  return json(key, std::to_string(value));
}
Line& Line::json(std::string_view key, std::string_view json) {
  start(key);
  members_ += json;
  return *this;
}

Record::Record(const std::string& folder, int rank) : path_(folder + "/rank" + std::to_string(rank) + ".jsonl") {
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw std::invalid_argument("MANYWORLDS_CAPTURE: " + path_ + " cannot be made: " + std::strerror(errno) +
                                "; the folder must exist, and hold no record of the rank");
}

void Record::write(const Line& line, int thread) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - opened_);
  const std::string whole = "{" + line.members() + ",\"thread\":" + std::to_string(thread) +
                            ",\"at_ns\":" + std::to_string(ns.count()) + "}\n";
  for (std::size_t written = 0; written < whole.size();) {
    const ssize_t n = ::write(file_, whole.data() + written, whole.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      std::fprintf(stderr, "manyworlds capture: %s: %s\n", path_.c_str(), std::strerror(errno));
      _exit(2);
    }
    written += static_cast<std::size_t>(n);
  }
}

}  // namespace manyworlds::experiments::capture
