// The table of the sub-simulations of one kind (kernels, collectives, episodes) that the steps of a sweep used.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/sharing/key.hpp"
#include "core/step/run/result.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

class SubsimulationTable {
 public:
  /// Adds what one step used, for as many experiments as have that step.
  void add(const std::vector<core::step::SubsimulationUse>& used, std::uint32_t experiments);
  /// Returns one row for each sub-simulation, by key.
  io::Table table() const;

 private:
  struct Entry {
    std::string parameters;
    std::int64_t result_ps, used_by;
  };
  std::map<core::sharing::Key, Entry> by_key_;
};

}  // namespace manyworlds::farm
