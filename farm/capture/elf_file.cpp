#include "farm/capture/elf_file.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string_view>

#include "core/base/error.hpp"

namespace manyworlds::farm {
namespace {

using core::InputError;

constexpr std::uint64_t kMaxTableBytes = 64u << 20;
constexpr std::array<std::string_view, 3> kDeviceSections{".nv_fatbin", ".nvFatBinSegment", "__nv_relfatbin"};
constexpr std::array<std::string_view, 3> kVersioned{"libcudart.so.", "libcublas.so.", "libcublasLt.so."};

/// Parts of a file, each read where it lies.
class Parts {
 public:
  explicit Parts(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    if (!file_) throw InputError("cannot be read: the program to capture must be the path of an executable", path);
  }

  template <class T>
  std::vector<T> read(std::uint64_t at, std::uint64_t count) {
    if (count > kMaxTableBytes / sizeof(T)) fail();
    std::vector<T> values(count);
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(at));
    file_.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * sizeof(T)));
    if (!file_) fail();
    return values;
  }
  /// As much of it as there is.
  std::string head(std::size_t bytes) {
    std::string text(bytes, '\0');
    file_.read(text.data(), static_cast<std::streamsize>(bytes));
    text.resize(static_cast<std::size_t>(file_.gcount()));
    return text;
  }
  [[noreturn]] void fail() const {
    throw InputError("is no whole executable: one of its tables lies outside of it", path_);
  }

 private:
  const std::string& path_;
  std::ifstream file_;
};

std::string text_at(const std::vector<char>& texts, std::uint64_t at, const Parts& parts) {
  if (at >= texts.size()) parts.fail();
  return std::string(texts.data() + at, ::strnlen(texts.data() + at, texts.size() - at));
}

/// Where in the file the address that the loader knows is.
std::uint64_t place_of(std::uint64_t address, const std::vector<Elf64_Phdr>& segments, const Parts& parts) {
  for (const Elf64_Phdr& segment : segments)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  parts.fail();
}

void read_dynamic(const std::vector<Elf64_Phdr>& segments, Parts& parts, ElfFile& to) {
  const auto dynamic = std::find_if(segments.begin(), segments.end(),
                                    [](const Elf64_Phdr& segment) { return segment.p_type == PT_DYNAMIC; });
  if (dynamic == segments.end()) return;
  std::uint64_t texts_at = 0, texts_bytes = 0;
  std::vector<std::uint64_t> needed, paths;
  for (const Elf64_Dyn& entry : parts.read<Elf64_Dyn>(dynamic->p_offset, dynamic->p_filesz / sizeof(Elf64_Dyn))) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) texts_at = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) texts_bytes = entry.d_un.d_val;
    if (entry.d_tag == DT_NEEDED) needed.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_RPATH) paths.push_back(entry.d_un.d_val);
  }
  if (needed.empty() && paths.empty()) return;
  const auto texts = parts.read<char>(place_of(texts_at, segments, parts), texts_bytes);
  for (const std::uint64_t name : needed) to.needed.push_back(text_at(texts, name, parts));
  for (const std::uint64_t path : paths) to.search_path = text_at(texts, path, parts);
}

bool has_device_section(const Elf64_Ehdr& header, Parts& parts) {
  if (header.e_shnum == 0 || header.e_shstrndx >= header.e_shnum) return false;
  const auto sections = parts.read<Elf64_Shdr>(header.e_shoff, header.e_shnum);
  const Elf64_Shdr& names = sections[header.e_shstrndx];
  const auto texts = parts.read<char>(names.sh_offset, names.sh_size);
  return std::any_of(sections.begin(), sections.end(), [&](const Elf64_Shdr& section) {
    const std::string name = text_at(texts, section.sh_name, parts);
    return std::find(kDeviceSections.begin(), kDeviceSections.end(), name) != kDeviceSections.end();
  });
}

}  // namespace

std::optional<ElfFile> read_elf_file(const std::string& path) {
  Parts parts(path);
  const std::string head = parts.head(sizeof(Elf64_Ehdr));
  if (head.size() < sizeof(Elf64_Ehdr) || std::memcmp(head.data(), ELFMAG, SELFMAG) != 0) return std::nullopt;
  Elf64_Ehdr header;
  std::memcpy(&header, head.data(), sizeof header);
  constexpr unsigned char kOwnOrder = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kOwnOrder) return std::nullopt;
  ElfFile file;
  read_dynamic(parts.read<Elf64_Phdr>(header.e_phoff, header.e_phnum), parts, file);
  file.has_device_code = has_device_section(header, parts);
  return file;
}

int cuda_major_of(const ElfFile& file, const std::string& path) {
  bool has_runtime = false;
  int major = 0;
  std::string first;  // library that has a major version
  for (const std::string& name : file.needed)
    for (const std::string_view versioned : kVersioned) {
      if (!name.starts_with(versioned)) continue;
      has_runtime = has_runtime || versioned == kVersioned[0];
      const auto known = std::find_if(kCudaMajors.begin(), kCudaMajors.end(),
                                      [&](int one) { return name.substr(versioned.size()) == std::to_string(one); });
      if (known == kCudaMajors.end())
        throw InputError(
            fmt::format("needs {}; what stands in for CUDA's libraries is of major versions {}: compile it "
                        "with CUDA of one of these",
                        name, fmt::join(kCudaMajors, " and ")),
            path);
      if (major != 0 && major != *known)
        throw InputError(fmt::format("needs {} and {}: libraries of two major versions of CUDA", first, name), path);
      major = *known, first = name;
    }
  if (!has_runtime && file.has_device_code)
    throw InputError(
        "has kernels, and needs no libcudart.so: CUDA's runtime is linked in, where nothing can stand in for "
        "it; link it with -cudart shared",
        path);
  if (has_runtime && !file.search_path.empty())
    throw InputError(
        fmt::format("looks for its libraries in '{}' (DT_RPATH) before anywhere else, and would find CUDA's own; "
                    "link it with -Wl,--enable-new-dtags, or without that path",
                    file.search_path),
        path);
  return major;
}

}  // namespace manyworlds::farm
