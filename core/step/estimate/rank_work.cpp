#include "core/step/estimate/rank_work.hpp"

#include <algorithm>

#include "core/step/layout/interference.hpp"
#include "core/workload/build/buckets.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/multi_token_prediction.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/stage_boundaries.hpp"

namespace manyworlds::core::step {

using collective::Kind;
using workload::ModelPart;
using workload::Parameters;
using workload::PassKind;
using workload::PhaseList;
using workload::Role;
using workload::StageWork;

namespace {

Time longest(const FamilyTimes& times) {
  return *std::max_element(times.begin(), times.end());
}

}  // namespace

Time ChunkReductions::least() const {
  return std::max(longest(all), interfaces);
}

Time RankWorks::transfer_ps() {
  const workload::StageBoundary boundary = workload::least_boundary(configuration_.model, strategy_);
  return least_.of(Role::send_forward, Kind::send, boundary.transfer_bytes);
}

RankContent RankWorks::content_of(const workload::RankClass& rank_class) const {
  const workload::StageMap stages = strategy_.stages();
  const std::int64_t stage = rank_class.stage;
  std::vector<RankChunk> chunks;
  for (std::int64_t chunk = 0; chunk < strategy_.virtual_stages; ++chunk) {
    std::vector<RankLayer> layers;
    for (const workload::LayerKind kind : workload::chunk_layers(configuration_.model, strategy_, stage, chunk)) {
      const auto index = static_cast<std::int64_t>(layers.size());
      layers.emplace_back(kind, workload::activation_policy(strategy_, stage, chunk, index, kind));
    }
    std::int64_t place = 0;  // in the order of the model
    for (std::int64_t other = 0; other < strategy_.virtual_stages; ++other)
      place += stages.of(stage, other) < stages.of(stage, chunk) ? 1 : 0;
    chunks.emplace_back(place, stages.is_first(stage, chunk), stages.is_last(stage, chunk), std::move(layers));
  }
  return {std::move(chunks), rank_class.expert_rank, rank_class.machine_kind};
}

RankWork RankWorks::work_of(const workload::RankClass& rank_class) {
  const compute::Gpu& gpu = configuration_.gpu_of(rank_class);
  const Work of_rank{workload::stage_work(configuration_.model, strategy_, gpu, rank_class),
                     interference_of(configuration_, gpu)};
  const StageWork& work = of_rank.stage;
  const Parameters parameters = workload::trained_stage_parameters(configuration_.model, strategy_, rank_class.stage);
  RankWork result;
  for (const std::size_t chunk : work.model_order) result.chunks.push_back(passes_of(of_rank, work.chunks[chunk]));
  for (const auto& chunk : work.chunks) result.in_turn.push_back({times_of(of_rank, chunk, Inputs::there)});
  result.first = is_sharded() ? kernels_of(work, work.chunks[work.model_order.front()]) : result.chunks.front();
  result.launches = launches_of(work);
  if (replicas_ == Replicas::open) return result;
  for (const auto& kernel : workload::optimizer_kernels(strategy_, parameters))
    result.optimizer += compute::kernel_cost(kernel, gpu).ps;
  workload::for_each_factor_kernel(work, [&](const workload::KernelWork& kernel) { result.factors += kernel.cost.ps; });
  if (strategy_.zero < 3) add_buckets(work, result);
  return result;
}

Passes RankWorks::passes_of(const Work& work, const std::vector<ModelPart>& chunk) {
  const PassTimes times = times_of(work, chunk, Inputs::waited_for);
  return {times.forward, std::min(times.backward, times.input_gradient + times.weight_gradient)};
}

PassTimes RankWorks::times_of(const Work& work, const std::vector<ModelPart>& chunk, Inputs inputs) {
  const auto time_of = [&](PassKind kind) {
    return is_sharded() ? sharded_ps(work, chunk, kind, inputs) : chained_ps(work, chunk, kind);
  };
  PassTimes times{time_of(PassKind::forward), time_of(PassKind::backward), 0, 0};
  times.input_gradient = has_split_passes() ? time_of(PassKind::input_gradient) : times.backward;
  if (has_split_passes()) times.weight_gradient = time_of(PassKind::weight_gradient);
  return times;
}

bool RankWorks::has_split_passes() const {
  return !workload::schedule_type(strategy_.schedule).has_formula;
}

Time RankWorks::chained_ps(const Work& work, const std::vector<ModelPart>& chunk, PassKind kind) {
  Chain pass(least_, work.interference, interleaves());
  if (kind == PassKind::forward)
    for (const ModelPart part : chunk) pass.add(work.stage.of(part).forward);
  else
    for (auto part = chunk.rbegin(); part != chunk.rend(); ++part) pass.add(work.stage.of(*part).pass(kind));
  return pass.now();
}

Time RankWorks::kernels_of(const PhaseList& pass) {
  Time sum = 0;
  for (const auto& phase : pass)
    for (const auto& work : phase.ops)
      if (const workload::KernelWork* kernel = work.kernel()) sum += kernel->cost.ps;
  return sum;
}

Passes RankWorks::kernels_of(const StageWork& work, const std::vector<ModelPart>& chunk) {
  Passes sum;
  for (const ModelPart index : chunk) {
    const workload::PartWork& part = work.of(index);
    sum.forward += kernels_of(part.forward);
    sum.backward +=
        std::min(kernels_of(part.backward), kernels_of(part.input_gradient) + kernels_of(part.weight_gradient));
  }
  return sum;
}

bool RankWorks::is_sharded() const {
  return strategy_.zero == 3 || replicas_ == Replicas::open;
}

Time RankWorks::sharded_ps(const Work& of_rank, const std::vector<ModelPart>& chunk, PassKind kind, Inputs inputs) {
  const StageWork& work = of_rank.stage;
  const bool forward = kind == PassKind::forward, counts_all = inputs == Inputs::waited_for;
  const std::size_t tied =
      workload::stages_share_table(configuration_.model) && work.has_embedding_and_head ? chunk.size() - 1 : SIZE_MAX;
  const auto part_ps = [&](std::size_t unit, Kind collective, std::int64_t bytes_each) {
    const workload::PartWork& part = work.of(chunk[unit]);
    if (unit == tied) return FamilyTimes{};
    return replicas_ps(collective, bytes_each, collective == Kind::all_gather ? part.parameters : part.trained);
  };
  const auto is_gathered = [&](std::size_t unit) {
    if (forward) return false;
    if (kind == PassKind::weight_gradient || !work.of(chunk[unit]).has_backward()) return true;
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
    Chain chain(least_, of_rank.interference, interleaves());
    chain.add(work.of(chunk[unit]).pass(kind));
    units += std::max(chain.now(), longest(next_gather));
    for (std::size_t family = 0; family < families.size(); ++family)
      families[family] += scatter[family] + gather[family];
  }
  return counts_all ? std::max(units, longest(families)) : units;
}

FamilyTimes RankWorks::replicas_ps(Kind kind, std::int64_t bytes_each, const Parameters& parameters) {
  FamilyTimes result{};
  if (replicas_ == Replicas::open) return result;
  for (std::size_t i = 0; i < families_.size(); ++i) {
    const workload::ParameterFamily& family = families_[i];
    if (const std::int64_t count = parameters.*family.count; count > 0 && family.shards > 1)
      result.at(i) = least_.of(family.role, kind, bytes_each * family.padded(count));
  }
  return result;
}

void RankWorks::add_buckets(const StageWork& work, RankWork& result) {
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

void RankWorks::add_buckets(const StageWork& work, const std::vector<ModelPart>& chunk, std::size_t family,
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
    backward_order.push_back(work.of(*part).summed().*spec.count);
  for (const workload::Bucket& bucket : workload::buckets(backward_order, strategy_.bucket_parameters)) {
    const std::int64_t count = strategy_.zero > 0 ? spec.padded(bucket.parameters) : bucket.parameters;
    add(reductions, strategy_.zero > 0 ? Kind::reduce_scatter : Kind::all_reduce,
        workload::gradient_bytes(strategy_) * count);
    if (strategy_.zero > 0) add(gathers, Kind::all_gather, workload::kParameterBytes * count);
  }
}

Time RankWorks::least_of(const std::vector<ChunkReductions>& chunks) {
  ChunkReductions sum;
  for (const ChunkReductions& chunk : chunks) {
    for (std::size_t family = 0; family < sum.all.size(); ++family) sum.all[family] += chunk.all[family];
    sum.interfaces += chunk.interfaces;
  }
  return sum.least();
}

bool RankWorks::gathers_first() const {
  return strategy_.zero > 0 && strategy_.stack.overlap_parameters;
}

bool RankWorks::interleaves() const {
  return strategy_.stack.overlap_experts || workload::schedule_type(strategy_.schedule).overlaps_passes;
}

Time RankWorks::launches_of(const StageWork& work) const {
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

Time RankWorks::step_ps(const RankWork& rank, const Passes& fill, const StagePasses& in_turn) const {
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
  const Time reduced = std::max({drained + rank.factors, drained + (strategy_.overlap_grad_reduce ? 0 : at_the_end),
                                 fill.forward + begin + reductions, reduced_in_turn(rank, in_turn)});
  return std::max(reduced + rank.optimizer + (gathers_first() ? 0 : rank.gathers), drained + fill.backward);
}

Time RankWorks::reduced_in_turn(const RankWork& rank, const StagePasses& in_turn) const {
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

void RankWorks::add_to(Passes& fill, const std::vector<const RankWork*>& stage) {
  // Where a stage is on two ranks, a micro-batch comes from either end. Optimizers that validate later let the next
  // step begin in this one.
  if (strategy_.stage_copies() > 1 || strategy_.stack.post_validation) return;
  Passes least{kNever, kNever};
  for (const RankWork* rank : stage) {
    least.forward = std::min(least.forward, rank->first.forward);
    least.backward = std::min(least.backward, rank->first.backward);
  }
  fill.forward += least.forward + transfer_ps();
  // Elsewhere weight gradients fill the end.
  if (workload::is_inference(configuration_.model)) return;  // no gradients come back
  if (workload::schedule_type(strategy_.schedule).has_formula) fill.backward += least.backward + transfer_ps();
}

}  // namespace manyworlds::core::step
