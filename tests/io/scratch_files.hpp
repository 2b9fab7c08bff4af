// What the tests of io/ share: keys, files as bytes, a folder for them, and a disk that is full.
#pragma once

#include <sys/resource.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/sharing/key.hpp"
#include "tests/source_folder.hpp"
#include "tests/temporary_folder.hpp"

namespace manyworlds::io::testing {

inline core::sharing::Key key_of(std::uint64_t n) {
  return {{n * 0x9e3779b97f4a7c15u, n ^ 0x0123456789abcdefu}, {n + 1, ~n}, 100 + n};
}

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void put_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// While it lives, no file grows beyond `bytes`: what a full disk does to a writer, without a disk to fill.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

/// What a script beside the tests prints. Debian's own python3 is the one that sees Debian's packages.
inline std::string run_python(const std::string& script, const std::string& arguments) {
  const std::string command = "/usr/bin/python3 " + source_folder() + "/tests/io/" + script + " " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  INFO(output);
  REQUIRE(status == 0);
  return output;
}

}  // namespace manyworlds::io::testing
