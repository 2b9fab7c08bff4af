// Components of flows that the simulators of any run have computed, in a folder of the store: those of one run find
// what the others have found a second later, and later runs all of it. A simulator can do without, so an error of the
// folder only ends its use.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/sharing/keeper.hpp"
#include "io/log/store.hpp"

namespace manyworlds::farm {

class KeptComponents final : public core::sharing::Keeper {
 public:
  /// The folder is opened when the first component is kept: short runs never look.
  explicit KeptComponents(std::filesystem::path directory) : directory_(std::move(directory)) {}
  ~KeptComponents() override;

  std::optional<std::string> find(const core::sharing::Key& key) override;
  void keep(const core::sharing::Key& key, const std::string& outcome) override;

 private:
  template <class Action>
  void guarded(Action action);

  std::filesystem::path directory_;
  std::unique_ptr<io::Store> store_;  // null: not open
  bool failed_ = false;
  std::chrono::steady_clock::time_point refreshed_;
};

}  // namespace manyworlds::farm
