#include "experiments/nccl_logs/logged_job.hpp"

#include <map>
#include <tuple>
#include <utility>

#include "experiments/graphs/graph_programs.hpp"

namespace manyworlds::experiments::nccl_logs {
namespace {

using core::collective::Kind;

/// Builds the graph of a rank.
class RankCalls {
 public:
  RankCalls(const LoggedJob& job, const std::string& what, programs::Dependencies& dependencies)
      : job_(job), dependencies_(dependencies), graph_{what, {}} {}

  graphs::RankGraph graph_of(const std::vector<LoggedCall>& calls) {
    for (const LoggedCall& call : calls) add(call);
    if (calls.empty()) graph_.nodes.push_back({0, "idle", {}, programs::HostWork{}});
    return std::move(graph_);
  }

 private:
  /// Group, and the peer and direction of a transfer that is no batch.
  using Lane = std::tuple<std::uint32_t, std::uint32_t, bool>;

  /// What is on a stream: its last operations, and those that they came after.
  struct Stream {
    std::vector<std::uint32_t> last, before;
    std::uint32_t batch = kNoBatch;
  };

  std::uint32_t push(graphs::GraphNode node) {
    node.id = graph_.nodes.size();
    graph_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(graph_.nodes.size() - 1);
  }

  void add(const LoggedCall& call) {
    const bool is_lone_transfer = call.kind == Kind::send && call.batch == kNoBatch;
    Stream& stream =
        streams_[{call.group, is_lone_transfer ? call.peer : UINT32_MAX, is_lone_transfer && call.receives}];
    const bool goes_on = call.batch != kNoBatch && call.batch == stream.batch;
    if (!goes_on) stream.before = std::exchange(stream.last, {});
    stream.batch = call.batch;
    graphs::GraphNode node;
    node.name = call.name;
    node.parents = stream.before;
    dependencies_.exact += std::ssize(node.parents);
    if (job_.has_host_order) {
      const std::uint32_t host = add_host(call);
      node.parents.push_back(host);
    }
    if (call.kind == Kind::send)
      node.work = graphs::Transfer{call.peer, call.receives, call.bytes, call.group};
    else
      node.work = graphs::GroupCall{call.group, call.kind, call.bytes, call.root};
    stream.last.push_back(push(std::move(node)));
  }

  std::uint32_t add_host(const LoggedCall& call) {
    graphs::GraphNode host;
    host.name = "call";
    host.work = programs::HostWork{call.gap_us};
    if (has_host_) host.parents.push_back(host_);
    if (has_host_ && group_ != call.group) ++dependencies_.inferred;
    group_ = call.group;
    has_host_ = true;
    return host_ = push(std::move(host));
  }

  const LoggedJob& job_;
  programs::Dependencies& dependencies_;
  graphs::RankGraph graph_;
  std::map<Lane, Stream> streams_;
  std::uint32_t host_ = 0, group_ = 0;
  bool has_host_ = false;
};

}  // namespace

programs::Imported programs_of(const LoggedJob& job, const std::string& what) {
  std::vector<std::vector<std::uint32_t>> groups;
  std::vector<core::workload::StepPart> parts;
  for (const LoggedGroup& group : job.groups) groups.push_back(group.ranks), parts.push_back(group.part);
  graphs::GraphPrograms programs(static_cast<std::uint32_t>(job.ranks.size()), std::move(groups), std::move(parts));
  programs::Dependencies dependencies;
  for (std::uint32_t rank = 0; rank < job.ranks.size(); ++rank)
    programs.add(rank, RankCalls(job, what, dependencies).graph_of(job.ranks[rank]));
  programs::Imported result = programs.finish(what);
  result.dependencies = dependencies;
  return result;
}

}  // namespace manyworlds::experiments::nccl_logs
