#include "experiments/graphs/graph_programs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/graphs/group_dimensions.hpp"
#include "experiments/programs/check_communication.hpp"

namespace manyworlds::experiments::graphs {
namespace {

using core::InputError;
using core::collective::Kind;
using core::workload::DimensionKind;
using programs::Communication;

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::size_t kMaxDimensions = 13'000;  // roles of a step are 16 bits wide

/// FNV-1a over what tells most programs apart; equal ones are then compared in full.
class Hash {
 public:
  void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) value_ = (value_ ^ ((value >> (8 * byte)) & 255)) * 0x100000001b3u;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

std::uint64_t hash_of(const programs::RankProgram& program) {
  Hash hash;
  for (const programs::StreamOp& op : program.ops) {
    hash.add(op.stream);
    hash.add(op.name);
    hash.add(op.work.index());
    for (const std::uint32_t before : op.after) hash.add(before);
    if (const auto* call = std::get_if<Communication>(&op.work)) {
      hash.add(call->dimension);
      hash.add(static_cast<std::uint64_t>(call->bytes));
    }
  }
  return hash.value();
}

}  // namespace

GraphPrograms::GraphPrograms(std::uint32_t ranks, std::vector<std::vector<std::uint32_t>> groups,
                             std::vector<core::workload::StepPart> exposed)
    : ranks_(ranks),
      groups_(std::move(groups)),
      exposed_(std::move(exposed)),
      dimension_of_group_(dimensions_of(groups_)),
      is_used_(groups_.size()),
      groups_of_rank_(ranks),
      draft_of_rank_(ranks, kNone) {
  exposed_.resize(groups_.size(), core::workload::StepPart::exposed_other);
  for (const std::vector<std::uint32_t>& group : groups_) {
    auto& members = member_.emplace_back();
    for (const std::uint32_t rank : group) {
      members.emplace(rank, static_cast<std::uint32_t>(members.size()));
      if (rank < ranks_) groups_of_rank_[rank].push_back(static_cast<std::uint32_t>(member_.size()) - 1);
    }
  }
}

programs::StreamOp GraphPrograms::op_of(std::uint32_t rank, const RankGraph& graph, const GraphNode& node) {
  programs::StreamOp op;
  op.name = names_(node.name);
  if (const auto* kernel = std::get_if<programs::KernelWork>(&node.work)) op.work = *kernel;
  if (const auto* copy = std::get_if<programs::CopyWork>(&node.work)) op.work = *copy;
  if (const auto* host = std::get_if<programs::HostWork>(&node.work)) op.work = *host;
  const std::string which = fmt::format("node {}", node.id);
  if (const auto* call = std::get_if<GroupCall>(&node.work)) op.work = communication_of(rank, *call, graph.name, which);
  if (const auto* transfer = std::get_if<Transfer>(&node.work))
    op.work = communication_of(rank, *transfer, graph.name, which);
  return op;
}

Communication GraphPrograms::communication_of(std::uint32_t rank, const GroupCall& call, const std::string& what,
                                              const std::string& which) {
  if (member_.at(call.group).count(rank) == 0)
    throw InputError(fmt::format("{} is a collective of a group that rank {} is not in", which, rank), what);
  is_used_[call.group] = true;
  Communication work;
  work.dimension = dimension_of_group_[call.group];
  work.kind = call.kind;
  work.bytes = call.bytes;
  const bool is_rooted = call.kind == Kind::broadcast || call.kind == Kind::reduce;
  const auto members = static_cast<std::uint32_t>(groups_[call.group].size());
  if (is_rooted && call.root > 0) work.split = core::collective::rooted_split(call.root, members, call.bytes);
  return work;
}

Communication GraphPrograms::communication_of(std::uint32_t rank, const Transfer& transfer, const std::string& what,
                                              const std::string& which) const {
  if (transfer.peer >= ranks_ || transfer.peer == rank)
    throw InputError(fmt::format("{} is a transfer of rank {} with rank {} of {}", which, rank, transfer.peer, ranks_),
                     what);
  Communication work;
  work.kind = Kind::send;
  work.receives = transfer.receives;
  work.bytes = transfer.bytes;
  return work;
}

GraphPrograms::PeerTransfer GraphPrograms::peer_transfer(std::uint32_t rank, std::uint32_t op,
                                                         const Transfer& transfer) const {
  const std::uint32_t from = transfer.receives ? transfer.peer : rank, to = transfer.receives ? rank : transfer.peer;
  return {op, (to + ranks_ - from) % ranks_, transfer.receives, transfer.tag};
}

void GraphPrograms::add(std::uint32_t rank, const RankGraph& given) {
  RankGraph shrunk;  // without collectives of groups of one rank
  const RankGraph* graph = &given;
  const auto is_alone = [&](const GraphNode& node) {
    const auto* call = std::get_if<GroupCall>(&node.work);
    return call != nullptr && groups_.at(call->group).size() < 2;
  };
  if (std::any_of(given.nodes.begin(), given.nodes.end(), is_alone)) {
    shrunk = given;
    for (GraphNode& node : shrunk.nodes)
      if (is_alone(node)) node.work = std::monostate{}, node.resource = kNoResource, ++left_out_;
    graph = &shrunk;
  }
  const std::vector<std::uint32_t> order = execution_order(*graph);
  const ChainCover cover = cover_by_chains(*graph, order);
  added_ += cover.added;
  Draft draft;
  draft.program.name = fmt::format("rank {}", rank);
  for (std::size_t chain = 0; chain < cover.is_host.size(); ++chain)
    draft.program.streams.push_back({fmt::format("chain {}", chain),
                                     cover.is_host[chain] ? programs::StreamKind::host : programs::StreamKind::device});
  most_streams_ = std::max(most_streams_, draft.program.streams.size());
  std::vector<std::uint32_t> op_of_node(graph->nodes.size(), kNone);
  for (const std::uint32_t number : order) {
    const GraphNode& node = graph->nodes[number];
    if (cover.chain[number] == kNoChain) continue;
    programs::StreamOp op = op_of(rank, *graph, node);
    op.stream = cover.chain[number];
    for (const std::uint32_t before : cover.after[number]) op.after.push_back(op_of_node[before]);
    std::sort(op.after.begin(), op.after.end());
    op_of_node[number] = static_cast<std::uint32_t>(draft.program.ops.size());
    if (const auto* transfer = std::get_if<Transfer>(&node.work))
      draft.transfers.push_back(peer_transfer(rank, op_of_node[number], *transfer));
    draft.program.ops.push_back(std::move(op));
  }
  for (const GraphNode& node : graph->nodes) result_.dependencies.exact += std::ssize(node.parents);
  keep(rank, std::move(draft));
}

void GraphPrograms::add(std::uint32_t rank, programs::RankProgram program, const std::vector<CommunicatingOp>& calls,
                        const std::string& what) {
  Draft draft;
  draft.program = std::move(program);
  most_streams_ = std::max(most_streams_, draft.program.streams.size());
  for (const CommunicatingOp& one : calls) {
    programs::StreamOp& op = draft.program.ops.at(one.op);
    const std::string which = fmt::format("operation {}", one.op);
    if (const auto* call = std::get_if<GroupCall>(&one.call)) {
      op.work = communication_of(rank, *call, what, which);
    } else {
      const auto& transfer = std::get<Transfer>(one.call);
      op.work = communication_of(rank, transfer, what, which);
      draft.transfers.push_back(peer_transfer(rank, one.op, transfer));
    }
  }
  for (const programs::StreamOp& op : draft.program.ops) result_.dependencies.exact += std::ssize(op.after);
  keep(rank, std::move(draft));
}

void GraphPrograms::keep(std::uint32_t rank, Draft draft) {
  const std::uint64_t hash = hash_of(draft.program);
  const auto [begin, end] = drafts_by_hash_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    draft.program.name = drafts_[known->second].program.name;
    if (drafts_[known->second] == draft) {
      draft_of_rank_.at(rank) = known->second;
      return;
    }
  }
  draft.program.name = fmt::format("rank {}", rank);
  draft_of_rank_.at(rank) = static_cast<std::uint32_t>(drafts_.size());
  drafts_by_hash_.emplace(hash, draft_of_rank_[rank]);
  drafts_.push_back(std::move(draft));
}

void GraphPrograms::add_same(std::uint32_t rank, std::uint32_t as) {
  draft_of_rank_.at(rank) = draft_of_rank_.at(as);
  for (const std::uint32_t used : groups_of_rank_.at(as))
    for (const std::uint32_t group : groups_of_rank_.at(rank))
      if (is_used_[used] && dimension_of_group_[group] == dimension_of_group_[used]) is_used_[group] = true;
}

std::vector<GraphPrograms::LanesOfRank> GraphPrograms::lanes(const std::string& what) const {
  struct Ends {
    std::vector<PairEnd> sends, receives;
    std::vector<std::pair<std::uint32_t, std::size_t>> of_sends, of_receives;  // rank and transfer
  };
  std::vector<LanesOfRank> lanes(ranks_);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Ends> pairs;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const Draft& draft = drafts_[draft_of_rank_[rank]];
    lanes[rank].resize(draft.transfers.size());
    for (std::size_t i = 0; i < draft.transfers.size(); ++i) {
      const PeerTransfer& one = draft.transfers[i];
      const std::uint32_t from = one.receives ? (rank + ranks_ - one.distance) % ranks_ : rank;
      Ends& ends = pairs[{from, (from + one.distance) % ranks_}];
      const PairEnd end{one.tag, std::get<Communication>(draft.program.ops[one.op].work).bytes};
      (one.receives ? ends.receives : ends.sends).push_back(end);
      (one.receives ? ends.of_receives : ends.of_sends).emplace_back(rank, i);
    }
  }
  for (const auto& [pair, ends] : pairs) {
    const Lanes of_pair = lanes_of(ends.sends, ends.receives);
    if (!of_pair.match)
      throw InputError(fmt::format("{} sends of rank {} to rank {} do not match {} receives there by tag and bytes: {}",
                                   ends.sends.size(), pair.first, pair.second, ends.receives.size(),
                                   mismatch_of(ends.sends, ends.receives)),
                       what);
    for (std::size_t i = 0; i < of_pair.of_sends.size(); ++i) {
      lanes[ends.of_sends[i].first][ends.of_sends[i].second] = of_pair.of_sends[i];
      lanes[ends.of_receives[i].first][ends.of_receives[i].second] = of_pair.of_receives[i];
    }
  }
  return lanes;
}

std::uint32_t GraphPrograms::dimension_of(std::uint32_t distance, std::uint32_t lane) {
  core::workload::GivenRanks& ranks = result_.programs.ranks;
  const auto [known, is_new] =
      dimension_of_pairs_.try_emplace({distance, lane}, static_cast<std::uint32_t>(ranks.dimensions.size()));
  if (is_new)
    ranks.dimensions.push_back(
        {lane == 0 ? fmt::format("to {} ranks on", distance) : fmt::format("to {} ranks on, lane {}", distance, lane),
         DimensionKind::pairs, core::workload::StepPart::exposed_other});
  return known->second;
}

void GraphPrograms::add_groups() {
  core::workload::GivenRanks& ranks = result_.programs.ranks;
  std::map<std::uint32_t, std::uint32_t> renumbered;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (!is_used_[i]) continue;
    const auto [known, is_new] =
        renumbered.try_emplace(dimension_of_group_[i], static_cast<std::uint32_t>(ranks.dimensions.size()));
    if (is_new)
      ranks.dimensions.push_back(
          {fmt::format("groups of {}, {}", groups_[i].size(), renumbered.size()), DimensionKind::groups, exposed_[i]});
    ranks.groups.push_back({known->second, groups_[i]});
  }
  for (Draft& draft : drafts_)
    for (programs::StreamOp& op : draft.program.ops)
      if (auto* call = std::get_if<Communication>(&op.work); call != nullptr && call->kind != Kind::send)
        call->dimension = renumbered.at(call->dimension);
}

programs::Imported GraphPrograms::finish(const std::string& what) {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank)
    MANYWORLDS_CHECK(draft_of_rank_[rank] != kNone, "rank {} of {} has no program", rank, ranks_);
  const std::vector<LanesOfRank> lanes_of_rank = lanes(what);
  add_groups();
  programs::StreamPrograms& to = result_.programs;
  std::map<std::pair<std::uint32_t, LanesOfRank>, std::uint32_t> programs;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const std::uint32_t number = draft_of_rank_[rank];
    const auto [known, is_new] =
        programs.try_emplace({number, lanes_of_rank[rank]}, static_cast<std::uint32_t>(to.programs.size()));
    to.ranks.program_of_rank.push_back(known->second);
    const Draft& draft = drafts_[number];
    if (is_new) {
      programs::RankProgram& added = to.programs.emplace_back(draft.program);
      for (std::size_t i = 0; i < draft.transfers.size(); ++i)
        std::get<Communication>(added.ops[draft.transfers[i].op].work).dimension =
            dimension_of(draft.transfers[i].distance, lanes_of_rank[rank][i]);
      if (added.ops.empty()) throw InputError(fmt::format("rank {} has no operation that takes time", rank), what);
    }
    std::map<std::uint32_t, std::uint32_t> peers;  // by dimension, of those in which it sends
    for (std::size_t i = 0; i < draft.transfers.size(); ++i)
      if (!draft.transfers[i].receives)
        peers.emplace(dimension_of(draft.transfers[i].distance, lanes_of_rank[rank][i]),
                      (rank + draft.transfers[i].distance) % ranks_);
    for (const auto& [dimension, peer] : peers) to.ranks.groups.push_back({dimension, {rank, peer}});
    if (to.ranks.dimensions.size() > kMaxDimensions)
      throw InputError(
          fmt::format("needs more than {} dimensions: so many groups overlap, or so many pairs of ranks have "
                      "transfers",
                      kMaxDimensions),
          what);
  }
  to.slowed = core::workload::SlowedKernels::none;
  result_.account.push_back(
      fmt::format("{} programs for {} ranks, on up to {} streams", to.programs.size(), ranks_, most_streams_));
  if (left_out_ > 0)
    result_.account.push_back(fmt::format("{} collectives are left out, as their groups have one rank", left_out_));
  if (added_ > 0)
    result_.account.push_back(
        fmt::format("{} operations wait for another of their resource, which no dependency asks for", added_));
  result_.dependencies.inferred = added_;
  programs::check_communication(to, what);
  return std::move(result_);
}

}  // namespace manyworlds::experiments::graphs
