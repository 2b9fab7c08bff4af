// The summary of a step, computed without compiling it: its key, the isolated collectives that it may need, and an
// estimate of its cost. Configurations that differ only in fabric or transport share their StepOperations.
#pragma once

#include <cstdint>
#include <vector>

#include "core/step/layout/dag_cache.hpp"
#include "core/step/layout/step_programs.hpp"

namespace manyworlds::core::step {

/// What the programs of a step do: their key, and the distinct collectives that they issue, by class of ranks and role
/// of the communicator, in the order of their first occurrence in the program.
class StepOperations {
 public:
  explicit StepOperations(const Configuration& configuration);

  const std::vector<Operation>& of(const GroupKind& group) const {
    return by_class_[group.rank_class][static_cast<std::size_t>(group.role)];
  }
  /// Returns the number of ops, kernels included, in the program of a class of ranks.
  std::uint64_t in_program(std::uint32_t rank_class) const { return in_programs_[rank_class]; }
  /// Returns the key of all operations of the programs and of the kernels in them: of what ranks do, whatever settings
  /// made them do it.
  const sharing::Key& key() const { return key_; }

 private:
  std::vector<std::vector<std::vector<Operation>>> by_class_;  // by class and role
  std::vector<std::uint64_t> in_programs_;                     // by class
  sharing::Key key_;
};

/// Writes the cables that fail, if there are any, by their numbers.
void write_failures(sharing::KeyWriter& writer, const LinkFailures& failures);

/// Returns the key of everything that the StepOperations of a configuration depend on.
sharing::Key operations_key(const Configuration& configuration);

struct StepSummary {
  struct Collective {
    sharing::Key key;
    collective::Shape shape;
    GroupId group;  // the first that runs it
    std::size_t transfers = 0;
  };
  /// The key of the whole step: its programs, and every route of its communicators with links renumbered. Two
  /// configurations with equal keys have the same results, whatever settings their programs come from, and whatever the
  /// rest of their fabrics.
  sharing::Key step;
  std::vector<Collective> collectives;  // distinct ones, in order of first use
  std::uint64_t instances = 0;          // number of collective instances in one step
  double cost = 0;  // relative: the ops of all ranks, and the transfers of data-parallel collectives
};

StepSummary summary_of(const Configuration& configuration, const StepOperations& operations, RankLayout& layout,
                       DagCache& dags);

}  // namespace manyworlds::core::step
