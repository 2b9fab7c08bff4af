// What an export says of the machine: the names of GPUs, kinds of memory, and when its clock began.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "experiments/nsys/database.hpp"

namespace manyworlds::experiments::nsys {

class GpuNames {
 public:
  explicit GpuNames(const Database& database);

  /// Returns the name of a GPU by the process's own number of it; empty if the export does not tell.
  std::string name_of(std::int64_t process, std::int64_t device) const;

 private:
  std::map<std::int64_t, std::string> names_;                                   // by the machine's number
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> of_processes_;  // the machine's number
};

/// Which kinds of memory are pageable, as a table of the export says.
class MemoryKinds {
 public:
  explicit MemoryKinds(const Database& database);
  bool is_pageable(std::optional<std::int64_t> kind) const { return kind && pageable_.contains(*kind); }

 private:
  std::set<std::int64_t> pageable_;
};

/// Returns the name of a copy as PyTorch's profiler has it, which says its direction and whether its memory is
/// pageable.
std::string name_of_copy(std::int64_t copy_kind, bool is_pageable);

/// Returns the time at which an export's clock is 0, in nanoseconds of the epoch; 0 if it does not tell.
std::int64_t clock_base(const Database& database);

}  // namespace manyworlds::experiments::nsys
