// An open file that closes itself and turns every failed system call into an IoError with its path; and the one way
// a whole file is put in place: written aside, synced, renamed.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::io {

class File {
 public:
  /// `flags` as of open(2); the file is always close-on-exec.
  File(const std::filesystem::path& path, int flags);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::uint64_t size() const;
  /// Reads up to `size` bytes; fewer only at the end of the file.
  std::size_t read_at(std::uint64_t offset, char* to, std::size_t size) const;
  void write_at(std::uint64_t offset, std::string_view bytes);
  void truncate(std::uint64_t size);
  void sync_data();  // fdatasync: the bytes are on the disk when it returns
  /// flock(2) until the file is closed or its process dies, on every host that sees the file where the file system does
  /// that. False when somebody else has it.
  bool try_lock();
  bool linked() const;  // whether it still has a name
  void close();         // like the destructor, but reports what close(2) reports

 private:
  int descriptor_ = -1;
  std::string path_;
};

std::string read_file(const std::filesystem::path& path);

/// A file that is written piece by piece. Readers see the old file or the new one, whole, also after a crash:
/// temporary + fsync + rename + directory fsync. One process may write a path at a time.
class AsideFile {
 public:
  /// Throws IoError where `path` could not be written; the other two as well.
  explicit AsideFile(const std::filesystem::path& path);
  /// Removes the temporary of a file that was not put in place.
  ~AsideFile();
  AsideFile(const AsideFile&) = delete;
  AsideFile& operator=(const AsideFile&) = delete;

  void append(std::string_view bytes);
  void put_in_place();

 private:
  std::filesystem::path path_, aside_;
  std::optional<File> file_;
  std::uint64_t size_ = 0;
};

/// A whole file at once, as AsideFile does it.
void write_aside(const std::filesystem::path& path, std::string_view bytes);
/// Ends the names of temporaries that write_aside leaves when it is killed.
inline constexpr std::string_view kAsideSuffix = ".aside";

void make_directories(const std::filesystem::path& path);
void sync_directory(const std::filesystem::path& path);  // makes new names in it last

/// Names of the entries of a directory, sorted.
std::vector<std::string> list_directory(const std::filesystem::path& path);

/// The host's name with everything but letters, digits, '.' and '-' replaced: fit for a file name.
std::string host_name();

}  // namespace manyworlds::io
