// ZeRO stages 0 to 2: gradients leave in buckets. Stage 0 adds them up everywhere; stages 1 and 2 leave each replica
// its share and gather the parameters that the optimizer wrote; stage 2, which keeps no more than its share of the
// gradients, sends them after every pass. With overlap_parameters a step begins with the parameters of the step before
// still on their way, as Megatron-LM's overlap-param-gather has it: each is waited for by the first pass that needs it.
#include "core/base/error.hpp"
#include "core/workload/build/buckets.hpp"
#include "core/workload/build/replica_traffic.hpp"

namespace manyworlds::core::workload {
namespace {

class BucketedTraffic : public ReplicaTraffic {
 public:
  BucketedTraffic(const Model& model, const Strategy& strategy, const StageWork& work, Issuer& issuer)
      : strategy_(strategy), issuer_(issuer), in_order_(work.in_order) {
    for (const ParameterFamily& each : replicated_families(model, strategy)) {
      Family family{each, {}, {}, {}};
      for (const auto& parts : work.chunks) {
        std::vector<std::int64_t> backward_order;
        for (auto part = parts.rbegin(); part != parts.rend(); ++part)
          backward_order.push_back(work.of(*part).parameters.*each.count);
        family.chunks.push_back({buckets(backward_order, strategy.bucket_parameters), {}, 0});
      }
      families_.push_back(std::move(family));
    }
    for (const auto& parts : work.chunks) parts_.push_back(parts.size());
  }

  bool splits(const PassOfStep& pass) const override {
    if (families_.empty()) return false;
    if (pass.slot.forward()) return pass.first && gathers_in_forward();
    return strategy_.overlap_grad_reduce && reduces_after(pass);
  }

  void begin_step() override {
    if (!gathers_in_forward()) return;
    for (const std::size_t chunk : in_order_)
      for (Family& family : families_) {
        if (family.is.shards == 1) continue;
        Chunk& of = family.chunks[chunk];
        of.gathers.resize(of.buckets.size());
        for (std::size_t bucket = of.buckets.size(); bucket-- > 0;)
          of.gathers[bucket] = gather(family, of.buckets[bucket], {});
      }
  }

  void before_part(const PassOfStep& pass, std::size_t place) override {
    if (!pass.slot.forward()) {
      if (place == 0)
        for (Family& family : families_) family.chunks[chunk_of(pass)].left = 0;
      return;
    }
    if (!pass.first || !gathers_in_forward()) return;
    const std::size_t backward_place = parts_[chunk_of(pass)] - 1 - place;
    for (const Family& family : families_) {
      if (family.is.shards == 1) continue;
      const Chunk& chunk = family.chunks[chunk_of(pass)];
      // Gathers run from the last bucket to the first: the first that holds some of the part is the last needed.
      std::size_t bucket = 0;
      while (bucket < chunk.buckets.size() && chunk.buckets[bucket].ready_after < backward_place) ++bucket;
      if (bucket < chunk.buckets.size()) issuer_.wait_for(chunk.gathers[bucket]);
    }
  }

  void after_part(const PassOfStep& pass, std::size_t place) override {
    if (!reduces_after(pass)) return;
    const bool ends = place + 1 == parts_[chunk_of(pass)];
    if (!strategy_.overlap_grad_reduce && !(strategy_.zero == 2 && ends)) return;
    for (Family& family : families_) {
      Chunk& chunk = family.chunks[chunk_of(pass)];
      while (chunk.left < chunk.buckets.size() && chunk.buckets[chunk.left].ready_after <= place)
        reduce(family, chunk.buckets[chunk.left++], pass.last);
      if (strategy_.overlap_grad_reduce) continue;
      issuer_.wait_for(family.last);
      issuer_.wait_for(family.last_across);
    }
  }

  Issuer::Waits finish_gradients() override {
    Issuer::Waits waits;
    for (Family& family : families_) {
      if (!strategy_.overlap_grad_reduce && strategy_.zero < 2)
        for (auto chunk = in_order_.rbegin(); chunk != in_order_.rend(); ++chunk)
          for (const Bucket& bucket : family.chunks[*chunk].buckets) reduce(family, bucket, true);
      for (const auto& last : {family.last, family.last_across})
        if (last) waits.push_back(*last);
    }
    return waits;
  }

  void finish_step() override {
    if (strategy_.zero == 0 || gathers_in_forward()) return;
    for (const std::size_t chunk : in_order_)
      for (Family& family : families_)
        for (const Bucket& bucket : family.chunks[chunk].buckets)
          if (family.is.shards > 1) gather(family, bucket, issuer_.all_so_far());
  }

 private:
  struct Chunk {
    std::vector<Bucket> buckets;
    std::vector<std::uint32_t> gathers;  // of the buckets, with overlap_parameters
    std::size_t left = 0;                // buckets that have left in this pass
  };
  struct Family {
    ParameterFamily is;
    std::vector<Chunk> chunks;
    std::optional<std::uint32_t> last, last_across;  // gradients that left
  };

  static std::size_t chunk_of(const PassOfStep& pass) { return static_cast<std::size_t>(pass.slot.chunk); }
  bool gathers_in_forward() const { return strategy_.zero > 0 && strategy_.stack.overlap_parameters; }
  bool reduces_after(const PassOfStep& pass) const {
    return pass.slot.ends_backward() && (pass.last || strategy_.zero == 2);
  }

  /// `last`: no more of these gradients come in this step.
  void reduce(Family& family, const Bucket& bucket, bool last) {
    const bool shared = strategy_.zero > 0;
    const std::int64_t parameters = shared ? family.is.padded(bucket.parameters) : bucket.parameters;
    Issuer::Waits waits = issuer_.all_so_far();
    if (family.is.shards > 1) {
      family.last = issuer_.collective(family.is.stream, family.is.role,
                                       shared ? collective::Kind::reduce_scatter : collective::Kind::all_reduce,
                                       gradient_bytes(strategy_) * parameters, "gradient bucket", waits);
      waits = {*family.last};
    }
    if (last && family.is.groups > 1)
      family.last_across = issuer_.collective(
          family.is.stream_across, family.is.role_across, collective::Kind::all_reduce,
          gradient_bytes(strategy_) * family.is.share(bucket.parameters), "share of a gradient bucket", waits);
  }
  std::uint32_t gather(const Family& family, const Bucket& bucket, const Issuer::Waits& waits) {
    return issuer_.collective(family.is.stream, family.is.role, collective::Kind::all_gather,
                              kParameterBytes * family.is.padded(bucket.parameters), "parameter bucket", waits);
  }

  const Strategy& strategy_;
  Issuer& issuer_;
  std::vector<Family> families_;
  std::vector<std::size_t> parts_;            // of each chunk
  const std::vector<std::size_t>& in_order_;  // chunks, in the order of the model: ranks with the same take turns alike
};

}  // namespace

std::unique_ptr<ReplicaTraffic> make_bucketed_traffic(const Model& model, const Strategy& strategy,
                                                      const StageWork& work, Issuer& issuer) {
  return std::make_unique<BucketedTraffic>(model, strategy, work, issuer);
}

std::unique_ptr<ReplicaTraffic> make_replica_traffic(const Model& model, const Strategy& strategy,
                                                     const StageWork& work, Issuer& issuer) {
  return strategy.zero == 3 ? make_sharded_traffic(model, strategy, work, issuer)
                            : make_bucketed_traffic(model, strategy, work, issuer);
}

std::vector<ParameterFamily> replicated_families(const Model& model, const Strategy& strategy) {
  std::vector<ParameterFamily> families;
  const std::int64_t groups = strategy.zero_groups();
  if (strategy.replicas() > 1)
    families.push_back({Stream::data, Role::data, Stream::data_across, Role::data_across, &Parameters::dense,
                        strategy.shards(), groups});
  if (model.has_experts() && strategy.expert_replicas() > 1)
    families.push_back({Stream::expert_data, Role::expert_data, Stream::expert_data_across, Role::expert_data_across,
                        &Parameters::experts, strategy.expert_shards(), groups});
  return families;
}

std::int64_t ParameterFamily::padded(std::int64_t parameters) const {
  const std::int64_t unit = shards * kShareUnit;
  return (parameters + unit - 1) / unit * unit;
}

}  // namespace manyworlds::core::workload
