// What a step will ask of the network, told without building its world: what it is known by, the collectives it may
// ask for, and how much there is of it. Worlds that differ in fabric or transport alone have their operations in
// common.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/step/world/layout.hpp"

namespace manyworlds::core::step {

/// Collectives by the class and role of the rank that enters them, in the order in which a program first does.
class Operations {
 public:
  explicit Operations(const Configuration& configuration);

  struct Operation {
    collective::Kind kind = collective::Kind::all_reduce;
    std::int64_t bytes = 0;
    collective::Split split;
    std::uint64_t times = 0;
  };
  const std::vector<Operation>& of(const GroupKind& group) const {
    return by_class_[group.rank_class][static_cast<std::size_t>(group.role)];
  }
  std::uint64_t in_program(std::uint32_t rank_class) const { return in_programs_[rank_class]; }  // kernels included

 private:
  std::vector<std::array<std::vector<Operation>, workload::kRoles>> by_class_;
  std::vector<std::uint64_t> in_programs_;  // by class
};

/// The key of everything that Operations depend on.
sharing::Key operations_key(const Configuration& configuration);

struct Outline {
  struct Collective {
    sharing::Key key;
    std::uint32_t use = 0;  // in World::uses()
    std::size_t transfers = 0;
    std::uint32_t members = 0;
  };
  /// The key of the whole step: what its programs are made from, and every route its communicators use, renamed. Two
  /// configurations with one key are one world, whatever the rest of their fabrics looks like.
  sharing::Key step;
  std::vector<Collective> collectives;  // distinct ones, by first use
  std::uint64_t instances = 0;          // collectives that one step runs
  double cost = 0;                      // counts what every rank runs, and transfers that are likely to meet others
};

Outline outline_of(const Configuration& configuration, const Operations& operations, Layout& layout, Dags& dags);

}  // namespace manyworlds::core::step
