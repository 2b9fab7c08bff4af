#include "experiments/programs/check_communication.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::experiments::programs {
namespace {

using Calls = std::vector<const Communication*>;

/// What a program does in each dimension, as a member or a sender, and as a receiver.
class ProgramCalls {
 public:
  ProgramCalls(const RankProgram& program, std::size_t dimensions) : by_end_{} {
    for (std::vector<Calls>& of_dimension : by_end_) of_dimension.resize(dimensions);
    for (const StreamOp& op : program.ops)
      if (const auto* call = std::get_if<Communication>(&op.work))
        by_end_[call->receives ? 1 : 0].at(call->dimension).push_back(call);
  }
  const Calls& of(std::uint32_t dimension, bool receives) const { return by_end_[receives ? 1 : 0][dimension]; }

 private:
  std::array<std::vector<Calls>, 2> by_end_;
};

std::string text_of(const Communication& call) {
  return fmt::format("{} of {} bytes{}", core::collective::name_of(call.kind), call.bytes,
                     call.split.bytes.empty() ? "" : ", divided unevenly");
}

bool is_same(const Communication& one, const Communication& other) {
  return one.kind == other.kind && one.bytes == other.bytes && one.split == other.split;
}

/// Returns how two members differ; empty if they do not.
std::string difference(const Calls& one, const Calls& other) {
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i)
    if (!is_same(*one[i], *other[i]))
      return fmt::format("number {} there is {} of the one and {} of the other", i + 1, text_of(*one[i]),
                         text_of(*other[i]));
  if (one.size() == other.size()) return "";
  return fmt::format("the one has {} operations there and the other {}", one.size(), other.size());
}

/// The same of what a sender sends and a receiver receives.
std::string difference_of_ends(const Calls& sends, const Calls& receives) {
  for (std::size_t i = 0; i < std::min(sends.size(), receives.size()); ++i)
    if (sends[i]->bytes != receives[i]->bytes)
      return fmt::format("number {} is sent with {} bytes and received with {}", i + 1, sends[i]->bytes,
                         receives[i]->bytes);
  if (sends.size() == receives.size()) return "";
  return fmt::format("there are {} sends and {} receives", sends.size(), receives.size());
}

/// Compares the members of groups; equal pairs of programs once.
class GroupComparison {
 public:
  GroupComparison(const StreamPrograms& programs, const std::string& name) : programs_(programs), name_(name) {
    for (const RankProgram& program : programs.programs) calls_.emplace_back(program, programs.ranks.dimensions.size());
    known_.resize(programs.ranks.dimensions.size());
  }

  /// `line`: of the group; 0: not known.
  void check(const core::workload::GivenGroup& group, int line) {
    const bool is_pair = programs_.ranks.dimensions[group.dimension].kind != core::workload::DimensionKind::groups;
    const std::uint32_t first = program_of(group.ranks[0]);
    for (std::size_t i = 1; i < group.ranks.size(); ++i) {
      const std::uint32_t other = program_of(group.ranks[i]);
      if ((first == other && !is_pair) || !known_[group.dimension].emplace(first, other).second) continue;
      const Calls &of_first = calls_[first].of(group.dimension, false),
                  &of_other = calls_[other].of(group.dimension, is_pair);
      const std::string differs = is_pair ? difference_of_ends(of_first, of_other) : difference(of_first, of_other);
      if (differs.empty()) continue;
      const std::string& dimension = programs_.ranks.dimensions[group.dimension].name;
      const std::string what = is_pair
                                   ? fmt::format("rank {} does not send what rank {} receives in dimension '{}'",
                                                 group.ranks[0], group.ranks[i], dimension)
                                   : fmt::format("ranks {} and {} do not do the same in their group of dimension '{}'",
                                                 group.ranks[0], group.ranks[i], dimension);
      throw core::InputError(fmt::format("{}: {}", what, differs), name_, line);
    }
    for (std::size_t i = 0; i < group.ranks.size(); ++i)
      members_.emplace(group.ranks[i], group.dimension, is_pair && i == 1);
  }

  /// Checks that nobody calls where it has no group.
  void check_alone() const {
    for (std::uint32_t rank = 0; rank < programs_.ranks.program_of_rank.size(); ++rank)
      for (std::uint32_t dimension = 0; dimension < programs_.ranks.dimensions.size(); ++dimension)
        for (const bool receives : {false, true})
          if (!calls_[program_of(rank)].of(dimension, receives).empty() &&
              members_.count({rank, dimension, receives}) == 0)
            throw core::InputError(
                fmt::format("rank {} {} in dimension '{}', in which it has no group", rank,
                            receives ? "receives" : "communicates", programs_.ranks.dimensions[dimension].name),
                name_);
  }

 private:
  std::uint32_t program_of(std::uint32_t rank) const { return programs_.ranks.program_of_rank[rank]; }

  const StreamPrograms& programs_;
  const std::string& name_;
  std::vector<ProgramCalls> calls_;                                       // by program
  std::vector<std::set<std::pair<std::uint32_t, std::uint32_t>>> known_;  // by dimension: programs that do the same
  std::set<std::tuple<std::uint32_t, std::uint32_t, bool>> members_;      // rank, dimension, receives
};

}  // namespace

void check_communication(const StreamPrograms& programs, const std::string& name,
                         const std::vector<int>& lines_of_groups) {
  GroupComparison comparison(programs, name);
  for (std::size_t i = 0; i < programs.ranks.groups.size(); ++i)
    comparison.check(programs.ranks.groups[i], lines_of_groups.empty() ? 0 : lines_of_groups.at(i));
  comparison.check_alone();
}

}  // namespace manyworlds::experiments::programs
