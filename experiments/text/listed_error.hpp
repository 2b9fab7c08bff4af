// Bad input with several faults.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"

namespace manyworlds::experiments {

/// The message is one short line, as that of any other error of a user; the items tell each of the faults, and are
/// printed below it.
class ListedError : public core::InputError {
 public:
  ListedError(std::string what, std::string file, int line, std::vector<std::string> items)
      : InputError(std::move(what), std::move(file), line), items_(std::move(items)) {}

  const std::vector<std::string>& items() const { return items_; }

 private:
  std::vector<std::string> items_;
};

}  // namespace manyworlds::experiments
