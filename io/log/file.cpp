#include "io/log/file.hpp"

#include <linux/magic.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::io {

using core::IoError;
namespace fs = std::filesystem;

namespace {

constexpr mode_t kAllPermissions = 0777, kByUmask = 0666, kOwner = 0600, kOwnFolder = 0700, kFolderAbove = 0755;

constexpr std::size_t kRandomDigits = 16;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// Returns the mode of a new file at `path`, before the umask. In a sticky folder such as /tmp, where others may create
/// files but not replace ours, others get no write permission either.
mode_t new_mode(const fs::path& path, Access access) {
  if (access == Access::by_umask) return kByUmask;
  struct stat folder {};
  if (::stat(folder_of(path).c_str(), &folder) != 0) return kOwner;
  return kOwner | (folder.st_mode & ((folder.st_mode & S_ISVTX) != 0 ? 0044 : 0064));
}

/// Returns whether a link lies in procfs: the kernel makes such links up, and their target may have no path at all.
bool in_procfs(const fs::path& path) {
  struct statfs system {};
  return ::statfs(folder_of(path).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

struct Target {
  fs::path path;
  bool replaced = true;        // false: the bytes are written into the existing file
  std::optional<mode_t> mode;  // mode of the existing file
};

/// Returns the file that a write to `path` reaches once symbolic links are followed. Throws IoError.
Target target_of(const fs::path& path) {
  constexpr int kMaxLinks = 40;  // the kernel's limit
  Target target{path, true, {}};
  for (int links = 0; links < kMaxLinks; ++links) {
    struct stat status {};
    if (::lstat(target.path.c_str(), &status) != 0) {
      if (errno == ENOENT) return target;
      throw IoError("write", path.string());
    }
    target.replaced = S_ISREG(status.st_mode);
    target.mode = status.st_mode & kAllPermissions;
    if (!S_ISLNK(status.st_mode) || in_procfs(target.path)) return target;
    std::error_code error;
    const fs::path next = fs::read_symlink(target.path, error);
    if (error) throw IoError("write", path.string(), error.value());
    target = {folder_of(target.path) / next, true, {}};
  }
  throw IoError("write", path.string(), ELOOP);
}

void make_directory(const fs::path& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) return;
  const int code = errno;
  std::error_code ignored;
  if (code == EEXIST && fs::is_directory(path, ignored)) return;
  throw IoError("create directory", path.string(), code == EEXIST ? ENOTDIR : code);
}

}  // namespace

File::File(const fs::path& path, int flags, Access access) : path_(path.string()) {
  const bool reads_file = (flags & (O_ACCMODE | O_DIRECTORY)) == O_RDONLY;
  descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC | (reads_file ? O_NONBLOCK : 0),
                       (flags & O_CREAT) != 0 ? new_mode(path, access) : 0);
  if (descriptor_ < 0) throw IoError((flags & O_CREAT) ? "create" : "open", path_);
  struct stat status {};
  if (!reads_file || (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode))) return;
  ::close(std::exchange(descriptor_, -1));
  if (S_ISDIR(status.st_mode)) throw IoError("read", path_, EISDIR);
  throw core::InputError("is no regular file", path_);
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

std::uint64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw IoError("examine", path_);
  return static_cast<std::uint64_t>(status.st_size);
}

std::size_t File::read_at(std::uint64_t offset, char* to, std::size_t size) const {
  std::size_t done = 0;
  while (done < size) {
    const auto bytes_read = ::pread(descriptor_, to + done, size - done, static_cast<off_t>(offset + done));
    if (bytes_read < 0 && errno == EINTR) continue;
    if (bytes_read < 0) throw IoError("read", path_);
    if (bytes_read == 0) break;
    done += static_cast<std::size_t>(bytes_read);
  }
  return done;
}

void File::write_at(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw IoError("write", path_);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void File::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw IoError("write", path_);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void File::set_mode(mode_t mode) {
  if (::fchmod(descriptor_, mode) != 0) throw IoError("set the mode of", path_);
}

void File::truncate(std::uint64_t size) {
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) throw IoError("truncate", path_);
}

void File::sync_data() {
  // Some special files (pipes, /dev/null) cannot be synced and need not be.
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) throw IoError("sync", path_);
}

bool File::try_lock() {
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK) throw IoError("lock", path_);
  return false;
}

bool File::linked() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw IoError("examine", path_);
  return status.st_nlink > 0;
}

void File::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0) throw IoError("close", path_);
}

std::string read_file(const fs::path& path, std::uint64_t max_bytes) {
  const File file(path, O_RDONLY);
  if (const auto size = file.size(); size > max_bytes)
    throw core::InputError(fmt::format("of {} bytes, is larger than the {} that it may have", size, max_bytes),
                           path.string());
  std::string bytes;
  std::array<char, 65536> buffer;
  while (const std::size_t bytes_read = file.read_at(bytes.size(), buffer.data(), buffer.size()))
    bytes.append(buffer.data(), bytes_read);
  return bytes;
}

AtomicFile::AtomicFile(const fs::path& path, Access access) : path_(path) {
  const Target target = target_of(path);
  target_ = target.path;
  try {
    if (!target.replaced) {
      file_.emplace(target_, O_WRONLY | O_APPEND);
      return;
    }
    temporary_ = target_;
    temporary_ += fmt::format(".{}{}", random_hex_digits(kRandomDigits), kTemporarySuffix);
    file_.emplace(temporary_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, access);
    if (target.mode && access == Access::by_umask) file_->set_mode(*target.mode);
  } catch (const IoError& error) {
    throw IoError("write", path_.string(), error.code);  // names the requested file, not the temporary
  }
}

AtomicFile::~AtomicFile() {
  if (file_ && !temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::append(std::string_view bytes) {
  try {
    file_->write(bytes);
  } catch (const IoError& error) {
    throw IoError("write", path_.string(), error.code);
  }
}

void AtomicFile::commit() {
  try {
    file_->sync_data();
    file_->close();
    if (!temporary_.empty() && ::rename(temporary_.c_str(), target_.c_str()) != 0)
      throw IoError("put in place", path_.string());
  } catch (const IoError& error) {
    throw IoError("write", path_.string(), error.code);
  }
  file_.reset();
  if (!temporary_.empty()) sync_directory(folder_of(target_));
}

void write_atomically(const fs::path& path, std::string_view bytes, Access access) {
  AtomicFile file(path, access);
  file.append(bytes);
  file.commit();
}

void make_private_directories(const fs::path& path) {
  const fs::path directory = (path / "").parent_path();  // without the trailing slash
  std::error_code ignored;
  std::vector<fs::path> missing;
  for (fs::path at = directory; !at.empty() && !fs::exists(at, ignored); at = at.parent_path()) missing.push_back(at);
  if (missing.empty()) return make_directory(directory, kOwnFolder);  // throws where `path` exists but is not a folder
  for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder)
    make_directory(*folder, *folder == directory ? kOwnFolder : kFolderAbove);
}

void make_directory_like_its_parent(const fs::path& path) {
  struct stat parent {};
  if (::stat(folder_of(path).c_str(), &parent) != 0) throw IoError("create directory", path.string());
  make_directory(path, parent.st_mode & (kAllPermissions | S_ISVTX));
}

void sync_directory(const fs::path& path) {
  const File directory(path, O_RDONLY | O_DIRECTORY);
  // File systems that cannot sync a directory return EINVAL; their renames are as durable as they can be.
  if (::fsync(directory.descriptor()) != 0 && errno != EINVAL) throw IoError("sync directory", path.string());
}

std::vector<std::string> list_directory(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) throw IoError("list directory", path.string(), error.value());
  std::sort(names.begin(), names.end());
  return names;
}

std::string random_hex_digits(std::size_t count) {
  std::vector<unsigned char> bytes(count / 2);
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw IoError("read", "the system's random numbers");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) throw IoError("read", "the host's name");
  std::string file_safe(name.data());
  for (char& c : file_safe)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '-';
  return file_safe;
}

}  // namespace manyworlds::io
