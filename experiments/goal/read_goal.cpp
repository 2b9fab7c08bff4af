#include "experiments/goal/read_goal.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "experiments/goal/goal_file.hpp"
#include "experiments/graphs/graph_programs.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::goal {
namespace {

constexpr std::size_t kMaxGoalBytes = std::size_t{2} << 30;

/// Builds the graph of a rank.
class RankImporter {
 public:
  RankImporter(const GoalOptions& options, const std::string& name) : options_(options), graph_{name, {}} {}

  graphs::RankGraph graph_of(const std::vector<GoalOp>& ops) {
    // Nodes first, so that a dependency may be of a later operation: where it begins, and where it ends for others.
    for (const GoalOp& op : ops) add(op);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      std::vector<std::uint32_t>& parents = graph_.nodes[begin_[i]].parents;
      for (const std::uint32_t before : ops[i].waits) parents.push_back(end_[before]);
      // It may start when the other has started: when all has ended that the other waits for.
      for (const std::uint32_t other : ops[i].starts)
        for (const std::uint32_t before : ops[other].waits) parents.push_back(end_[before]);
    }
    if (ops.empty()) graph_.nodes.push_back(calculation("idle", 0, graphs::kNoResource));
    graphs::post_receives(graph_, options_.eager_bytes);
    return std::move(graph_);
  }

 private:
  graphs::GraphNode calculation(std::string name, double us, std::uint32_t resource) const {
    programs::KernelWork work;
    work.measured_us = us;
    return {graph_.nodes.size(), std::move(name), {}, work, resource, us};
  }

  std::uint32_t push(graphs::GraphNode node) {
    graph_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(graph_.nodes.size() - 1);
  }

  void add(const GoalOp& op) {
    if (op.kind == GoalKind::calculate) {
      const double us = static_cast<double>(op.size) * options_.calc_ns * 1e-3;
      const std::uint32_t node = push(calculation("calc", us, op.cpu));
      begin_.push_back(node), end_.push_back(node);
      return;
    }
    const bool receives = op.kind == GoalKind::receive;
    const auto overhead = [&] {
      return calculation(receives ? "receive overhead" : "send overhead", options_.overhead_ns * 1e-3,
                         options_.overhead_ns > 0 ? op.cpu : graphs::kNoResource);
    };
    graphs::GraphNode transfer;
    transfer.id = graph_.nodes.size();
    transfer.name = receives ? "recv" : "send";
    if (op.size > 0) transfer.work = graphs::Transfer{op.peer, receives, op.size, op.tag};
    if (receives) {
      std::uint32_t node = push(std::move(transfer));
      begin_.push_back(node);
      if (options_.overhead_ns > 0) {
        graphs::GraphNode after = overhead();
        after.parents = {node};
        node = push(std::move(after));
      }
      end_.push_back(node);
      return;
    }
    graphs::GraphNode before = overhead();
    if (options_.overhead_ns <= 0) before.work = std::monostate{};
    const std::uint32_t first = push(std::move(before));
    transfer.id = graph_.nodes.size();
    transfer.parents = {first};
    const std::uint32_t node = push(std::move(transfer));
    begin_.push_back(first);
    end_.push_back(op.size <= options_.eager_bytes ? first : node);
  }

  const GoalOptions& options_;
  graphs::RankGraph graph_;
  std::vector<std::uint32_t> begin_, end_;  // by operation: the node that waits, and that for which others wait
};

}  // namespace

programs::Imported import_goal(std::string_view text, const std::string& name, const GoalOptions& options) {
  const GoalFile file = is_goal_binary(text) ? parse_goal_binary(text, name) : parse_goal_file(text, name);
  const auto ranks = static_cast<std::uint32_t>(file.ranks.size());
  graphs::GraphPrograms job(ranks, {}, {});
  std::int64_t starts = 0, empty = 0, nics = 0, queued = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::set<std::pair<std::uint32_t, std::uint64_t>> senders;  // with their tags
    for (const GoalOp& op : file.ranks[rank]) {
      starts += std::ssize(op.starts);
      empty += op.kind != GoalKind::calculate && op.size == 0 ? 1 : 0;
      nics += op.nic > 0 ? 1 : 0;
      if (op.kind == GoalKind::receive && op.size <= options.eager_bytes && !senders.emplace(op.peer, op.tag).second)
        ++queued;
      if (op.kind != GoalKind::calculate && op.peer == rank)
        throw core::InputError(fmt::format("has rank {} sending to itself", rank), name, op.line);
    }
    job.add(rank, RankImporter(options, name).graph_of(file.ranks[rank]));
  }
  programs::Imported result = job.finish(name);
  result.programs.name = name.substr(name.rfind('/') + 1);
  result.programs.origin = fmt::format("GOAL schedule {}", name);
  result.programs.notes.push_back(
      "latency, gap and bandwidth are those of the simulated network; a transfer begins when both ends have come to "
      "it");
  result.account.push_back(fmt::format("o {} ns, S {} bytes, {} ns for a unit of calc", options.overhead_ns,
                                       options.eager_bytes, options.calc_ns));
  if (starts > 0)
    result.account.push_back(fmt::format("{} irequires wait for what the other operation requires", starts));
  if (empty > 0) result.account.push_back(fmt::format("{} transfers of 0 bytes take no time", empty));
  result.account.push_back(
      "the order of a cpu's work is fixed, as if transfers took no time; LogGOPSim takes what is ready first");
  if (queued > 0)
    result.account.push_back(
        fmt::format("{} transfers of up to S bytes begin when the one before them has arrived, as "
                    "they are of the same rank and tag",
                    queued));
  if (nics > 0)
    result.account.push_back(fmt::format("{} operations name a nic other than 0, which is not followed", nics));
  return result;
}

programs::Imported read_goal(const std::string& path, const GoalOptions& options) {
  return import_goal(import::read_table_text(path, kMaxGoalBytes), path, options);
}

}  // namespace manyworlds::experiments::goal
