// The groups of ranks that traces name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/workload/program/step_parts.hpp"
#include "experiments/chakra/trace.hpp"

namespace manyworlds::experiments::chakra {

/// Group 0 is of all ranks. Others are of ASTRA-sim's file, or of what ranks list themselves.
class CommGroups {
 public:
  explicit CommGroups(std::uint32_t ranks);

  /// Adds those of ASTRA-sim's file {"1": [0, 1], ...}, which hold for every rank. Throws InputError.
  void add_file(std::string_view text, const std::string& name);
  /// Adds those that a metadata node of PyTorch lists ([{"pg_name": "1", "pg_desc": "...", "ranks": [0, 1]}, ...]; no
  /// ranks: all). Returns whether the node lists any.
  bool add_listed(std::uint32_t rank, const TraceNode& node);

  /// Returns the group of a name as a rank knows it; "" and "0" are all ranks, as in ASTRA-sim.
  std::optional<std::uint32_t> find(std::uint32_t rank, const std::string& name) const;

  /// Returns the group of the ranks that differ from `rank` in some dimensions alone: those that are `involved`, of
  /// `sizes` ranks each.
  std::uint32_t around(std::uint32_t rank, const std::vector<std::uint32_t>& sizes, const std::vector<bool>& involved);
  /// Returns which dimensions the groups that around() made involve.
  const std::map<std::uint32_t, std::vector<bool>>& dimensions() const { return dimensions_; }

  const std::vector<std::vector<std::uint32_t>>& ranks() const { return groups_; }
  const std::vector<core::workload::StepPart>& exposed() const { return exposed_; }

 private:
  std::uint32_t add(const std::string& name, std::vector<std::uint32_t> ranks, core::workload::StepPart exposed);

  std::uint32_t count_;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::vector<core::workload::StepPart> exposed_;
  std::map<std::pair<std::string, std::vector<std::uint32_t>>, std::uint32_t> known_;
  std::map<std::uint32_t, std::vector<bool>> dimensions_;
  std::map<std::string, std::uint32_t> of_file_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> listed_;  // by rank and name
};

}  // namespace manyworlds::experiments::chakra
