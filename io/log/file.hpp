// An open file that closes itself and turns every failed system call into an IoError with its path; the one way a whole
// file is put in place: written aside, synced, renamed; and who may read what is made.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::io {

/// Who may read and write a new file besides its owner.
enum class Access : std::uint8_t {
  by_umask,   // as of any file that a user asks for
  by_folder,  // nobody who may not read and write the folder it is in, others never write: what a run leaves
};

class File {
 public:
  /// `flags` as of open(2); the file is always close-on-exec. Reading waits for nobody: what is no regular file, such
  /// as a FIFO, throws InputError.
  File(const std::filesystem::path& path, int flags, Access access = Access::by_umask);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::uint64_t size() const;
  /// Reads up to `size` bytes; fewer only at the end of the file.
  std::size_t read_at(std::uint64_t offset, char* to, std::size_t size) const;
  void write_at(std::uint64_t offset, std::string_view bytes);
  void write(std::string_view bytes);  // behind what was written before: also into what has no offsets
  void set_mode(mode_t mode);
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

inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{4} << 30;

/// A whole file. Throws IoError, and InputError for one that is larger than `max_bytes` or no regular file.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = kMaxFileBytes);

/// A file that is written piece by piece. Readers see the old file or the new one, whole, also after a crash:
/// temporary + fsync + rename + directory fsync. The temporary is a new file of a name that nobody can foresee. A link
/// stays, and what it points to is replaced; a file that was there keeps its mode. What is no regular file (a device, a
/// FIFO, /dev/stdout wherever that leads) is never replaced but written to, piece by piece.
class AsideFile {
 public:
  /// Throws IoError where `path` could not be written; the other two as well.
  explicit AsideFile(const std::filesystem::path& path, Access access = Access::by_umask);
  /// Removes the temporary of a file that was not put in place.
  ~AsideFile();
  AsideFile(const AsideFile&) = delete;
  AsideFile& operator=(const AsideFile&) = delete;

  void append(std::string_view bytes);
  void put_in_place();

 private:
  std::filesystem::path path_;    // as it was asked for, for messages
  std::filesystem::path target_;  // what is replaced: no link
  std::filesystem::path aside_;   // empty where nothing is replaced
  std::optional<File> file_;
};

/// A whole file at once, as AsideFile does it.
void write_aside(const std::filesystem::path& path, std::string_view bytes, Access access = Access::by_umask);
/// Ends the names of temporaries that write_aside leaves when it is killed.
inline constexpr std::string_view kAsideSuffix = ".aside";

/// Makes a folder that its owner alone may enter, and those above it that are missing. One that is there stays as it
/// is: who made it with other rights wants others to read what is put there. Throws IoError.
void make_private_directories(const std::filesystem::path& path);
/// Makes a folder with the rights of the one that it is in, unless it is there. Throws IoError.
void make_directory_like_its_parent(const std::filesystem::path& path);
void sync_directory(const std::filesystem::path& path);  // makes new names in it last

/// Names of the entries of a directory, sorted.
std::vector<std::string> list_directory(const std::filesystem::path& path);

/// Hexadecimal digits that nobody can foretell, an even number of them. Throws IoError where the system has none.
std::string random_hex_digits(std::size_t count);

/// The host's name with everything but letters, digits, '.' and '-' replaced: fit for a file name.
std::string host_name();

}  // namespace manyworlds::io
