// Files: an RAII handle that turns every failed system call into an IoError with the file's path, the atomic
// replacement of a whole file (write a temporary, sync, rename), and the permissions of new files.
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
  by_umask,   // the process's umask decides, as for any file that a user asks for
  by_folder,  // the permissions of the containing folder, without write for others: files of a run
};

class File {
 public:
  /// Opens `path` with the `flags` of open(2) and close-on-exec. Opening for reading never blocks: a path that is not a
  /// regular file, such as a FIFO, throws InputError. Throws IoError.
  File(const std::filesystem::path& path, int flags, Access access = Access::by_umask);
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::uint64_t size() const;
  /// Reads up to `size` bytes and returns how many; it is fewer only at the end of the file.
  std::size_t read_at(std::uint64_t offset, char* to, std::size_t size) const;
  void write_at(std::uint64_t offset, std::string_view bytes);
  void write(std::string_view bytes);  // appends after the previous write; also for files without offsets
  void set_mode(mode_t mode);
  void truncate(std::uint64_t size);
  void sync_data();  // fdatasync: the bytes are on the disk when it returns
  /// Takes an exclusive flock(2), which lasts until the file is closed or its process dies; it holds on every host that
  /// sees the file if the file system supports that. Returns false when another process has the lock.
  bool try_lock();
  bool linked() const;  // whether the file still has a name
  void close();         // like the destructor, but throws what close(2) reports

 private:
  int descriptor_ = -1;
  std::string path_;
};

inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{4} << 30;

/// Returns the content of a file. Throws IoError, and InputError for a file that is larger than `max_bytes` or not
/// regular.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = kMaxFileBytes);

/// A file that is written in pieces and replaced atomically. Readers see either the old content or the new one,
/// complete, also after a crash: temporary file, fsync, rename, directory fsync. The temporary has an unpredictable
/// name. A symbolic link is kept and its target is replaced; an existing file keeps its mode. A target that is not a
/// regular file (a device, a FIFO, whatever /dev/stdout leads to) is never replaced: the pieces are written into it.
class AtomicFile {
 public:
  /// Throws IoError where `path` cannot be written; so do the other two functions.
  explicit AtomicFile(const std::filesystem::path& path, Access access = Access::by_umask);
  /// Removes the temporary of a file that was not committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void append(std::string_view bytes);
  void commit();

 private:
  std::filesystem::path path_;       // as requested, for messages
  std::filesystem::path target_;     // the file that is replaced, with links resolved
  std::filesystem::path temporary_;  // empty where nothing is replaced
  std::optional<File> file_;
};

/// Writes a whole file at once through AtomicFile.
void write_atomically(const std::filesystem::path& path, std::string_view bytes, Access access = Access::by_umask);
/// Suffix of the temporaries that write_atomically() leaves behind when its process is killed.
inline constexpr std::string_view kTemporarySuffix = ".tmp";

/// Creates a folder that only its owner may enter, and its missing parents. An existing folder keeps its permissions:
/// whoever created it with others wants the content to be readable. Throws IoError.
void make_private_directories(const std::filesystem::path& path);
/// Creates a folder with the permissions of its parent unless it exists. Throws IoError.
void make_directory_like_its_parent(const std::filesystem::path& path);
void sync_directory(const std::filesystem::path& path);  // makes new names in the directory durable

/// Returns the names of a directory's entries, sorted.
std::vector<std::string> list_directory(const std::filesystem::path& path);

/// Returns `count` unpredictable hexadecimal digits; `count` is even. Throws IoError where the system has no
/// randomness.
std::string random_hex_digits(std::size_t count);

/// Returns the host's name with every character but letters, digits, '.' and '-' replaced, for use in file names.
std::string host_name();

}  // namespace manyworlds::io
