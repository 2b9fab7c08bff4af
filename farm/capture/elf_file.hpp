// What an executable says of itself: the libraries that it needs, and whether it has code for NVIDIA's devices.
#pragma once

#include <array>
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

/// The major versions of CUDA whose libraries can be stood in for.
inline constexpr std::array<int, 2> kCudaMajors{12, 13};

/// Returns the major version of CUDA that a program needs the libraries of; 0 if it names none, as a script does.
/// Throws core::InputError, naming the library, if it cannot be captured: it has code of kernels and the runtime of
/// CUDA linked in, needs CUDA's libraries of another version than kCudaMajors or of two, or looks for its own first.
int cuda_major_of(const ElfFile& file, const std::string& path);

}  // namespace manyworlds::farm
