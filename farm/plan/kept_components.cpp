#include "farm/plan/kept_components.hpp"

#include <limits>

#include "core/base/error.hpp"

namespace manyworlds::farm {
namespace {

constexpr std::chrono::seconds kRefreshInterval{1};
// Nothing is lost but time if a power failure takes what was kept, so the disk need not have it at once.
constexpr io::SyncPolicy kSync{std::chrono::hours(1), std::numeric_limits<std::uint64_t>::max()};
constexpr std::uint64_t kSegmentBytes = std::uint64_t{16} << 20;

}  // namespace

template <class Action>
void KeptComponents::guarded(Action action) {
  try {
    action();
  } catch (const core::IoError&) {
    failed_ = true;
  }
}

KeptComponents::~KeptComponents() {
  if (store_ && !failed_) guarded([&] { store_->close(); });
}

std::optional<std::string> KeptComponents::find(const core::sharing::Key& key) {
  std::optional<std::string> found;
  if (!store_ || failed_) return found;
  guarded([&] {
    found = store_->get(key);
    if (found) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - refreshed_ < kRefreshInterval) return;
    store_->refresh();
    refreshed_ = std::chrono::steady_clock::now();
    found = store_->get(key);
  });
  return found;
}

void KeptComponents::keep(const core::sharing::Key& key, const std::string& outcome) {
  if (failed_) return;
  guarded([&] {
    if (!store_)
      store_ = std::make_unique<io::Store>(directory_, core::sharing::build_fingerprint(),
                                           io::StoreOptions{kSync, kSegmentBytes});
    if (store_->bytes() < 2 * io::kMaxComponentBytes) store_->put(key, outcome);
  });
}

}  // namespace manyworlds::farm
