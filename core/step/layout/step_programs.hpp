// The programs of a step and the collectives in them: the one numbering of collectives that planning, compiling and
// running a step share.
#pragma once

#include <cstdint>
#include <vector>

#include "core/step/layout/rank_layout.hpp"
#include "core/workload/program/program.hpp"

namespace manyworlds::core::step {

/// Builds the program of each class of ranks, or returns those that are given, of which each is a class.
std::vector<workload::Program> build_programs(const Configuration& configuration,
                                              const std::vector<workload::RankClass>& classes);

/// Returns the kernels that a rank of a class runs.
std::vector<workload::KernelUse> kernels_of(const Configuration& configuration, const workload::RankClass& rank_class);

/// Writes a kernel's shape, which is all that its time on a GPU depends on, and its name.
void write_kernel(sharing::KeyWriter& writer, const compute::Kernel& kernel);

/// Returns whether ranks wait for each other between two steps; otherwise each has a step of its own, from its own
/// first kernel on.
bool are_synchronised(const Configuration& configuration);

/// A collective as a program asks for it.
struct Operation {
  collective::Kind kind = collective::Kind::all_reduce;
  std::int64_t bytes = 0;
  collective::Split split;
  std::uint64_t times = 0;  // in one program
  bool operator==(const Operation&) const = default;
};

/// The collectives of one role in a program. A program repeats few distinct operations very often.
struct OperationSequence {
  std::vector<Operation> distinct;       // in order of first occurrence
  std::vector<std::uint32_t> ops;        // the collectives in issue order, as indices in Program::ops
  std::vector<std::uint32_t> operation;  // the operation of each, as index in `distinct`
};
using SequencesByRole = std::vector<OperationSequence>;
SequencesByRole sequences_of(const workload::Program& program);

/// The shapes that operations of a kind of groups get. Operations with different splits may get the same shape.
struct ShapedOperations {
  std::vector<collective::Shape> shapes;  // distinct ones, in order of first occurrence
  std::vector<std::uint32_t> shape_of;    // by operation: index in `shapes`
};
ShapedOperations shaped(const Configuration& configuration, const GroupKind& kind,
                        const std::vector<Operation>& operations);

}  // namespace manyworlds::core::step
