// The store as a run uses it. The run does not need it, so nothing that is wrong with a store ends a run: it goes on
// without, and says so once.
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
  /// Of options.store; `none` is a store without anything in it.
  RunStore(const RunOptions& options, std::string_view fingerprint);

  std::optional<std::string> get(const core::sharing::Key& key, const io::Store::Holds& holds);
  void put(const core::sharing::Key& key, std::string_view bytes);
  void sync_if_due();
  /// At the end of a run: evicts what the limit does not leave room for, and tells what was damaged.
  void close();

 private:
  template <class Action>
  void guarded(const char* consequence, Action action);

  std::filesystem::path directory_;
  std::uint64_t limit_bytes_;
  std::unique_ptr<io::Store> store_;  // null: none
  bool writable_ = true;
};

}  // namespace manyworlds::farm
