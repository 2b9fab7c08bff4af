#include "experiments/logs/log_lines.hpp"

#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/error.hpp"

namespace manyworlds::experiments::logs {
namespace {

using core::InputError;

constexpr char kEscape = '\x1b';
constexpr std::size_t kChunk = 1u << 20;

struct CloseFile {
  void operator()(gzFile file) const { gzclose(file); }
};

/// Returns the place behind the terminal escape that begins at `at`.
std::size_t behind_escape(std::string_view line, std::size_t at) {
  if (at + 1 >= line.size()) return line.size();
  if (line[at + 1] != '[') return at + 2;
  for (at += 2; at < line.size(); ++at)
    if (line[at] >= '@' && line[at] <= '~') return at + 1;
  return line.size();
}

}  // namespace

void LineSplitter::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\n\r");
    const std::string_view part = bytes.substr(0, end);
    line_.append(part.substr(0, std::min(part.size(), kMaxLine - line_.size())));
    if (end == std::string_view::npos) return;
    end_line();
    if (bytes[end] == '\n') ++number_;
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::finish() {
  end_line();
}

void LineSplitter::end_line() {
  if (!line_.empty()) receiver_(line_, number_);
  line_.clear();
}

void clean_line(std::string_view line, std::string& result) {
  result.clear();
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == kEscape) {
      at = behind_escape(line, at);
      continue;
    }
    result += line[at] >= ' ' && line[at] <= '~' ? line[at] : ' ';
    ++at;
  }
}

void read_lines(const std::string& path, const LineSplitter::Receiver& receiver) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw InputError(fmt::format("cannot be read: {}", std::strerror(errno)), path);
  if (S_ISDIR(status.st_mode)) throw InputError("is a folder; give the file of a log", path);
  const std::unique_ptr<gzFile_s, CloseFile> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) throw InputError(fmt::format("cannot be read: {}", std::strerror(errno)), path);
  LineSplitter lines(receiver);
  std::vector<char> chunk(kChunk);
  for (;;) {
    const int bytes = gzread(file.get(), chunk.data(), static_cast<unsigned>(chunk.size()));
    if (bytes > 0) lines.add({chunk.data(), static_cast<std::size_t>(bytes)});
    int code = Z_OK;
    gzerror(file.get(), &code);
    if (code == Z_ERRNO) throw InputError(fmt::format("cannot be read: {}", std::strerror(errno)), path);
    if (bytes < 0 || (bytes == 0 && code == Z_BUF_ERROR)) throw InputError("its compressed data are damaged", path);
    if (bytes == 0) break;
  }
  lines.finish();
}

}  // namespace manyworlds::experiments::logs
