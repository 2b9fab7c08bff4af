// The store as a run uses it. A run can do without, so an error of the store does not end it: the run continues without
// the store and says so once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "farm/run/run_job.hpp"
#include "io/log/store.hpp"

namespace manyworlds::farm {

class RunStore {
 public:
  /// Opens the store that `options.store` names; "none" is an empty store.
  RunStore(const RunOptions& options, std::string_view fingerprint);

  std::optional<std::string> get(const core::sharing::Key& key, const io::Store::Validator& holds);
  void put(const core::sharing::Key& key, std::string_view bytes);
  void sync_if_due();
  /// Ends the use of the store: evicts entries beyond the limit and reports damaged ones.
  void close();

 private:
  template <class Action>
  void guarded(const char* consequence, Action action);

  std::filesystem::path directory_;
  std::uint64_t limit_bytes_;
  std::unique_ptr<io::Store> store_;  // null: no store
  bool writable_ = true;
};

}  // namespace manyworlds::farm
