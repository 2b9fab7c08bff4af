// The folders that a run writes: whether files can be made, locked, synchronised and renamed there, and the space left.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "core/base/error.hpp"
#include "farm/doctor/finding.hpp"
#include "farm/system/size_text.hpp"
#include "io/log/file.hpp"
#include "io/log/store.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::doctor {

namespace {

namespace fs = std::filesystem;
using State = Finding::State;

constexpr std::uint64_t kMinRunBytes = std::uint64_t{256} << 20;  // a journal, results, a report
constexpr std::uint64_t kMinTemporaryBytes = std::uint64_t{16} << 20;

/// Returns the folder, or the nearest one above it that exists.
fs::path nearest_existing(const fs::path& folder) {
  fs::path path = fs::absolute(folder).lexically_normal();
  std::error_code ignored;
  while (!fs::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return path;
}

/// Returns the name of the kind of file system; "" for one that is not listed. The numbers are those of statfs(2).
std::string file_system(const fs::path& folder) {
  struct Kind {
    std::uint32_t number;
    const char* name;
  };
  constexpr Kind kKinds[] = {{0x6969, "NFS"},        {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},
                             {0x19830326, "BeeGFS"}, {0x00C36400, "CephFS"}, {0x01021994, "tmpfs, in memory"},
                             {0xEF53, "ext4"},       {0x58465342, "XFS"},    {0x9123683E, "Btrfs"},
                             {0x794C7630, "overlay"}};
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0) return "";
  for (const Kind& kind : kKinds)
    if (kind.number == static_cast<std::uint32_t>(status.f_type)) return kind.name;
  return "";
}

/// A folder below another that is removed with this object.
class TrialFolder {
 public:
  explicit TrialFolder(const fs::path& parent) {
    std::string name = (parent / ".manyworlds-doctor-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw core::IoError("make a folder in", parent.string());
    path_ = name;
  }
  ~TrialFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// What a run does with its files, each of which may fail on a network file system. Throws IoError.
void try_files(const fs::path& folder) {
  const TrialFolder trial(folder);
  io::File first(trial.path() / "first", O_CREAT | O_RDWR);
  first.write("a record\n");
  first.sync_data();
  if (!first.try_lock()) throw core::IoError("lock", first.path(), EWOULDBLOCK);
  io::File second(trial.path() / "first", O_RDWR);
  if (second.try_lock()) throw core::IoError("hold others off with a lock of", first.path(), ENOLCK);
  io::AtomicFile replaced(trial.path() / "second");
  replaced.append("a record\n");
  replaced.commit();
}

/// The finding of `folder`, after `examine` did not throw and the space suffices.
Finding examine_folder(std::string name, const fs::path& folder, std::uint64_t min_bytes, const std::string& advice,
                       const std::function<void(const fs::path&)>& examine) {
  Finding finding{State::ok, std::move(name), folder.string()};
  try {
    const fs::path existing = nearest_existing(folder);
    if (existing != fs::absolute(folder).lexically_normal())
      finding.found = fmt::format("{} would be made in {}", folder.string(), existing.string());
    examine(existing);
    const std::uint64_t available = fs::space(existing).available;
    const std::string kind = file_system(existing);
    finding.found += fmt::format(": {} free{}", size_text(available), kind.empty() ? "" : fmt::format(" ({})", kind));
    if (available >= min_bytes) return finding;
    finding.found += fmt::format(", less than {}", size_text(min_bytes));
  } catch (const core::IoError& error) {
    finding.found += fmt::format(": {}", error.what());
  } catch (const core::InputError& error) {
    finding.found += fmt::format(": {}", error.what());
  } catch (const fs::filesystem_error& error) {
    finding.found += fmt::format(": {}", error.code().message());
  }
  finding.state = State::broken;
  finding.advice = advice;
  return finding;
}

Finding examine_store() {
  Finding finding{State::ok, "store", "none", "set HOME or XDG_CACHE_HOME, or give a folder with --store", true};
  try {
    return examine_folder("store", io::default_store_directory(), kMinRunBytes,
                          "give another folder with --store, or --store none", try_files);
  } catch (const core::InputError& error) {
    finding.state = State::broken;
    finding.found = error.what();
  }
  return finding;
}

/// Writes a table into a results file and reads it again; HDF5 reads in a process of its own.
void try_results(const fs::path& folder) {
  const TrialFolder trial(folder);
  io::Results written;
  for (const auto& [name, type] : io::required_columns()) {
    io::Column column{std::string(name), "", "a column that is tried", {}};
    if (type == io::ElementType::integer) column.values = std::vector<std::int64_t>{1};
    if (type == io::ElementType::real) column.values = std::vector<double>{1};
    if (type == io::ElementType::text) column.values = std::vector<std::string>{"pending"};
    written.experiments.columns.push_back(std::move(column));
  }
  io::write_results(trial.path() / "results.h5", written);
  io::read_results(trial.path() / "results.h5");
}

}  // namespace

std::vector<Finding> examine_folders(const fs::path& runs) {
  const char* chosen = std::getenv("TMPDIR");
  const fs::path temporary = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  std::vector<Finding> findings{
      examine_folder("runs", runs, kMinRunBytes, "give a folder of a disk that serves as the run directory (-o)",
                     try_files),
      examine_store(),
      examine_folder("temporary", temporary, kMinTemporaryBytes,
                     "set TMPDIR to a folder that can be written and has space", [&](const fs::path& existing) {
                       if (existing != fs::absolute(temporary).lexically_normal())
                         throw core::IoError("find", temporary.string(), ENOENT);
                       try_files(existing);
                     })};
  Finding results =
      examine_folder("HDF5", runs, 0, "HDF5_USE_FILE_LOCKING=FALSE helps where a disk has no locks", try_results);
  if (results.state == State::ok) results.found = fmt::format("{}: a file was written and read", io::hdf5_version());
  findings.push_back(std::move(results));
  return findings;
}

}  // namespace manyworlds::farm::doctor
