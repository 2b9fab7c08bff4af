// The directory of a run whose results are read at once and need not be kept.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/error.hpp"

namespace manyworlds::farm {

/// A run directory given by the user, or a temporary one that is removed with this object.
class RunFolder {
 public:
  RunFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "manyworlds-run-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw core::IoError("make", name);
    path_ = name;
    temporary_ = true;
  }
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  ~RunFolder() {
    std::error_code ignored;
    if (temporary_) std::filesystem::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool temporary_ = false;
};

}  // namespace manyworlds::farm
