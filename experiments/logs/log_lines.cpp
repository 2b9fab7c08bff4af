#include "experiments/logs/log_lines.hpp"

#include <algorithm>
#include <vector>

#include "experiments/text/gzip_file.hpp"

namespace manyworlds::experiments::logs {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::size_t kChunk = 1u << 20;

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
  import::GzipFile file(path, "the file of a log");
  LineSplitter lines(receiver);
  std::vector<char> chunk(kChunk);
  while (const std::size_t bytes = file.read(chunk.data(), chunk.size())) lines.add({chunk.data(), bytes});
  lines.finish();
}

}  // namespace manyworlds::experiments::logs
