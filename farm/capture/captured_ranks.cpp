#include "farm/capture/captured_ranks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "farm/capture/elf_file.hpp"

extern char** environ;

namespace manyworlds::farm {
namespace {

namespace fs = std::filesystem;
using core::InputError;
using Clock = std::chrono::steady_clock;

std::string runtime_name(int major) {
  return fmt::format("libcudart.so.{}", major);
}

/// The major version of CUDA whose libraries a program is given.
int cuda_of(const CaptureOptions& options, const std::string& program) {
  const auto file = read_elf_file(program);
  const int needed = file ? cuda_major_of(*file, program) : 0;
  if (options.cuda != 0 && needed != 0 && options.cuda != needed)
    throw InputError(fmt::format("needs {}, and --cuda is {}", runtime_name(needed), options.cuda), program);
  return needed != 0 ? needed : options.cuda != 0 ? options.cuda : kNewestCuda;
}

/// The path of a program as a shell finds it.
std::string program_path(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), X_OK) != 0 || fs::is_directory(name))
      throw InputError(fmt::format("is no program that can be run: {}", std::strerror(errno != 0 ? errno : EISDIR)),
                       name);
    return name;
  }
  const char* variable = std::getenv("PATH");
  std::string paths = variable == nullptr ? "" : variable;
  for (std::size_t begin = 0; begin <= paths.size();) {
    const std::size_t end = std::min(paths.find(':', begin), paths.size());
    const std::string path = paths.substr(begin, end - begin) + "/" + name;
    if (end > begin && ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path)) return path;
    begin = end + 1;
  }
  throw InputError("is no program in PATH", name);
}

std::string with_numbers(std::string text, std::uint32_t rank, std::uint32_t world) {
  for (const auto& [name, number] : {std::pair("{rank}", rank), {"{world}", world}})
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;)
      text.replace(at, std::strlen(name), std::to_string(number));
  return text;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

class Capture {
 public:
  Capture(const CaptureOptions& options, const std::function<void(const CapturedRank&)>& tell)
      : options_(options),
        tell_(tell),
        program_(program_path(options.command.front())),
        cuda_(cuda_of(options, program_)),
        libraries_(capture_libraries(cuda_)) {
    fs::create_directories(options.folder);
    for (const std::uint32_t rank : options.ranks)
      if (fs::exists(path_of(rank, ".jsonl")))
        throw InputError(fmt::format("holds rank{}.jsonl already: name another folder by --to", rank), options.folder);
  }

  std::vector<CapturedRank> run() {
    for (const std::uint32_t rank : options_.ranks) {
      if (running_.size() >= std::max<std::size_t>(options_.at_once, 1)) await_one();
      start(rank);
    }
    while (!running_.empty()) await_one();
    std::sort(ended_.begin(), ended_.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    return std::move(ended_);
  }

 private:
  struct Running {
    std::uint32_t rank = 0;
    Clock::time_point begin;
  };

  std::string path_of(std::uint32_t rank, const char* ending) const {
    return fmt::format("{}/rank{}{}", options_.folder, rank, ending);
  }

  /// The groups of a rank as its process takes them: "1:0,1;2:0,2".
  std::string groups_of(std::uint32_t rank) const {
    std::string text;
    for (const auto& [number, groups] : options_.groups)
      for (const std::vector<std::uint32_t>& group : groups)
        if (std::find(group.begin(), group.end(), rank) != group.end())
          text += fmt::format("{}{}:{}", text.empty() ? "" : ";", number, fmt::join(group, ","));
    return text;
  }

  std::vector<std::string> environment(std::uint32_t rank) const {
    const char* libraries = std::getenv("LD_LIBRARY_PATH");
    std::map<std::string, std::string> own{
        {"LD_LIBRARY_PATH",
         libraries_ + (libraries == nullptr || *libraries == '\0' ? "" : ":" + std::string(libraries))},
        {"MANYWORLDS_CAPTURE", options_.folder},
        {"MANYWORLDS_CAPTURE_GPU", options_.gpu},
        {"MANYWORLDS_CAPTURE_DEVICES", std::to_string(options_.devices)},
        {"MANYWORLDS_RANK", std::to_string(rank)},
        {"MANYWORLDS_WORLD", std::to_string(options_.world)},
        {"RANK", std::to_string(rank)},  // as of torchrun
        {"WORLD_SIZE", std::to_string(options_.world)},
        {"LOCAL_RANK", std::to_string(rank % options_.devices)},
        {"LOCAL_WORLD_SIZE", std::to_string(std::min(options_.devices, options_.world))}};
    if (const std::string groups = groups_of(rank); !groups.empty()) own["MANYWORLDS_CAPTURE_GROUPS"] = groups;
    if (options_.memory_bytes > 0) own["MANYWORLDS_CAPTURE_MEMORY"] = std::to_string(options_.memory_bytes);
    std::vector<std::string> all;
    for (char** each = environ; *each != nullptr; ++each) {
      const std::string name = std::string(*each).substr(0, std::string(*each).find('='));
      if (own.count(name) == 0 && name != "MANYWORLDS_CAPTURE_MEMORY" && name != "MANYWORLDS_CAPTURE_GROUPS")
        all.emplace_back(*each);
    }
    for (const auto& [name, value] : own) all.push_back(name + "=" + value);
    return all;
  }

  void start(std::uint32_t rank) {
    std::vector<std::string> words, variables = environment(rank);
    for (const std::string& word : options_.command) words.push_back(with_numbers(word, rank, options_.world));
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, path_of(rank, ".log").c_str(),
                                       O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t process = -1;
    const int error = ::posix_spawn(&process, program_.c_str(), &actions, nullptr, pointers(words).data(),
                                    pointers(variables).data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw InputError(fmt::format("cannot be started: {}", std::strerror(error)), program_);
    running_[process] = {rank, Clock::now()};
  }

  void await_one() {
    int status = 0;
    pid_t process = -1;
    do process = ::waitpid(-1, &status, 0);
    while ((process < 0 && errno == EINTR) || (process >= 0 && running_.count(process) == 0));
    if (process < 0) throw core::IoError("wait for", program_);
    const Running was = running_.at(process);
    running_.erase(process);
    CapturedRank one;
    one.rank = was.rank;
    one.seconds = std::chrono::duration<double>(Clock::now() - was.begin).count();
    one.what = how_it_ended(one.rank, status, one.calls);
    if (one.calls < 0) {
      if (ended_.empty())
        throw InputError(fmt::format("rank {} left no record: {}; what it printed is in {}", one.rank, one.what,
                                     path_of(one.rank, ".log")),
                         program_);
      one.calls = 0;
    }
    tell_(one);
    ended_.push_back(one);
  }

  /// Sets `calls` to how many its record has, and to -1 if there is none.
  std::string how_it_ended(std::uint32_t rank, int status, std::int64_t& calls) const {
    calls = -2;  // its first and last line are none
    std::string last;
    std::ifstream record(path_of(rank, ".jsonl"));
    const bool has_record = record.good();
    for (std::string line; std::getline(record, line); ++calls) last = line;
    calls = has_record ? std::max<std::int64_t>(calls, 0) : -1;
    const nlohmann::json end = nlohmann::json::parse(last, nullptr, false);
    const std::string call = end.is_object() && end.contains("call") ? end.value("call", "") : "";
    if (call == "stopped") return end.value("because", "");
    const std::string said = last_words(rank);
    if (WIFSIGNALED(status))
      return fmt::format("ended by {}{}", ::strsignal(WTERMSIG(status)), said.empty() ? "" : ": " + said);
    const int code = WEXITSTATUS(status);
    if (code != 0) return fmt::format("ended with exit code {}{}", code, said.empty() ? "" : ": " + said);
    if (!has_record)
      return fmt::format("it ended well, and called no function of CUDA's runtime as {} has it", runtime_name(cuda_));
    return call == "end" ? "" : "its record has no end, as it left by _exit() or started another program";
  }

  /// The last line that a rank printed.
  std::string last_words(std::uint32_t rank) const {
    std::ifstream log(path_of(rank, ".log"));
    std::string last;
    for (std::string line; std::getline(log, line);)
      if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
    return core::line_text(last).substr(0, 300);
  }

  const CaptureOptions& options_;
  const std::function<void(const CapturedRank&)>& tell_;
  std::string program_;
  int cuda_;
  std::string libraries_;
  std::map<pid_t, Running> running_;
  std::vector<CapturedRank> ended_;
};

}  // namespace

std::string capture_libraries(int major) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path place = major == kNewestCuda ? fs::path("lib/manyworlds/capture")
                                              : fs::path("lib/manyworlds/capture") / fmt::format("cuda{}", major);
  for (const fs::path& folder : {program / place, program.parent_path() / place})
    if (fs::exists(folder / runtime_name(major))) return folder.string();
  throw InputError(
      fmt::format("no {} in {} beside this program, where what stands in for CUDA's libraries is built and "
                  "installed",
                  runtime_name(major), place.string()),
      program.string());
}

std::vector<CapturedRank> capture_ranks(const CaptureOptions& options,
                                        const std::function<void(const CapturedRank&)>& tell) {
  return Capture(options, tell).run();
}

}  // namespace manyworlds::farm
