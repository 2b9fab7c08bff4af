#include "farm/check/own_table.hpp"

#include <cstdlib>
#include <thread>

#include "core/base/error.hpp"
#include "experiments/text/text.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm {
namespace {

namespace fs = std::filesystem;

constexpr auto kLockRetry = std::chrono::milliseconds(20);
constexpr int kLockTries = 500;
constexpr mode_t kOwnerOnly = 0600;

fs::path absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && fs::path(value).is_absolute() ? fs::path(value) : fs::path();
}

}  // namespace

fs::path own_table_path(const std::string& choice) {
  if (choice == "none") return {};
  if (!choice.empty()) return choice;
  // The XDG base directory specification: a relative XDG_DATA_HOME is ignored.
  if (const fs::path data = absolute_variable("XDG_DATA_HOME"); !data.empty()) return data / "manyworlds/measured.csv";
  if (const fs::path home = absolute_variable("HOME"); !home.empty())
    return home / ".local/share/manyworlds/measured.csv";
  return {};
}

std::vector<experiments::OwnStep> read_own_table(const fs::path& path) {
  if (path.empty() || !fs::exists(path)) return {};
  const std::string text = experiments::import::read_text(path.string(), experiments::import::kMaxTableBytes);
  return text.empty() ? std::vector<experiments::OwnStep>()
                      : experiments::read_own_steps(experiments::import::parse_csv(text, path.string()));
}

void learn(const fs::path& path, const experiments::OwnStep& step, const experiments::Settings& settings,
           const experiments::ExperimentConfig& config) {
  if (!path.parent_path().empty()) fs::create_directories(path.parent_path());
  io::File lock(path.string() + ".lock", O_RDWR | O_CREAT);
  lock.set_mode(kOwnerOnly);
  for (int tries = 0; !lock.try_lock(); ++tries) {
    if (tries == kLockTries)
      throw core::InputError("another process has held its lock for 10 s; try again", path.string());
    std::this_thread::sleep_for(kLockRetry);
  }
  // An existing file keeps its mode when it is replaced.
  if (!fs::exists(path)) io::File(path, O_RDWR | O_CREAT).set_mode(kOwnerOnly);
  const std::string before = experiments::import::read_text(path.string(), experiments::import::kMaxTableBytes);
  io::write_atomically(path, with_own_step(before, path.string(), step, settings, config));
}

}  // namespace manyworlds::farm
