// Where a fuzzer puts the files that the readers under test open: in memory where there is such a place.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace manyworlds::fuzz {

class WorkFolder {
 public:
  WorkFolder() {
    std::error_code none;
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    std::string name = ((memory ? "/dev/shm" : std::filesystem::temp_directory_path(none)) / "manyworlds-fuzz-XXXXXX");
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void put(const std::filesystem::path& name, std::string_view bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path path_;
};

/// A property of the reader does not hold: libFuzzer keeps the input and tells.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace manyworlds::fuzz
