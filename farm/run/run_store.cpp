#include "farm/run/run_store.hpp"

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "farm/system/console.hpp"
#include "io/log/store_maintenance.hpp"

namespace manyworlds::farm {

template <class Action>
void RunStore::guarded(const char* consequence, Action action) {
  try {
    action();
  } catch (const core::IoError& error) {
    writable_ = false;
    print_message("manyworlds: {}; {}\n", error.what(), consequence);
  }
}

RunStore::RunStore(const RunOptions& options, std::string_view fingerprint) : limit_bytes_(options.store_limit_bytes) {
  if (options.store == "none") return;
  directory_ = io::store_directory(options.store);
  guarded("going on without a store", [&] { store_ = std::make_unique<io::Store>(directory_, fingerprint); });
}

std::optional<std::string> RunStore::get(const core::sharing::Key& key, const io::Store::Validator& holds) {
  return store_ ? store_->get(key, holds) : std::nullopt;
}

void RunStore::put(const core::sharing::Key& key, std::string_view bytes) {
  if (store_ && writable_) guarded("going on without keeping results in the store", [&] { store_->put(key, bytes); });
}

void RunStore::sync_if_due() {
  if (store_ && writable_) guarded("going on without keeping results in the store", [&] { store_->sync_if_due(); });
}

void RunStore::close() {
  if (!store_) return;
  for (const auto& [path, invalid_records] : store_->invalid_records()) print_lines(invalid_records.describe(path));
  if (const auto damaged = store_->damaged(); damaged > 0)
    print_message(
        "manyworlds: {} damaged {} in the store, computed again where needed; `{}` names the files\n", damaged,
        damaged == 1 ? "place" : "places",
        core::shell_line({"manyworlds", "store", "verify", "--store", core::as_operand(directory_.string())}));
  if (!writable_) return;
  guarded("what this run computed last may be missing in the store", [&] { store_->close(); });
  guarded("the store may be larger than its limit", [&] { io::prune_with_components(directory_, limit_bytes_); });
}

}  // namespace manyworlds::farm
