// Programs of the graphs of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "experiments/graphs/chain_cover.hpp"
#include "experiments/programs/imported.hpp"
#include "experiments/programs/names.hpp"

namespace manyworlds::experiments::graphs {

/// An operation of a program that communicates, and with whom.
struct CommunicatingOp {
  std::uint32_t op = 0;
  std::variant<GroupCall, Transfer> call;
};

/// Takes the graph of each rank in turn and keeps one program of those that do the same: transfers are named by how far
/// away their peer is, collectives by the dimension of their group, so that 1,000 ranks cost as much as are distinct.
class GraphPrograms {
 public:
  /// Groups are of ranks below `ranks`, in the order of their members.
  GraphPrograms(std::uint32_t ranks, std::vector<std::vector<std::uint32_t>> groups,
                std::vector<core::workload::StepPart> exposed);

  /// Throws InputError for a circle, for a rank that calls a group it is not in, and for a transfer with itself or with
  /// a rank that there is not.
  void add(std::uint32_t rank, const RankGraph& graph);
  /// The same of a program that has its streams already. `calls` are those of its operations that communicate, which
  /// are filled in, in ascending order; names are number_of().
  void add(std::uint32_t rank, programs::RankProgram program, const std::vector<CommunicatingOp>& calls,
           const std::string& what);
  std::uint32_t number_of(const std::string& name) { return names_(name); }
  /// Gives a rank the program of one that was added, if that has no transfers.
  void add_same(std::uint32_t rank, std::uint32_t as);

  /// Returns the programs. Throws InputError if the collectives of a group's members differ, or the ends of a pair of
  /// ranks do not match; `what` is the name of the job in messages.
  programs::Imported finish(const std::string& what);

 private:
  struct PeerTransfer {
    std::uint32_t op = 0, distance = 0;  // from sender to receiver, modulo the ranks
    bool receives = false;
    std::uint64_t tag = 0;
    bool operator==(const PeerTransfer&) const = default;
  };
  struct Draft {
    programs::RankProgram program;  // the dimensions of its transfers are not known yet
    std::vector<PeerTransfer> transfers;
    bool operator==(const Draft&) const = default;
  };
  using LanesOfRank = std::vector<std::uint32_t>;  // by transfer

  programs::StreamOp op_of(std::uint32_t rank, const RankGraph& graph, const GraphNode& node);
  /// `which` is the operation, in messages.
  programs::Communication communication_of(std::uint32_t rank, const GroupCall& call, const std::string& what,
                                           const std::string& which);
  programs::Communication communication_of(std::uint32_t rank, const Transfer& transfer, const std::string& what,
                                           const std::string& which) const;
  PeerTransfer peer_transfer(std::uint32_t rank, std::uint32_t op, const Transfer& transfer) const;
  void keep(std::uint32_t rank, Draft draft);
  std::vector<LanesOfRank> lanes(const std::string& what) const;
  std::uint32_t dimension_of(std::uint32_t distance, std::uint32_t lane);
  void add_groups();

  std::uint32_t ranks_;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::vector<core::workload::StepPart> exposed_;
  std::vector<std::uint32_t> dimension_of_group_;
  std::vector<bool> is_used_;                                   // by group
  std::vector<std::map<std::uint32_t, std::uint32_t>> member_;  // by group: rank and member
  std::vector<std::vector<std::uint32_t>> groups_of_rank_;
  std::vector<Draft> drafts_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> drafts_by_hash_;
  std::vector<std::uint32_t> draft_of_rank_;
  programs::Imported result_;
  programs::Names names_{result_.programs.names};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> dimension_of_pairs_;  // by distance and lane
  std::int64_t left_out_ = 0;  // collectives of groups of one rank
  std::int64_t added_ = 0;
  std::size_t most_streams_ = 0;
};

}  // namespace manyworlds::experiments::graphs
