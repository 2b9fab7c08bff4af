// ZeRO stage 3 in the order of PyTorch's FSDP (Zhao et al. 2023, sections 3.3.2 and 4.3): a part of the model (a layer,
// embedding, head) is a unit. A unit is gathered before each pass through it, at most one unit ahead, and freed after.
// In the backward pass the next gather leaves before this unit's gradients, which are scattered as they come; both go
// over one communicator, in that order. The last unit of a forward pass stays when its backward pass follows at once.
// A tied embedding and head on one rank are one unit, the root, gathered for a forward pass and its backward pass.
#include "core/base/error.hpp"
#include "core/workload/build/replica_traffic.hpp"

namespace manyworlds::core::workload {
namespace {

class ShardedTraffic : public ReplicaTraffic {
 public:
  ShardedTraffic(const Model& model, const Strategy& strategy, const StageWork& work, Issuer& issuer)
      : strategy_(strategy),
        issuer_(issuer),
        families_(replicated_families(model, strategy)),
        last_(families_.size()),
        last_across_(families_.size()) {
    for (const auto& parts : work.chunks) {
      std::vector<Parameters>& units = units_.emplace_back();
      for (const Part part : parts) units.push_back(work.of(part).parameters);
    }
    has_root_ = model.tied_embeddings && work.has_both_ends;
    if (!has_root_) return;
    units_.front().front().dense += units_.back().back().dense;
    units_.back().back() = {};
  }

  bool splits(const PassOfStep&) const override { return !families_.empty(); }

  void before_part(const PassOfStep& pass, std::size_t place) override {
    if (place == 0) begin_pass(pass);
    gather_up_to(pass, place);
    const Issuer::Waits gathered = gathers_[place];
    gather_up_to(pass, place + 1);
    for (const std::uint32_t gather : gathered) issuer_.wait_for(gather);
  }

  void after_part(const PassOfStep& pass, std::size_t place) override {
    if (!pass.slot.ends_backward()) return;
    const Parameters& unit = unit_of(pass, place);
    for (std::size_t family = 0; family < families_.size(); ++family) {
      const std::int64_t count = unit.*families_[family].count;
      if (count == 0) continue;
      const ParameterFamily& is = families_[family];
      Issuer::Waits waits = issuer_.all_so_far();
      if (is.shards > 1) {
        last_[family] = issue(family, collective::Kind::reduce_scatter, gradient_bytes(strategy_) * is.padded(count),
                              "gradients of a unit", waits);
        waits = {*last_[family]};
      }
      if (pass.last && is.groups > 1)
        last_across_[family] =
            issuer_.collective(is.stream_across, is.role_across, collective::Kind::all_reduce,
                               gradient_bytes(strategy_) * is.share(count), "share of a unit's gradients", waits);
      if (strategy_.overlap_grad_reduce) continue;
      issuer_.wait_for(last_[family]);
      issuer_.wait_for(last_across_[family]);
    }
  }

  Issuer::Waits finish_gradients() override {
    Issuer::Waits waits;
    for (const auto* all : {&last_, &last_across_})
      for (const auto& last : *all)
        if (last) waits.push_back(*last);
    return waits;
  }

 private:
  std::size_t units_in(const PassOfStep& pass) const {
    return units_[static_cast<std::size_t>(pass.slot.chunk)].size();
  }
  const Parameters& unit_of(const PassOfStep& pass, std::size_t place) const {
    const auto& units = units_[static_cast<std::size_t>(pass.slot.chunk)];
    return units[pass.slot.forward() ? place : units.size() - 1 - place];
  }

  void begin_pass(const PassOfStep& pass) {
    // The gradients of a backward pass are waited for when it ends.
    if (before_ && !before_->slot.forward())
      for (const auto* all : {&last_, &last_across_})
        for (const auto& last : *all) issuer_.wait_for(last);
    follows_at_once_ = pass.slot.begins_backward() && before_ && before_->slot.forward() &&
                       before_->slot.micro_batch == pass.slot.micro_batch && before_->slot.chunk == pass.slot.chunk;
    before_ = pass;
    gathers_.clear();
  }

  /// Whether the unit is there already when a pass comes to it.
  bool is_whole(const PassOfStep& pass, std::size_t place) const {
    if (pass.slot.forward()) return false;
    if (pass.slot.kind == PassKind::weight_gradient) return true;  // gradients of weights need no weights
    const bool is_root = has_root_ && pass.slot.chunk == 0 && place + 1 == units_in(pass);
    return is_root || (follows_at_once_ && place == 0);
  }

  void gather_up_to(const PassOfStep& pass, std::size_t place) {
    for (std::size_t next = gathers_.size(); next <= place && next < units_in(pass); ++next) {
      Issuer::Waits& gathers = gathers_.emplace_back();
      if (is_whole(pass, next)) continue;
      for (std::size_t family = 0; family < families_.size(); ++family)
        if (const std::int64_t count = unit_of(pass, next).*families_[family].count;
            count > 0 && families_[family].shards > 1)
          gathers.push_back(issue(family, collective::Kind::all_gather,
                                  kParameterBytes * families_[family].padded(count), "parameters of a unit",
                                  issuer_.last_kernel()));
    }
  }

  std::uint32_t issue(std::size_t family, collective::Kind kind, std::int64_t bytes, std::string_view name,
                      const Issuer::Waits& waits) {
    return issuer_.collective(families_[family].stream, families_[family].role, kind, bytes, name, waits);
  }

  const Strategy& strategy_;
  Issuer& issuer_;
  const std::vector<ParameterFamily> families_;
  std::vector<std::vector<Parameters>> units_;  // by chunk, in forward order
  bool has_root_ = false;
  std::vector<std::optional<std::uint32_t>> last_, last_across_;  // gradients, by family
  std::optional<PassOfStep> before_;                              // the pass that runs, or ran last
  bool follows_at_once_ = false;                                  // it is the backward of the forward just before
  std::vector<Issuer::Waits> gathers_;                            // of the units of this pass, so far
};

}  // namespace

std::unique_ptr<ReplicaTraffic> make_sharded_traffic(const Model& model, const Strategy& strategy,
                                                     const StageWork& work, Issuer& issuer) {
  return std::make_unique<ShardedTraffic>(model, strategy, work, issuer);
}

}  // namespace manyworlds::core::workload
