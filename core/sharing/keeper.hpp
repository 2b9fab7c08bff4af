// Where results are kept for other processes and for later runs.
#pragma once

#include <optional>
#include <string>

#include "core/sharing/key.hpp"

namespace manyworlds::core::sharing {

/// A key determines its result, so that what is found has the same bytes as what would be computed. What was kept may
/// be lost at any time, and what is found may be damaged.
class Keeper {
 public:
  virtual ~Keeper() = default;
  /// Returns what anybody has kept under a key.
  virtual std::optional<std::string> find(const Key& key) = 0;
  virtual void keep(const Key& key, const std::string& result) = 0;
};

}  // namespace manyworlds::core::sharing
