// Ranks, batch, stages and sharding of torchtitan's job file: pytorch/torchtitan v0.2.2, torchtitan/train.py,
// torchtitan/distributed/parallel_dims.py and models/*/infra/parallelize.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "experiments/torchtitan/reader.hpp"
#include "experiments/torchtitan/stages.hpp"

namespace manyworlds::experiments::jobs::torchtitan {
namespace {

constexpr std::int64_t kMaxRanks = 1 << 20, kMaxStages = 10'000;
/// replicate(bucket_cap_mb=100), of gradients in 32 bits.
constexpr std::int64_t kReplicatedBucket = 100 * (std::int64_t{1} << 20) / 4;

const std::string kShard = "parallelism.data_parallel_shard_degree";
const std::string kReplicate = "parallelism.data_parallel_replicate_degree";
const std::string kTensor = "parallelism.tensor_parallel_degree";
const std::string kPipeline = "parallelism.pipeline_parallel_degree";
const std::string kContext = "parallelism.context_parallel_degree";
const std::string kExpert = "parallelism.expert_parallel_degree";

}  // namespace

void Reader::read_ranks() {
  for (const auto& [name, size] : {std::pair(&kTensor, &tp_), std::pair(&kPipeline, &pp_), std::pair(&kContext, &cp_),
                                   std::pair(&kExpert, &ep_), std::pair(&kReplicate, &replicate_)}) {
    *size = keys_.count(*name, 1, 1);
    if (*size > kMaxRanks) keys_.fail(*name, fmt::format(" must be at most {}", kMaxRanks));
  }
  shard_ = keys_.count(kShard, -1, -1);
  if (shard_ == 0 || shard_ > kMaxRanks) keys_.fail(kShard, " must be -1, for what is left, or 1 at least");
  // Without expert parallelism experts are sharded as the other layers are.
  etp_ = ep_ == 1 ? tp_ : version_.experts_whole ? 1 : keys_.count("parallelism.expert_tensor_parallel_degree", 1, 1);
  if (etp_ != 1 && etp_ != tp_)
    keys_.fail("parallelism.expert_tensor_parallel_degree",
               fmt::format(" must be 1, or {} as tensor_parallel_degree", tp_));
  read_world();
  set("strategy.tp", tp_, kTensor);
  set("strategy.pp", pp_, kPipeline);
  set("strategy.cp", cp_, kContext);
  if (cp_ > 1) {
    const std::string name = "parallelism.context_parallel_rotate_method";
    set("strategy.cp_comm",
        keys_.translated(name, keys_.text(name, "allgather"), "allgather=gathered_blocks alltoall=ring"), name);
  }
  set_flag("strategy.sequence_parallel", tp_ > 1 && keys_.flag("parallelism.enable_sequence_parallel", true), kTensor);
}

/// The file says how many GPUs there are only if all degrees are given.
void Reader::read_world() {
  const std::int64_t others = replicate_ * cp_ * tp_ * pp_;
  if (others > kMaxRanks) keys_.fail(kTensor, fmt::format(": the degrees make {} ranks at least", others));
  const std::string degrees = fmt::format("replicate {} x cp {} x tp {} x pp {}", replicate_, cp_, tp_, pp_);
  job_.gpus = options_.gpus > 0 ? options_.gpus : shard_ > 0 ? others * shard_ : 0;
  if (job_.gpus > kMaxRanks) keys_.fail(kShard, fmt::format(": the degrees make {} ranks", job_.gpus));
  if (job_.gpus == 0) return;
  if (shard_ > 0 && others * shard_ != job_.gpus)
    keys_.fail(kShard, fmt::format(" {} x {} are {} GPUs, not {}; -1 takes what is left", shard_, degrees,
                                   others * shard_, job_.gpus));
  if (job_.gpus % others != 0 || job_.gpus < others)
    keys_.fail(keys_.given(kTensor) ? kTensor : kShard,
               fmt::format(": {} GPUs are no multiple of {}; give --gpus N", job_.gpus, degrees));
  shard_ = job_.gpus / others;
}

void Reader::read_sharding() {
  const bool sharded = shard_ < 0 || shard_ * cp_ > 1;
  set_flag("strategy.overlap_grad_reduce", true);
  set_flag("strategy.stack.reduce_in_16bit", false);
  if (!sharded) {
    check_mixed_precision();
    set("strategy.zero", 0, kShard);
    if (replicate_ > 1) set("strategy.bucket_parameters", kReplicatedBucket, kReplicate);
    return;
  }
  const std::string name = "parallelism.fsdp_reshard_after_forward";
  const std::string policy = keys_.text(name, "default");
  const std::string stage = keys_.translated(name, policy, fmt::format("always=3 never=2 default={}", pp_ > 1 ? 2 : 3));
  set("strategy.zero", stage, keys_.given(name) ? name : kShard);
  // Parameters that stay gathered are gathered again when the next step's first pass needs them.
  if (stage == "2") set_flag("strategy.stack.overlap_parameters", true, name);
  if (replicate_ > 1 && shard_ < 0) keys_.fail(kReplicate, " above 1 needs --gpus N, which tells the sharded ranks");
  if (replicate_ > 1) set("strategy.zero_group", shard_ * cp_, kShard);
}

/// Weights have 32 bits, and 16 in kernels only by FSDP2, or by autocast if there is no other parallelism.
void Reader::check_mixed_precision() const {
  if (tp_ > 1 || pp_ > 1)
    keys_.fail(keys_.given(kShard) ? kShard
               : tp_ > 1           ? kTensor
                                   : kPipeline,
               replicate_ > 1 ? ": DistributedDataParallel beside tensor or pipeline parallelism is no torchtitan job"
                              : ": without sharded data-parallel ranks torchtitan trains tensor- and pipeline-parallel "
                                "ranks in 32 bits, which is not modelled");
}

void Reader::read_batch() {
  const std::string name = "training.local_batch_size";
  const std::int64_t local = keys_.count(name, 8, 1);
  if (pp_ > 1)
    read_pipelined_batch(local);
  else
    set("strategy.micro_batch", local, name);
  const std::string global = "training.global_batch_size";
  const std::int64_t given = keys_.count(global, -1, -1), ranks = shard_ * replicate_;
  if (given == 0) keys_.fail(global, " must be -1 or 1 at least");
  if (shard_ < 0) {
    if (given > 0) set("strategy.global_batch", given, global);
    return;
  }
  if (local > (std::int64_t{1} << 40) / ranks) keys_.fail(name, " is too large");
  if (given > 0 && given % (local * ranks) != 0)
    keys_.fail(global,
               fmt::format(" {} is no multiple of local_batch_size {} x {} data-parallel ranks", given, local, ranks));
  if (given > local * ranks && pp_ > 1)
    keys_.fail(global,
               fmt::format(" {}: pipelines that run empty {} times a step are not modelled; local_batch_size {} "
                           "is one run of them",
                           given, given / (local * ranks), given / ranks));
  set("strategy.global_batch", given > 0 ? given : local * ranks, given > 0 ? global : name);
}

void Reader::read_pipelined_batch(std::int64_t local) {
  const std::string size = "parallelism.pipeline_parallel_microbatch_size";
  const std::string number = "parallelism.pipeline_parallel_microbatches";
  std::int64_t batches = keys_.count(number, 0, -1);
  if (batches < 0) batches = pp_;
  const std::int64_t samples = keys_.given(number) && batches > 0 ? local / batches : keys_.count(size, 1, 1);
  const std::string because = keys_.given(number) ? number : keys_.given(size) ? size : "training.local_batch_size";
  if (samples < 1 || local % samples != 0 || (batches > 0 && local % batches != 0))
    keys_.fail(because, fmt::format(": local_batch_size {} does not divide into such micro-batches", local));
  set("strategy.micro_batch", samples, because);
}

void Reader::read_pipeline() {
  if (pp_ == 1) {
    set("strategy.schedule", std::string("1f1b"));
    set("strategy.virtual_stages", 1);
    return;
  }
  const std::string name = "parallelism.pipeline_parallel_schedule";
  std::string schedule = keys_.text(name, "1F1B");
  std::transform(schedule.begin(), schedule.end(), schedule.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  schedule = keys_.translated(
      name, schedule, "1f1b=1f1b gpipe=gpipe interleaved1f1b=interleaved zbvzerobubble=zb_v dualpipev=dualpipev");
  const bool several = schedule != "1f1b" && schedule != "gpipe";
  if (flavor_->sizes.has_experts() && schedule == "dualpipev" && ep_ > 1 &&
      keys_.flag("parallelism.pipeline_parallel_expert_parallel_overlap", true))
    note(
        "not modelled: parallelism.pipeline_parallel_expert_parallel_overlap (DualPipeV's passes run one after the "
        "other here)");
  set("strategy.schedule", schedule, name);
  // Schedule1F1B and GPipe wait for what they send before the next pass; the others do not.
  set_flag("strategy.stack.overlap_transfers", several, name);
  if (read_written_stages()) return;
  const std::int64_t chunks = stages_of_rank(several);
  StageSplit split{flavor_->sizes.layers, pp_ * chunks,
                   keys_.count("parallelism.pipeline_parallel_first_stage_less_layers", 1),
                   keys_.count("parallelism.pipeline_parallel_last_stage_less_layers", 1)};
  std::string why;
  if (split.stages <= kMaxStages) stage_layers_ = stage_layers(split, why);
  if (stage_layers_.empty()) keys_.fail(kPipeline, fmt::format(" {}: {}", pp_, why.empty() ? "too many stages" : why));
  set("strategy.virtual_stages", chunks, name);
  set_stages(stage_layers_, kPipeline);
}

/// Returns how many stages a pipeline rank has.
std::int64_t Reader::stages_of_rank(bool several) {
  const std::string name = "parallelism.pipeline_parallel_layers_per_stage";
  const std::int64_t each = keys_.count(name, 0, 1);
  if (each == 0) return several ? 2 : 1;
  const std::int64_t counted = flavor_->sizes.layers +
                               keys_.count("parallelism.pipeline_parallel_first_stage_less_layers", 1) +
                               keys_.count("parallelism.pipeline_parallel_last_stage_less_layers", 1);
  const std::int64_t stages = (counted + each - 1) / each;
  if (stages % pp_ != 0 || (several ? stages / pp_ < 2 : stages / pp_ != 1))
    keys_.fail(name, fmt::format(" {}: {} stages over {} ranks do not suit the schedule", each, stages, pp_));
  return stages / pp_;
}

void Reader::set_stages(const std::vector<std::int64_t>& layers, const std::string& because) {
  const bool even = std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) == layers.end();
  std::vector<std::int64_t> inner = layers;
  ++inner.front(), ++inner.back();
  const bool light = std::adjacent_find(inner.begin(), inner.end(), std::not_equal_to<>()) == inner.end();
  if (even || light) return set("strategy.split", std::string(even ? "even" : "light_ends"), because);
  set("strategy.stage_layers", fmt::format("[{}]", fmt::join(layers, ", ")), because);
}

std::vector<std::vector<std::string>> Reader::written_parts() const {
  std::vector<std::vector<std::string>> parts;
  const std::string name = "parallelism.module_fqns_per_model_part";
  const import::Node* given = keys_.find(name);
  if (given == nullptr) return parts;
  for (const import::Node& part : given->items) {
    if (part.kind != import::Node::Kind::sequence) keys_.fail(name, " must be a list of lists of modules");
    parts.emplace_back();
    for (const import::Node& module : part.items) parts.back().push_back(module.text);
  }
  return parts;
}

/// Reads stages that the file lists itself; returns whether it does.
bool Reader::read_written_stages() {
  const std::string by_modules = "parallelism.module_fqns_per_model_part";
  const std::string by_points = "parallelism.pipeline_parallel_split_points";
  const auto parts = written_parts();
  const std::vector<std::string> points = keys_.words(by_points);
  if (parts.empty() && points.empty()) return false;
  const std::string name = parts.empty() ? by_points : by_modules;
  const auto layers = parts.empty() ? stage_layers_of_points(points, flavor_->sizes.layers)
                                    : stage_layers_of_modules(parts, flavor_->sizes.layers);
  if (!layers)
    keys_.fail(name, fmt::format(": the stages must have layers.0 to layers.{} in order, the first tok_embeddings and "
                                 "the last norm and output",
                                 flavor_->sizes.layers - 1));
  const auto stages = static_cast<std::int64_t>(layers->size());
  if (stages % pp_ != 0) keys_.fail(name, fmt::format(": {} stages do not divide over {} ranks", stages, pp_));
  stage_layers_ = *layers;
  set("strategy.virtual_stages", stages / pp_, name);
  set_stages(stage_layers_, name);
  return true;
}

}  // namespace manyworlds::experiments::jobs::torchtitan
