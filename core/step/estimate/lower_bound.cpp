#include "core/step/estimate/lower_bound.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/step/layout/rank_layout.hpp"
#include "core/workload/build/buckets.hpp"
#include "core/workload/build/replica_traffic.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/activation_policy.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::step {
namespace {

using collective::Kind;
using collective::Protocol;
using workload::ModelPart;
using workload::Parameters;
using workload::PhaseList;
using workload::Role;
using workload::StageWork;

/// Least times of the collectives of a configuration.
class LeastTimes {
 public:
  LeastTimes(const Configuration& configuration, const Links& links)
      : configuration_(configuration), strategy_(configuration.strategy), links_(links) {}

  Time of(Role role, Kind kind, std::int64_t bytes, const collective::Split& split = {}) {
    if (bytes == 0 || !split.even()) return 0;
    const auto [known, is_new] = known_.try_emplace({role, kind, bytes}, Time{0});
    if (is_new) known->second = compute(role, kind, bytes);
    return known->second;
  }

 private:
  struct Group {
    std::int64_t members = 1, stride = 1;  // ranks, and the distance of neighbours
  };

  /// Returns the ranks of a communicator. Those whose ranks are not at equal distances count as one rank.
  Group group_of(Role role) const {
    const workload::Strategy& s = strategy_;
    const std::int64_t expert = s.ep * s.etp;
    switch (role) {
      case Role::tensor:
        return {s.tp, 1};
      case Role::expert_tensor:
        return {s.etp, 1};
      case Role::expert:
        return {s.ep, s.etp};
      default:
        break;
    }
    if (configuration_.placement != Placement::tp_dp_pp || s.stage_copies() > 1) return {};
    switch (role) {
      case Role::context:
        return {s.cp, s.tp};
      case Role::send_context:
        return {2, s.tp};
      case Role::send_forward:
        return {2, s.tp * s.cp * s.dp};
      case Role::data:
        return {s.shards(), s.tp};
      case Role::expert_data:
        return {s.expert_shards(), expert};
      case Role::data_inter_group:
        return {s.zero_groups(), s.tp * s.shards()};
      case Role::expert_data_inter_group:
        return {s.zero_groups(), expert * s.expert_shards()};
      default:
        return {};
    }
  }

  Time compute(Role role, Kind kind, std::int64_t bytes) {
    const Group group = group_of(role);
    if (group.members < 2) return 0;
    // An exchange counts pairs inside nodes, of which ranks that fill no whole nodes have more than its formula knows.
    const std::int64_t local = std::clamp<std::int64_t>(configuration_.gpus_per_node / group.stride, 1, group.members);
    if (kind == Kind::all_to_all && group.members % local != 0) return 0;
    const auto least = [&](const Configuration& configuration) {
      const auto [shape, communicator] =
          strided_collective(configuration, links_, group.members, group.stride, role, kind, bytes, {});
      return collective::least_ps(shape, communicator);
    };
    const collective::Library& library = configuration_.collectives;
    const std::vector<collective::Algorithm> candidates = library.candidates(kind);
    const bool any_protocol = library.protocol == Protocol::automatic;
    if (library.protocol == Protocol::calibrated || (candidates.size() == 1 && !any_protocol))
      return least(configuration_);
    // What is chosen by predicted times depends on the paths that the group really has.
    Time result = kNever;
    if (!chosen_) chosen_ = configuration_;
    for (const collective::Algorithm algorithm : candidates)
      for (const Protocol protocol : any_protocol ? std::vector{Protocol::ll, Protocol::ll128, Protocol::simple}
                                                  : std::vector{library.protocol}) {
        collective::Library& chosen = chosen_->collectives;
        chosen.all_reduce = chosen.all_gather = chosen.reduce_scatter = chosen.all_to_all = chosen.broadcast =
            chosen.reduce = algorithm;
        chosen.protocol = protocol;
        result = std::min(result, least(*chosen_));
      }
    return result;
  }

  const Configuration& configuration_;
  const workload::Strategy& strategy_;
  const Links links_;
  std::map<std::tuple<Role, Kind, std::int64_t>, Time> known_;
  std::optional<Configuration> chosen_;  // whose library has one algorithm and protocol of those that it may choose
};

/// A pass of one rank by itself: kernels run in order, collectives in order on their streams, and no other rank is
/// waited for. Begins with all streams free, so that passes in a row take at least the sum of theirs.
class Chain {
 public:
  explicit Chain(LeastTimes& least) : least_(least) {}

  void add(const PhaseList& pass) {
    for (const auto& phase : pass)
      for (const auto& work : phase.ops) add(work);
  }
  Time now() const { return now_; }

 private:
  void add(const workload::WorkItem& work) {
    if (const workload::KernelWork* kernel = work.kernel())
      now_ += kernel->cost.ps;
    else if (const workload::CollectiveStart* collective = work.start())
      start(*collective);
    else
      now_ = after_join(now_, std::get<workload::Join>(work.action), started_);
  }

  void start(const workload::CollectiveStart& collective) {
    Time& free = stream_free_.at(stream_of(collective.role));
    free = std::max(now_, free) + least_.of(collective.role, collective.kind, collective.bytes, collective.split);
    started_.emplace_back(collective.role, free);
  }

  static std::size_t stream_of(Role role) {
    if (role == Role::expert || role == Role::expert_tensor) return 1;
    return role == Role::send_context || role == Role::context ? 2 : 0;
  }

  LeastTimes& least_;
  Time now_ = 0;
  std::array<Time, 3> stream_free_{};           // of tensor, expert and context collectives
  std::vector<std::pair<Role, Time>> started_;  // collectives not yet joined, and their ends
};

/// The forward and backward pass of one micro-batch through a chunk.
struct Passes {
  Time forward = 0, backward = 0;
};

/// What the ranks of a class do at least.
struct RankWork {
  std::vector<Passes> chunks;  // by chunk of the rank, in the order of the model
  Passes first;                // through the first of them, until its output may be sent
  Time launches = 0;           // of a micro-batch through all chunks, by the host
  Time optimizer = 0;
  Time reductions = 0, gathers = 0;  // of all gradients and all parameters once
};

class Bound {
 public:
  Bound(const Configuration& configuration, const Links& links)
      : configuration_(configuration),
        strategy_(configuration.strategy),
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
    Passes fill;  // passes through the stages before: of the first micro-batch, and back of the last
    for (const std::vector<RankWork>& stage : stages) {
      for (const RankWork& rank : stage) result = std::max(result, rank_ps(rank, fill));
      if (fills_in_order()) add_to(fill, stage);
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
    return strategy_.stack.overlap_experts || !workload::schedule_type(strategy_.schedule).has_formula;
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
    result.first =
        strategy_.zero == 3 ? kernels_of(work, work.chunks[work.model_order.front()]) : result.chunks.front();
    result.launches = launches_of(work);
    for (const auto& kernel : workload::optimizer_kernels(strategy_, parameters))
      result.optimizer += compute::kernel_cost(kernel, gpu).ps;
    if (strategy_.zero < 3) add_buckets(work, result);
    return result;
  }

  Passes passes_of(const StageWork& work, const std::vector<ModelPart>& chunk) {
    if (interleaves()) return kernels_of(work, chunk);
    if (strategy_.zero == 3) return sharded_passes(work, chunk);
    Chain forward(least_), backward(least_);
    for (const ModelPart part : chunk) forward.add(work.of(part).forward);
    for (auto part = chunk.rbegin(); part != chunk.rend(); ++part) backward.add(work.of(*part).backward);
    return {forward.now(), backward.now()};
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

  /// ZeRO 3: a unit is gathered during the unit before it at the earliest, the first of a forward pass before it; a
  /// backward pass ends when its gradients are scattered. Gathers that may be left out, because the unit was just used
  /// or is one with another, are not counted.
  Passes sharded_passes(const StageWork& work, const std::vector<ModelPart>& chunk) {
    const std::size_t tied =
        configuration_.model.tied_embeddings && work.has_embedding_and_head ? chunk.size() - 1 : SIZE_MAX;
    const auto part_ps = [&](std::size_t unit, Kind kind, std::int64_t bytes_each) {
      return unit >= chunk.size() || unit == tied ? FamilyTimes{}
                                                  : replicas_ps(kind, bytes_each, work.of(chunk[unit]).parameters);
    };
    const auto gather = [&](std::size_t unit) { return part_ps(unit, Kind::all_gather, workload::kParameterBytes); };
    const auto gather_again = [&](std::size_t unit) {  // a tied embedding stays
      return unit + 1 == chunk.size() || (unit == 0 && tied != SIZE_MAX) ? FamilyTimes{} : gather(unit);
    };
    const auto scatter = [&](std::size_t unit) {
      return part_ps(unit, Kind::reduce_scatter, workload::gradient_bytes(strategy_));
    };
    const auto unit_ps = [&](const PhaseList& pass, const FamilyTimes& next_gather) {
      Chain unit(least_);
      unit.add(pass);
      return std::max(unit.now(), longest(next_gather));
    };
    Passes units;
    FamilyTimes forward{}, backward{};  // on the streams of each family
    const auto add = [](FamilyTimes& to, const FamilyTimes& times) {
      for (std::size_t family = 0; family < to.size(); ++family) to[family] += times[family];
    };
    units.forward = longest(gather(0));
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const workload::PartWork& part = work.of(chunk[i]);
      units.forward += unit_ps(part.forward, gather(i + 1));
      units.backward += unit_ps(part.backward, i > 0 ? gather_again(i - 1) : FamilyTimes{});
      add(forward, gather(i));
      add(backward, scatter(i));
      add(backward, gather_again(i));
    }
    return {std::max(units.forward, longest(forward)), std::max(units.backward, longest(backward))};
  }

  using FamilyTimes = std::array<Time, 2>;  // of dense parameters and experts, which use streams of their own
  static Time longest(const FamilyTimes& times) { return *std::max_element(times.begin(), times.end()); }

  /// Returns the times of a collective over parameters among replicas.
  FamilyTimes replicas_ps(Kind kind, std::int64_t bytes_each, const Parameters& parameters) {
    FamilyTimes result{};
    for (std::size_t i = 0; i < families_.size(); ++i) {
      const workload::ParameterFamily& family = families_[i];
      if (const std::int64_t count = parameters.*family.count; count > 0 && family.shards > 1)
        result.at(i) = least_.of(family.role, kind, bytes_each * family.padded(count));
    }
    return result;
  }

  void add_buckets(const StageWork& work, RankWork& result) {
    const Kind reduction = strategy_.zero > 0 ? Kind::reduce_scatter : Kind::all_reduce;
    for (const workload::ParameterFamily& family : families_) {
      if (family.shards == 1) continue;
      Time reductions = 0, gathers = 0;
      for (const auto& chunk : work.chunks) {
        std::vector<std::int64_t> backward_order;
        for (auto part = chunk.rbegin(); part != chunk.rend(); ++part)
          backward_order.push_back(work.of(*part).parameters.*family.count);
        for (const workload::Bucket& bucket : workload::buckets(backward_order, strategy_.bucket_parameters)) {
          const std::int64_t count = strategy_.zero > 0 ? family.padded(bucket.parameters) : bucket.parameters;
          reductions += least_.of(family.role, reduction, workload::gradient_bytes(strategy_) * count);
          if (strategy_.zero > 0)
            gathers += least_.of(family.role, Kind::all_gather, workload::kParameterBytes * count);
        }
      }
      result.reductions = std::max(result.reductions, reductions);
      result.gathers = std::max(result.gathers, gathers);
    }
  }

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
  Time rank_ps(const RankWork& rank, const Passes& fill) const {
    const Time micro_batches = strategy_.chunk_micro_batches();
    Time passes = 0, backward = 0, first_reduction = kNever;
    for (const Passes& chunk : rank.chunks) {
      passes += micro_batches * (chunk.forward + chunk.backward);
      backward += micro_batches * chunk.backward;
      first_reduction = std::min(first_reduction, micro_batches * (chunk.forward + chunk.backward) - chunk.backward);
    }
    Time drained = std::max(fill.forward + passes, micro_batches * rank.launches);
    const bool gathers_first = strategy_.zero > 0 && strategy_.stack.overlap_parameters;
    if (gathers_first)
      drained = std::max(drained, rank.gathers + (micro_batches - 1) * rank.chunks.back().forward + backward);
    // ZeRO 2 reduces after each pass. The host launches ahead meanwhile, so that where its launches take longest, only
    // the last of a chunk's reductions follow the last pass.
    const bool after_each_pass = strategy_.zero == 2;
    const Time reductions = (after_each_pass ? micro_batches : 1) * rank.reductions;
    const Time at_the_end = after_each_pass && rank.chunks.size() > 1 ? 0 : rank.reductions;
    const Time begin = after_each_pass || !strategy_.overlap_grad_reduce ? 0 : first_reduction;
    const Time reduced =
        std::max(drained + (strategy_.overlap_grad_reduce ? 0 : at_the_end), fill.forward + begin + reductions);
    return std::max(reduced + rank.optimizer + (gathers_first ? 0 : rank.gathers), drained + fill.backward);
  }

  void add_to(Passes& fill, const std::vector<RankWork>& stage) {
    Passes least{kNever, kNever};
    for (const RankWork& rank : stage) {
      least.forward = std::min(least.forward, rank.first.forward);
      least.backward = std::min(least.backward, rank.first.backward);
    }
    const std::int64_t bytes = workload::rank_shapes(configuration_.model, strategy_).transfer_bytes();
    const Time transfer = least_.of(Role::send_forward, Kind::send, bytes);
    fill.forward += least.forward + transfer;
    fill.backward += least.backward + transfer;
  }

  static constexpr Time kRoundedShare = 1'000'000;  // sections of launches are rounded, parts here are

  const Configuration& configuration_;
  const workload::Strategy& strategy_;
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

Time lower_bound_ps(const Configuration& configuration) {
  return Bound(configuration, fastest_links(*configuration.graph)).step();
}

}  // namespace manyworlds::core::step
