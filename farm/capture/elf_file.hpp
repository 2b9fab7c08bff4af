// What an executable says of itself: the libraries that it needs, and whether it has code for NVIDIA's devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace manyworlds::farm {

struct ElfFile {
  std::vector<std::string> needed;  // DT_NEEDED, in its order
  std::string search_path;          // DT_RPATH, which goes before LD_LIBRARY_PATH; empty: none
  bool has_device_code = false;     // a section that nvcc or clang puts kernels into
};

/// Reads a file of 64 bits in this machine's byte order (System V ABI, "Program Header" and "Dynamic Section"); nothing
/// if it is none, such as a script. Throws core::InputError for one that cannot be read or whose tables lie outside of
/// it.
std::optional<ElfFile> read_elf_file(const std::string& path);

/// Throws core::InputError, naming the library, if a program cannot be captured: it has code of kernels and the runtime
/// of CUDA linked in, needs CUDA's libraries of another major version than `major`, or looks for its own first.
void check_capturable(const ElfFile& file, int major, const std::string& path);

}  // namespace manyworlds::farm
