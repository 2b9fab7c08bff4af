#include "io/file.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/error.hpp"

namespace manyworlds::io {

using core::IoError;
namespace fs = std::filesystem;

File::File(const fs::path& path, int flags) : path_(path.string()) {
  descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw IoError((flags & O_CREAT) ? "create" : "open", path_);
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
    const auto got = ::pread(descriptor_, to + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError("read", path_);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void File::write_at(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto put = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw IoError("write", path_);
    bytes.remove_prefix(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
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

std::string read_file(const fs::path& path) {
  const File file(path, O_RDONLY);
  std::string bytes;
  std::array<char, 65536> buffer;
  while (const std::size_t got = file.read_at(bytes.size(), buffer.data(), buffer.size()))
    bytes.append(buffer.data(), got);
  return bytes;
}

AsideFile::AsideFile(const fs::path& path) : path_(path), aside_(path) {
  aside_ += fmt::format(".{}{}", ::getpid(), kAsideSuffix);
  try {
    file_.emplace(aside_, O_WRONLY | O_CREAT | O_TRUNC);
  } catch (const IoError& error) {
    throw IoError("write", path_.string(), error.code);  // of the file asked for, not of the temporary
  }
}

AsideFile::~AsideFile() {
  if (file_) ::unlink(aside_.c_str());
}

void AsideFile::append(std::string_view bytes) {
  try {
    file_->write_at(size_, bytes);
  } catch (const IoError& error) {
    throw IoError("write", path_.string(), error.code);
  }
  size_ += bytes.size();
}

void AsideFile::put_in_place() {
  try {
    file_->sync_data();
    file_->close();
    if (::rename(aside_.c_str(), path_.c_str()) != 0) throw IoError("put in place", path_.string());
  } catch (const IoError& error) {
    throw IoError("write", path_.string(), error.code);
  }
  file_.reset();
  sync_directory(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
}

void write_aside(const fs::path& path, std::string_view bytes) {
  AsideFile file(path);
  file.append(bytes);
  file.put_in_place();
}

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw IoError("create directory", path.string(), error.value());
  if (!fs::is_directory(path, error)) throw IoError("create directory", path.string(), ENOTDIR);
}

void sync_directory(const fs::path& path) {
  const File directory(path, O_RDONLY | O_DIRECTORY);
  // File systems that cannot sync a directory say EINVAL; their renames are as durable as they can be.
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

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) throw IoError("read", "the host's name");
  std::string fit(name.data());
  for (char& c : fit)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '-';
  return fit;
}

}  // namespace manyworlds::io
