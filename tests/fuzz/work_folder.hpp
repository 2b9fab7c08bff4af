// Where a fuzzer puts the files that the readers under test open: in memory where there is such a place.
#pragma once

#include <unistd.h>

#include "tests/temporary_folder.hpp"

namespace manyworlds::fuzz {

struct WorkFolder : TemporaryFolder {
  WorkFolder()
      : TemporaryFolder(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path()) {}
};

/// A property of the reader does not hold: libFuzzer keeps the input and tells.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace manyworlds::fuzz
