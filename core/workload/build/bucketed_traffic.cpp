// ZeRO stages 0 to 2: gradients are reduced in buckets. Stage 0 all-reduces them; stages 1 and 2 reduce-scatter them
// and gather the parameters that the optimizer wrote; stage 2, which keeps only its shard of the gradients, reduces
// them after every pass, for which the next one waits unless they overlap. With overlap_parameters a step begins while
// the previous step's parameters are still being gathered, as in Megatron-LM's overlap-param-gather: the first pass
// that needs a bucket waits for it. Weights whose factors are exchanged are in no bucket.
#include "core/base/error.hpp"
#include "core/workload/build/buckets.hpp"
#include "core/workload/build/factor_traffic.hpp"
#include "core/workload/build/replica_traffic.hpp"

namespace manyworlds::core::workload {
namespace {

class BucketedTraffic : public ReplicaTraffic {
 public:
  BucketedTraffic(const Model& model, const Strategy& strategy, const StageWork& work, ProgramBuilder& builder)
      : strategy_(strategy), builder_(builder), model_order_(work.model_order), factors_(work, builder) {
    for (const ParameterFamily& each : replicated_families(model, strategy)) {
      Family family{each, {}, {}, {}};
      for (const auto& parts : work.chunks) {
        std::vector<std::int64_t> backward_order;
        for (auto part = parts.rbegin(); part != parts.rend(); ++part)
          backward_order.push_back(work.of(*part).summed().*each.count);
        family.chunks.push_back({buckets(backward_order, strategy.bucket_parameters), {}, 0});
      }
      families_.push_back(std::move(family));
    }
    for (const auto& parts : work.chunks) parts_.push_back(parts.size());
  }

  bool splits(const StepPass& step_pass) const override {
    if (families_.empty()) return false;
    if (step_pass.pass.forward()) return step_pass.first && gathers_in_forward();
    return strategy_.overlap_grad_reduce && reduces_after(step_pass);
  }

  void begin_step() override {
    if (!gathers_in_forward()) return;
    for (const std::size_t chunk : model_order_)
      for (Family& family : families_) {
        if (family.spec.shards == 1) continue;
        Chunk& gathered = family.chunks[chunk];
        gathered.gathers.resize(gathered.buckets.size());
        for (std::size_t bucket = gathered.buckets.size(); bucket-- > 0;)
          gathered.gathers[bucket] = gather(family, gathered.buckets[bucket], {});
      }
  }

  void before_part(const StepPass& step_pass, std::size_t part_index) override {
    if (part_index == 0 && strategy_.zero == 2 && !strategy_.overlap_grad_reduce)
      for (const Family& family : families_) {
        builder_.wait_for(family.last);
        builder_.wait_for(family.last_inter_group);
      }
    if (!step_pass.pass.forward()) {
      if (part_index == 0)
        for (Family& family : families_) family.chunks[chunk_of(step_pass)].reduced = 0;
      return;
    }
    if (!step_pass.first || !gathers_in_forward()) return;
    const std::size_t backward_index = parts_[chunk_of(step_pass)] - 1 - part_index;
    for (const Family& family : families_) {
      if (family.spec.shards == 1) continue;
      const Chunk& chunk = family.chunks[chunk_of(step_pass)];
      // Gathers run from the last bucket to the first, so the first bucket with parameters of the part arrives last.
      std::size_t bucket = 0;
      while (bucket < chunk.buckets.size() && chunk.buckets[bucket].ready_after < backward_index) ++bucket;
      if (bucket < chunk.buckets.size()) builder_.wait_for(chunk.gathers[bucket]);
    }
  }

  void after_part(const StepPass& step_pass, std::size_t part_index) override {
    if (!reduces_after(step_pass)) return;
    if (strategy_.overlap_grad_reduce) factors_.gather(chunk_of(step_pass), part_index);
    const bool ends = part_index + 1 == parts_[chunk_of(step_pass)];
    if (!strategy_.overlap_grad_reduce && !(strategy_.zero == 2 && ends)) return;
    for (Family& family : families_) {
      Chunk& chunk = family.chunks[chunk_of(step_pass)];
      while (chunk.reduced < chunk.buckets.size() && chunk.buckets[chunk.reduced].ready_after <= part_index)
        reduce(family, chunk.buckets[chunk.reduced++], step_pass.last);
    }
  }

  ProgramBuilder::Waits finish_gradients() override {
    ProgramBuilder::Waits waits;
    if (!strategy_.overlap_grad_reduce) factors_.gather_all();
    for (Family& family : families_) {
      if (!strategy_.overlap_grad_reduce && strategy_.zero < 2)
        for (auto chunk = model_order_.rbegin(); chunk != model_order_.rend(); ++chunk)
          for (const Bucket& bucket : family.chunks[*chunk].buckets) reduce(family, bucket, true);
      for (const auto& last : {family.last, family.last_inter_group})
        if (last) waits.push_back(*last);
    }
    factors_.compute_gradients();
    return waits;
  }

  void finish_step() override {
    if (strategy_.zero == 0 || gathers_in_forward()) return;
    for (const std::size_t chunk : model_order_)
      for (Family& family : families_)
        for (const Bucket& bucket : family.chunks[chunk].buckets)
          if (family.spec.shards > 1) gather(family, bucket, builder_.all_work_so_far());
  }

 private:
  struct Chunk {
    std::vector<Bucket> buckets;
    std::vector<std::uint32_t> gathers;  // by bucket, with overlap_parameters
    std::size_t reduced = 0;             // buckets that were reduced in this pass
  };
  struct Family {
    ParameterFamily spec;
    std::vector<Chunk> chunks;
    std::optional<std::uint32_t> last, last_inter_group;  // latest reductions of gradients
  };

  static std::size_t chunk_of(const StepPass& step_pass) { return static_cast<std::size_t>(step_pass.pass.chunk); }
  bool gathers_in_forward() const { return strategy_.zero > 0 && strategy_.stack.overlap_parameters; }
  bool reduces_after(const StepPass& step_pass) const {
    return step_pass.pass.ends_backward() && (step_pass.last || strategy_.zero == 2);
  }

  /// `last`: the step adds nothing more to these gradients.
  void reduce(Family& family, const Bucket& bucket, bool last) {
    const bool shared = strategy_.zero > 0;
    const std::int64_t parameters = shared ? family.spec.padded(bucket.parameters) : bucket.parameters;
    ProgramBuilder::Waits waits = builder_.all_work_so_far();
    if (family.spec.shards > 1) {
      family.last = builder_.collective(family.spec.stream, family.spec.role,
                                        shared ? collective::Kind::reduce_scatter : collective::Kind::all_reduce,
                                        gradient_bytes(strategy_) * parameters, "gradient bucket", waits);
      waits = {*family.last};
    }
    if (last && family.spec.groups > 1)
      family.last_inter_group = builder_.collective(
          family.spec.inter_group_stream, family.spec.inter_group_role, collective::Kind::all_reduce,
          gradient_bytes(strategy_) * family.spec.share(bucket.parameters), "gradient bucket shard", waits);
  }
  std::uint32_t gather(const Family& family, const Bucket& bucket, const ProgramBuilder::Waits& waits) {
    return builder_.collective(family.spec.stream, family.spec.role, collective::Kind::all_gather,
                               kParameterBytes * family.spec.padded(bucket.parameters), "parameter bucket", waits);
  }

  const Strategy& strategy_;
  ProgramBuilder& builder_;
  std::vector<Family> families_;
  std::vector<std::size_t> parts_;  // number of parts, by chunk
  const std::vector<std::size_t>&
      model_order_;  // chunks in the order of the model, so that ranks with the same chunks issue the same collectives
  FactorTraffic factors_;
};

}  // namespace

std::unique_ptr<ReplicaTraffic> make_bucketed_traffic(const Model& model, const Strategy& strategy,
                                                      const StageWork& work, ProgramBuilder& builder) {
  return std::make_unique<BucketedTraffic>(model, strategy, work, builder);
}

std::unique_ptr<ReplicaTraffic> make_replica_traffic(const Model& model, const Strategy& strategy,
                                                     const StageWork& work, ProgramBuilder& builder) {
  return strategy.zero == 3 ? make_sharded_traffic(model, strategy, work, builder)
                            : make_bucketed_traffic(model, strategy, work, builder);
}

std::vector<ParameterFamily> replicated_families(const Model& model, const Strategy& strategy) {
  std::vector<ParameterFamily> families;
  const std::int64_t groups = strategy.zero_groups();
  if (strategy.replicas() > 1)
    families.push_back({Stream::data, Role::data, Stream::data_inter_group, Role::data_inter_group, &Parameters::dense,
                        strategy.shards(), groups});
  if (model.has_experts() && strategy.expert_replicas() > 1)
    families.push_back({Stream::expert_data, Role::expert_data, Stream::expert_data_inter_group,
                        Role::expert_data_inter_group, &Parameters::experts, strategy.expert_shards(), groups});
  return families;
}

std::int64_t ParameterFamily::padded(std::int64_t parameters) const {
  const std::int64_t unit = shards * kShardAlignment;
  return (parameters + unit - 1) / unit * unit;
}

}  // namespace manyworlds::core::workload
