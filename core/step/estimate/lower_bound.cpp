#include "core/step/estimate/lower_bound.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/step/layout/rank_layout.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/model/fine_tuning.hpp"

namespace manyworlds::core::step {
namespace {

class Bound {
 public:
  Bound(const Configuration& configuration, const Links& links, Replicas replicas, const PipelinePasses* passes)
      : configuration_(configuration),
        strategy_(configuration.strategy),
        passes_(passes),
        works_(configuration, links, replicas) {}

  Time step() {
    std::vector<std::vector<const RankWork*>> stages(static_cast<std::size_t>(strategy_.pp));
    std::map<RankContent, RankWork> known;  // most stages of a pipeline have the same layers
    for (const auto& [rank_class, ranks] : classes_of(parallel_config_of(configuration_))) {
      const auto [work, is_new] = known.try_emplace(works_.content_of(rank_class));
      if (is_new) work->second = works_.work_of(rank_class);
      stages[static_cast<std::size_t>(rank_class.stage)].push_back(&work->second);
    }
    Time result = 0;
    const std::vector<StagePasses> in_turn = passes_in_turn(stages);
    Passes fill;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      for (const RankWork* rank : stages[stage]) result = std::max(result, works_.step_ps(*rank, fill, in_turn[stage]));
      works_.add_to(fill, stages[stage]);
    }
    return result;
  }

 private:
  /// Returns by stage when its passes end at the earliest, every pass running in its rank's order as soon as it has its
  /// input; at once where the order of passes is not known, or passes do not begin and end one after the other.
  std::vector<StagePasses> passes_in_turn(const std::vector<std::vector<const RankWork*>>& stages) {
    if (passes_ == nullptr || strategy_.stack.overlap_experts || strategy_.stack.post_validation)
      return std::vector<StagePasses>(stages.size());
    std::vector<std::vector<ChunkTimes>> least;  // of all ranks of a stage
    for (const std::vector<const RankWork*>& stage : stages) {
      std::vector<ChunkTimes>& chunks = least.emplace_back(stage.front()->in_turn);
      for (const RankWork* rank : stage)
        for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) take_least(chunks[chunk], rank->in_turn[chunk]);
    }
    return passes_->run(least, works_.transfer_ps());
  }

  static void take_least(ChunkTimes& to, const ChunkTimes& other) {
    for (Time PassTimes::*kind :
         {&PassTimes::forward, &PassTimes::backward, &PassTimes::input_gradient, &PassTimes::weight_gradient})
      to.passes.*kind = std::min(to.passes.*kind, other.passes.*kind);
    to.gathered_ps = std::min(to.gathered_ps, other.gathered_ps);
    to.reduction_ps = std::min(to.reduction_ps, other.reduction_ps);
  }

  const Configuration& configuration_;
  const workload::Strategy& strategy_;
  const PipelinePasses* const passes_;  // null if their order is not known
  RankWorks works_;
};

}  // namespace

Links fastest_links(const network::Graph& graph) {
  Links result;
  bool direct_intra_node = false, direct_inter_node = false, switched = false;
  for (const network::Link& link : graph.links) {
    if (graph.vertices[link.from] == network::VertexKind::network_switch) continue;
    const bool scale_up = link.kind == network::LinkKind::scale_up;
    collective::Path& path = scale_up ? result.intra_node : result.inter_node;
    path.bits_per_second = std::max(path.bits_per_second, link.bits_per_second);
    path.latency_ps = path.latency_ps == 0 ? link.latency_ps : std::min(path.latency_ps, link.latency_ps);
    switched |= graph.vertices[link.from] == network::VertexKind::scale_up_switch;
    const bool direct =
        graph.vertices[link.to] == network::VertexKind::gpu && graph.vertices[link.from] == network::VertexKind::gpu;
    (scale_up ? direct_intra_node : direct_inter_node) |= direct;
  }
  if (!direct_intra_node) result.intra_node.latency_ps *= 2;
  result.node_mesh = direct_intra_node && !switched;
  if (!direct_inter_node) result.inter_node.latency_ps *= 2;
  if (result.intra_node.bits_per_second == 0) result.intra_node = result.inter_node;
  if (result.inter_node.bits_per_second == 0) result.inter_node = result.intra_node;
  return result;
}

const Links& LowerBounds::links_of(const Configuration& configuration) {
  if (graph_ != configuration.graph) {
    graph_ = configuration.graph;
    links_ = fastest_links(*graph_);
  }
  return links_;
}

namespace {

/// Returns the longest that kernels of one stream take in given programs; a clock's ticks shorten each by half a tick
/// at most.
Time bound_of(const workload::GivenPrograms& programs, Time tick_ps) {
  Time bound = 0;
  for (const workload::Program& program : programs.programs) {
    std::map<workload::Stream, Time> streams;
    for (const workload::Op& op : program.ops)
      if (const workload::KernelOp* kernel = op.kernel())
        streams[op.stream] += std::max<Time>(0, kernel->duration_ps - tick_ps / 2);
    for (const auto& [stream, time] : streams) bound = std::max(bound, time);
  }
  return bound;
}

}  // namespace

Time LowerBounds::of(const Configuration& configuration, Replicas replicas) {
  if (configuration.programs) return bound_of(*configuration.programs, configuration.tick_ps());
  const Links& links = links_of(configuration);
  return Bound(configuration, links, replicas, passes_of(configuration)).step();
}

const PipelinePasses* LowerBounds::passes_of(const Configuration& configuration) {
  const workload::Strategy& strategy = configuration.strategy;
  constexpr std::int64_t kMost = 100'000;  // forward passes
  const workload::ScheduleType& type = workload::schedule_type(strategy.schedule);
  const workload::Pipeline pipeline = strategy.pipeline();
  if (type.needs_costs || strategy.written || pipeline.ranks * pipeline.micro_batches * pipeline.chunks > kMost)
    return nullptr;
  const auto key = std::tuple(strategy.schedule, pipeline.ranks, pipeline.micro_batches, pipeline.chunks,
                              !workload::is_inference(configuration.model));
  auto known = passes_.find(key);
  if (known == passes_.end())
    known =
        passes_
            .emplace(key, PipelinePasses(strategy.stages(), workload::pass_orders(configuration.model, type, pipeline)))
            .first;
  return &known->second;
}

Time lower_bound_ps(const Configuration& configuration, Replicas replicas) {
  return LowerBounds().of(configuration, replicas);
}

}  // namespace manyworlds::core::step
