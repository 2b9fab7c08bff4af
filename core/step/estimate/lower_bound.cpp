#include "core/step/estimate/lower_bound.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/step/estimate/least_times.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "core/workload/build/buckets.hpp"
#include "core/workload/build/replica_traffic.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/activation_policy.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::step {
namespace {

using collective::Kind;
using workload::ModelPart;
using workload::Parameters;
using workload::PassKind;
using workload::PhaseList;
using workload::Role;
using workload::StageWork;

/// The passes of one micro-batch through a chunk. The backward pass is whole or in two, whichever takes less.
struct Passes {
  Time forward = 0, backward = 0;
};

using FamilyTimes = std::array<Time, 2>;  // of dense parameters and experts, which use streams of their own

Time longest(const FamilyTimes& times) {
  return *std::max_element(times.begin(), times.end());
}

/// Reductions of the gradients of a chunk.
struct ChunkReductions {
  FamilyTimes all{}, last_bucket{};
  Time interfaces = 0;  // what network interfaces that the families share are busy with them

  Time least() const { return std::max(longest(all), interfaces); }
};

/// What the ranks of a class do at least.
struct RankWork {
  std::vector<Passes> chunks;              // by chunk of the rank, in the order of the model
  std::vector<ChunkTimes> in_turn;         // by chunk of the rank
  std::vector<ChunkReductions> gradients;  // by chunk of the rank; empty if replicas are open, or under ZeRO 3
  Passes first;                            // through the first of them, until its output may be sent
  Time launches = 0;                       // of a micro-batch through all chunks, by the host
  Time optimizer = 0;
  Time reductions = 0, gathers = 0;  // of all gradients and all parameters once
};

class Bound {
 public:
  Bound(const Configuration& configuration, const Links& links, Replicas replicas, const PipelinePasses* passes)
      : configuration_(configuration),
        strategy_(configuration.strategy),
        replicas_(replicas),
        passes_(passes),
        families_(workload::replicated_families(configuration.model, strategy_)),
        least_(configuration, links) {}

  Time step() {
    std::vector<std::vector<RankWork>> stages(static_cast<std::size_t>(strategy_.pp));
    std::map<RankContent, RankWork> known;  // most stages of a pipeline have the same layers
    for (const auto& [rank_class, ranks] : classes_of(parallel_config_of(configuration_))) {
      const auto [work, is_new] = known.try_emplace(content_of(rank_class));
      if (is_new) work->second = work_of(rank_class);
      stages[static_cast<std::size_t>(rank_class.stage)].push_back(work->second);
    }
    Time result = 0;
    const std::vector<StagePasses> in_turn = passes_in_turn(stages);
    Passes fill;  // passes through the stages before: of the first micro-batch, and back of the last
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      for (const RankWork& rank : stages[stage]) result = std::max(result, rank_ps(rank, fill, in_turn[stage]));
      if (fills_in_order()) add_to(fill, stages[stage]);
    }
    return result;
  }

 private:
  /// Whether passes through the first chunk of each rank come first and last, and backward passes are whole.
  bool fills_in_order() const {
    return workload::schedule_type(strategy_.schedule).has_formula && !strategy_.stack.post_validation;
  }
  /// Whether kernels of one micro-batch fill the waits of another.
  bool interleaves() const {
    return strategy_.stack.overlap_experts || workload::schedule_type(strategy_.schedule).overlaps_passes;
  }

  /// Returns by stage when its passes end at the earliest, every pass running in its rank's order as soon as it has its
  /// input; at once where the order of passes is not known, or passes do not begin and end one after the other.
  std::vector<StagePasses> passes_in_turn(const std::vector<std::vector<RankWork>>& stages) {
    if (passes_ == nullptr || strategy_.stack.overlap_experts || strategy_.stack.post_validation)
      return std::vector<StagePasses>(stages.size());
    std::vector<std::vector<ChunkTimes>> least;  // of all ranks of a stage
    for (const std::vector<RankWork>& stage : stages) {
      std::vector<ChunkTimes>& chunks = least.emplace_back(stage.front().in_turn);
      for (const RankWork& rank : stage)
        for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) take_least(chunks[chunk], rank.in_turn[chunk]);
    }
    return passes_->run(least, transfer_ps());
  }

  static void take_least(ChunkTimes& to, const ChunkTimes& other) {
    for (Time PassTimes::*kind :
         {&PassTimes::forward, &PassTimes::backward, &PassTimes::input_gradient, &PassTimes::weight_gradient})
      to.passes.*kind = std::min(to.passes.*kind, other.passes.*kind);
    to.gathered_ps = std::min(to.gathered_ps, other.gathered_ps);
    to.reduction_ps = std::min(to.reduction_ps, other.reduction_ps);
  }

  Time transfer_ps() {
    const std::int64_t bytes = workload::rank_shapes(configuration_.model, strategy_).transfer_bytes();
    return least_.of(Role::send_forward, Kind::send, bytes);
  }

  /// All of a rank that its work depends on: its chunks in the order of the model, each with its layers and whether
  /// embedding and head are with them; its experts; its machine.
  using Layer = std::pair<workload::LayerKind, workload::ActivationPolicy>;
  using Chunk = std::tuple<std::int64_t, bool, bool, std::vector<Layer>>;
  using RankContent = std::tuple<std::vector<Chunk>, std::int64_t, std::uint32_t>;

  RankContent content_of(const workload::RankClass& rank_class) const {
    const workload::StageMap stages = strategy_.stages();
    const std::int64_t stage = rank_class.stage;
    std::vector<Chunk> chunks;
    for (std::int64_t chunk = 0; chunk < strategy_.virtual_stages; ++chunk) {
      std::vector<Layer> layers;
      for (const workload::LayerKind kind : workload::chunk_layers(configuration_.model, strategy_, stage, chunk)) {
        const auto index = static_cast<std::int64_t>(layers.size());
        layers.emplace_back(kind, workload::activation_policy(strategy_, stage, index));
      }
      std::int64_t place = 0;  // in the order of the model
      for (std::int64_t other = 0; other < strategy_.virtual_stages; ++other)
        place += stages.of(stage, other) < stages.of(stage, chunk) ? 1 : 0;
      chunks.emplace_back(place, stages.is_first(stage, chunk), stages.is_last(stage, chunk), std::move(layers));
    }
    return {std::move(chunks), rank_class.expert_rank, rank_class.machine_kind};
  }

  RankWork work_of(const workload::RankClass& rank_class) {
    const compute::Gpu& gpu = configuration_.gpu_of(rank_class);
    const StageWork work = workload::stage_work(configuration_.model, strategy_, gpu, rank_class);
    const Parameters parameters = workload::stage_parameters(configuration_.model, strategy_, rank_class.stage);
    RankWork result;
    for (const std::size_t chunk : work.model_order) result.chunks.push_back(passes_of(work, work.chunks[chunk]));
    for (const auto& chunk : work.chunks) result.in_turn.push_back({times_of(work, chunk, Inputs::there)});
    result.first = is_sharded() ? kernels_of(work, work.chunks[work.model_order.front()]) : result.chunks.front();
    result.launches = launches_of(work);
    if (replicas_ == Replicas::open) return result;
    for (const auto& kernel : workload::optimizer_kernels(strategy_, parameters))
      result.optimizer += compute::kernel_cost(kernel, gpu).ps;
    if (strategy_.zero < 3) add_buckets(work, result);
    return result;
  }

  Passes passes_of(const StageWork& work, const std::vector<ModelPart>& chunk) {
    const PassTimes times = times_of(work, chunk, Inputs::waited_for);
    return {times.forward, std::min(times.backward, times.input_gradient + times.weight_gradient)};
  }

  /// Whether a pass counts all that it gathers, or only what cannot have been gathered while it waited for its input.
  enum class Inputs : std::uint8_t { waited_for, there };

  PassTimes times_of(const StageWork& work, const std::vector<ModelPart>& chunk, Inputs inputs) {
    const auto time_of = [&](PassKind kind) {
      return is_sharded() ? sharded_ps(work, chunk, kind, inputs) : chained_ps(work, chunk, kind);
    };
    PassTimes times{time_of(PassKind::forward), time_of(PassKind::backward), 0, 0};
    times.input_gradient = has_split_passes() ? time_of(PassKind::input_gradient) : times.backward;
    if (has_split_passes()) times.weight_gradient = time_of(PassKind::weight_gradient);
    return times;
  }

  /// Whether weight gradients have passes of their own.
  bool has_split_passes() const { return !workload::schedule_type(strategy_.schedule).has_formula; }

  Time chained_ps(const StageWork& work, const std::vector<ModelPart>& chunk, PassKind kind) {
    Chain pass(least_, interleaves());
    if (kind == PassKind::forward)
      for (const ModelPart part : chunk) pass.add(work.of(part).forward);
    else
      for (auto part = chunk.rbegin(); part != chunk.rend(); ++part) pass.add(work.of(*part).pass(kind));
    return pass.now();
  }

  static Time kernels_of(const PhaseList& pass) {
    Time sum = 0;
    for (const auto& phase : pass)
      for (const auto& work : phase.ops)
        if (const workload::KernelWork* kernel = work.kernel()) sum += kernel->cost.ps;
    return sum;
  }

  static Passes kernels_of(const StageWork& work, const std::vector<ModelPart>& chunk) {
    Passes sum;
    for (const ModelPart index : chunk) {
      const workload::PartWork& part = work.of(index);
      sum.forward += kernels_of(part.forward);
      sum.backward +=
          std::min(kernels_of(part.backward), kernels_of(part.input_gradient) + kernels_of(part.weight_gradient));
    }
    return sum;
  }

  /// Whether passes are those of ZeRO 3, or may be.
  bool is_sharded() const { return strategy_.zero == 3 || replicas_ == Replicas::open; }

  /// ZeRO 3: a unit is gathered during the unit before it at the earliest, the first of a forward pass before it; a
  /// pass with weight gradients ends when these are scattered. Gathers that may be left out, because the unit was just
  /// used or is one with another, are not counted; nor, where the inputs of the pass are there, the first two, for
  /// which nothing of it has to begin.
  Time sharded_ps(const StageWork& work, const std::vector<ModelPart>& chunk, PassKind kind, Inputs inputs) {
    const bool forward = kind == PassKind::forward, counts_all = inputs == Inputs::waited_for;
    const std::size_t tied =
        configuration_.model.tied_embeddings && work.has_embedding_and_head ? chunk.size() - 1 : SIZE_MAX;
    const auto part_ps = [&](std::size_t unit, Kind collective, std::int64_t bytes_each) {
      return unit == tied ? FamilyTimes{} : replicas_ps(collective, bytes_each, work.of(chunk[unit]).parameters);
    };
    const auto is_gathered = [&](std::size_t unit) {
      if (forward) return false;
      if (kind == PassKind::weight_gradient) return true;
      return unit + 1 == chunk.size() || (unit == 0 && tied != SIZE_MAX);  // a tied embedding stays
    };
    Time units = 0;
    FamilyTimes families{};                           // on the streams of each family
    for (std::size_t i = 0; i < chunk.size(); ++i) {  // in the order of the pass
      const std::size_t unit = forward ? i : chunk.size() - 1 - i;
      FamilyTimes gather{}, next_gather{}, scatter{};
      if (!is_gathered(unit)) gather = part_ps(unit, Kind::all_gather, workload::kParameterBytes);
      if (i + 1 < chunk.size() && !is_gathered(forward ? unit + 1 : unit - 1) && (counts_all || i > 0))
        next_gather = part_ps(forward ? unit + 1 : unit - 1, Kind::all_gather, workload::kParameterBytes);
      if (kind == PassKind::backward || kind == PassKind::weight_gradient)
        scatter = part_ps(unit, Kind::reduce_scatter, workload::gradient_bytes(strategy_));
      if (i == 0 && forward && counts_all) units += longest(gather);
      Chain chain(least_, interleaves());
      chain.add(work.of(chunk[unit]).pass(kind));
      units += std::max(chain.now(), longest(next_gather));
      for (std::size_t family = 0; family < families.size(); ++family)
        families[family] += scatter[family] + gather[family];
    }
    return counts_all ? std::max(units, longest(families)) : units;
  }

  /// Returns the times of a collective over parameters among replicas.
  FamilyTimes replicas_ps(Kind kind, std::int64_t bytes_each, const Parameters& parameters) {
    FamilyTimes result{};
    if (replicas_ == Replicas::open) return result;
    for (std::size_t i = 0; i < families_.size(); ++i) {
      const workload::ParameterFamily& family = families_[i];
      if (const std::int64_t count = parameters.*family.count; count > 0 && family.shards > 1)
        result.at(i) = least_.of(family.role, kind, bytes_each * family.padded(count));
    }
    return result;
  }

  /// Adds reductions and gathers of ZeRO 0 to 2.
  void add_buckets(const StageWork& work, RankWork& result) {
    std::vector<ChunkReductions> gathers(work.chunks.size());
    result.gradients.resize(work.chunks.size());
    for (std::size_t chunk = 0; chunk < work.chunks.size(); ++chunk)
      for (std::size_t family = 0; family < families_.size(); ++family)
        if (families_[family].shards > 1)
          add_buckets(work, work.chunks[chunk], family, result.gradients[chunk], gathers[chunk]);
    result.reductions = least_of(result.gradients);
    result.gathers = least_of(gathers);
    if (!strategy_.overlap_grad_reduce && strategy_.zero == 2)
      for (std::size_t chunk = 0; chunk < work.chunks.size(); ++chunk)
        result.in_turn[chunk].reduction_ps = result.gradients[chunk].least();
    if (!gathers_first()) return;
    std::vector<ChunkReductions> so_far;
    for (const std::size_t chunk : work.model_order) {
      so_far.push_back(gathers[chunk]);
      result.in_turn[chunk].gathered_ps = least_of(so_far);
    }
  }

  void add_buckets(const StageWork& work, const std::vector<ModelPart>& chunk, std::size_t family,
                   ChunkReductions& reductions, ChunkReductions& gathers) {
    const workload::ParameterFamily& spec = families_[family];
    const auto add = [&](ChunkReductions& to, Kind kind, std::int64_t bytes) {
      to.last_bucket.at(family) = least_.of(spec.role, kind, bytes);
      to.all.at(family) += to.last_bucket.at(family);
      // Analytic transfers share nothing.
      if (configuration_.transport.fidelity != network::Fidelity::analytic)
        to.interfaces += least_.interfaces_ps(spec.role, bytes);
    };
    std::vector<std::int64_t> backward_order;
    for (auto part = chunk.rbegin(); part != chunk.rend(); ++part)
      backward_order.push_back(work.of(*part).parameters.*spec.count);
    for (const workload::Bucket& bucket : workload::buckets(backward_order, strategy_.bucket_parameters)) {
      const std::int64_t count = strategy_.zero > 0 ? spec.padded(bucket.parameters) : bucket.parameters;
      add(reductions, strategy_.zero > 0 ? Kind::reduce_scatter : Kind::all_reduce,
          workload::gradient_bytes(strategy_) * count);
      if (strategy_.zero > 0) add(gathers, Kind::all_gather, workload::kParameterBytes * count);
    }
  }

  static Time least_of(const std::vector<ChunkReductions>& chunks) {
    ChunkReductions sum;
    for (const ChunkReductions& chunk : chunks) {
      for (std::size_t family = 0; family < sum.all.size(); ++family) sum.all[family] += chunk.all[family];
      sum.interfaces += chunk.interfaces;
    }
    return sum.least();
  }

  /// Whether parameters are gathered beside the first forward pass.
  bool gathers_first() const { return strategy_.zero > 0 && strategy_.stack.overlap_parameters; }

  Time launches_of(const StageWork& work) const {
    Time sum = 0;
    for (const auto& chunk : work.chunks)
      for (const ModelPart part : chunk) {
        compute::HostWork launches;
        for (const PhaseList* pass : {&work.of(part).forward, &work.of(part).backward})
          for (const auto& phase : *pass)
            for (const auto& item : phase.ops) {
              if (!work.launched_by_host(item)) continue;
              launches.kernels += item.kernel() != nullptr ? item.kernel()->launches : 0;
              launches.collectives += item.start() != nullptr ? 1 : 0;
            }
        sum += work.launch_times.of(launches);
      }
    return sum - sum / kRoundedShare;
  }

  /// Returns the time of a step in which the rank waits for nothing but the stages before it.
  Time rank_ps(const RankWork& rank, const Passes& fill, const StagePasses& in_turn) const {
    const Time micro_batches = strategy_.chunk_micro_batches();
    Time passes = 0, backward = 0, first_reduction = kNever;
    for (const Passes& chunk : rank.chunks) {
      passes += micro_batches * (chunk.forward + chunk.backward);
      backward += micro_batches * chunk.backward;
      first_reduction = std::min(first_reduction, micro_batches * (chunk.forward + chunk.backward) - chunk.backward);
    }
    Time drained = std::max({fill.forward + passes, micro_batches * rank.launches, in_turn.drained_ps});
    if (replicas_ == Replicas::open) return drained + fill.backward;
    if (gathers_first())
      drained = std::max(drained, rank.gathers + (micro_batches - 1) * rank.chunks.back().forward + backward);
    // ZeRO 2 reduces after each pass. The host launches ahead meanwhile, so that where its launches take longest, only
    // the last of a chunk's reductions follow the last pass.
    const bool after_each_pass = strategy_.zero == 2;
    const Time reductions = (after_each_pass ? micro_batches : 1) * rank.reductions;
    const Time at_the_end = after_each_pass && rank.chunks.size() > 1 ? 0 : rank.reductions;
    const Time begin = after_each_pass || !strategy_.overlap_grad_reduce ? 0 : first_reduction;
    const Time reduced = std::max({drained + (strategy_.overlap_grad_reduce ? 0 : at_the_end),
                                   fill.forward + begin + reductions, reduced_in_turn(rank, in_turn)});
    return std::max(reduced + rank.optimizer + (gathers_first() ? 0 : rank.gathers), drained + fill.backward);
  }

  /// Returns when the gradients are reduced if buckets follow one another from when passes with weight gradients begin,
  /// the last bucket of each when it ends.
  Time reduced_in_turn(const RankWork& rank, const StagePasses& in_turn) const {
    if (rank.gradients.empty()) return 0;
    FamilyTimes families{};
    Time interfaces = 0;
    for (const StagePasses::WeightGradients& pass : in_turn.gradients) {
      if (!pass.last && strategy_.zero < 2) continue;
      const ChunkReductions& chunk = rank.gradients[pass.chunk];
      const Time begin = strategy_.overlap_grad_reduce ? pass.begin : pass.end;
      for (std::size_t family = 0; family < families.size(); ++family) {
        const Time last = chunk.last_bucket[family];
        families[family] = std::max(families[family], begin) + chunk.all[family] - last;
        families[family] = std::max(families[family], pass.end) + last;
      }
      interfaces = std::max(interfaces, begin) + chunk.interfaces;
    }
    return std::max(longest(families), interfaces);
  }

  void add_to(Passes& fill, const std::vector<RankWork>& stage) {
    Passes least{kNever, kNever};
    for (const RankWork& rank : stage) {
      least.forward = std::min(least.forward, rank.first.forward);
      least.backward = std::min(least.backward, rank.first.backward);
    }
    fill.forward += least.forward + transfer_ps();
    fill.backward += least.backward + transfer_ps();
  }

  static constexpr Time kRoundedShare = 1'000'000;  // sections of launches are rounded, parts here are

  const Configuration& configuration_;
  const workload::Strategy& strategy_;
  const Replicas replicas_;
  const PipelinePasses* const passes_;  // null if their order is not known
  const std::vector<workload::ParameterFamily> families_;
  LeastTimes least_;
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

Time LowerBounds::of(const Configuration& configuration, Replicas replicas) {
  if (graph_ != configuration.graph) {
    graph_ = configuration.graph;
    links_ = fastest_links(*graph_);
  }
  return Bound(configuration, links_, replicas, passes_of(configuration.strategy)).step();
}

const PipelinePasses* LowerBounds::passes_of(const workload::Strategy& strategy) {
  constexpr std::int64_t kMost = 100'000;  // forward passes
  const workload::ScheduleType& type = workload::schedule_type(strategy.schedule);
  const workload::Pipeline pipeline = strategy.pipeline();
  if (type.needs_costs || strategy.written || pipeline.ranks * pipeline.micro_batches * pipeline.chunks > kMost)
    return nullptr;
  const auto key = std::tuple(strategy.schedule, pipeline.ranks, pipeline.micro_batches, pipeline.chunks);
  auto known = passes_.find(key);
  if (known == passes_.end())
    known = passes_.emplace(key, PipelinePasses(strategy.stages(), type.orders(pipeline))).first;
  return &known->second;
}

Time lower_bound_ps(const Configuration& configuration, Replicas replicas) {
  return LowerBounds().of(configuration, replicas);
}

}  // namespace manyworlds::core::step
