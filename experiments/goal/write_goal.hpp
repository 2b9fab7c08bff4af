// Programs as GOAL, which LogGOPSim and ATLAHS run.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "core/collective/dag/algorithm.hpp"
#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::goal {

/// The algorithms by whose transfers collectives are written, as GOAL has none of its own.
struct GoalAlgorithms {
  core::collective::Algorithm all_reduce = core::collective::Algorithm::ring;  // all-gathers and reduce-scatters too
  core::collective::Algorithm all_to_all = core::collective::Algorithm::pairwise;
  core::collective::Algorithm broadcast = core::collective::Algorithm::binomial_tree;  // and reduce
};

/// Writes the text of programs, line by line: kernels and copies as calc of whole nanoseconds on a cpu for each stream,
/// transfers as send and recv with tags of their own, collectives as the transfers of an algorithm with their
/// dependencies between a calc 0 that begins and one that ends them. Streams are stated by requires. Throws InputError
/// for kernels and copies with no time, for more than 256 streams, 4,095 dimensions or 100,000,000 lines, and for an
/// algorithm that does not do a kind, has switches, or has a member wait for a transfer of others; what came before is
/// written then. Returns what the text does not say, or not so, a line each.
std::vector<std::string> write_goal(std::ostream& out, const programs::StreamPrograms& programs,
                                    const std::string& name, const GoalAlgorithms& algorithms = {});

/// Returns that text.
std::string goal_text(const programs::StreamPrograms& programs, const std::string& name,
                      const GoalAlgorithms& algorithms = {});

}  // namespace manyworlds::experiments::goal
