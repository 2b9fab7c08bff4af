// Runs the synthetic program in a fresh directory, finds the processes it is made of, and waits for their end.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace manyworlds::farm::synthetic {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Directory {
  Directory() {
    std::string name = (fs::temp_directory_path() / "farm-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Directory() { fs::remove_all(path); }
  fs::path path;
};

inline std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// With what it says in `log`.
inline pid_t start_program(const fs::path& log, std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child > 0) return child;
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

inline pid_t start(const fs::path& run, const std::string& words) {
  std::vector<std::string> all{SYNTHETIC_PROGRAM, run.string()};
  std::istringstream split(words);
  for (std::string word; split >> word;) all.push_back(word);
  return start_program(run.string() + ".log", all);
}

/// Exit code, or 128 + signal; -1 when it has not ended by then.
inline int wait_for(pid_t pid, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) return -1;
    std::this_thread::sleep_for(20ms);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline int run(const fs::path& directory, const std::string& words) {
  return wait_for(start(directory, words), 600s);
}

/// Live processes that were started for this run directory, with their parents.
inline std::map<pid_t, pid_t> processes_of(const fs::path& run) {
  std::map<pid_t, pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (slurp(entry.path() / "cmdline").find(run.string() + '\0') == std::string::npos) continue;
    const std::string stat = slurp(entry.path() / "stat");
    const auto after_name = stat.rfind(')');
    if (after_name == std::string::npos || stat[after_name + 2] == 'Z') continue;
    found[std::stoi(name)] = std::stoi(stat.substr(after_name + 4));
  }
  return found;
}

inline bool is_program(pid_t pid) {
  return slurp("/proc/" + std::to_string(pid) + "/cmdline").starts_with(SYNTHETIC_PROGRAM);
}

/// The processes of a rank: the one that moves messages, its zygote, the one that simulates.
struct Rank {
  pid_t messages = 0, zygote = 0, simulator = 0;
  int number = 0;
};

inline std::vector<Rank> ranks_of(const fs::path& run) {
  const auto all = processes_of(run);
  std::vector<Rank> ranks;
  for (const auto& [pid, parent] : all) {
    const auto zygote = all.find(parent);
    if (zygote == all.end() || !is_program(pid) || !is_program(parent)) continue;
    const auto messages = all.find(zygote->second);
    if (messages == all.end() || !is_program(messages->first)) continue;
    const std::string environment = slurp("/proc/" + std::to_string(messages->first) + "/environ");
    const auto at = environment.find("OMPI_COMM_WORLD_RANK=");
    ranks.push_back(
        {messages->first, parent, pid, at == std::string::npos ? 0 : std::stoi(environment.substr(at + 21))});
  }
  return ranks;
}

inline bool eventually(const std::function<bool()>& holds, std::chrono::milliseconds limit) {
  for (const auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;
       std::this_thread::sleep_for(20ms))
    if (holds()) return true;
  return holds();
}

inline bool none_left(const std::vector<pid_t>& processes) {
  for (const pid_t process : processes)
    if (::kill(process, 0) == 0) return false;
  return true;
}

/// Bytes of the journal: how far a run is.
inline std::uintmax_t journalled(const fs::path& run) {
  std::uintmax_t bytes = 0;
  if (fs::exists(run / "journal"))
    for (const auto& entry : fs::directory_iterator(run / "journal")) bytes += entry.file_size();
  return bytes;
}

}  // namespace manyworlds::farm::synthetic
