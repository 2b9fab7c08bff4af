// ZeRO stage 3 in the order of PyTorch's FSDP (Zhao et al. 2023, sections 3.3.2 and 4.3): a part of the model (a layer,
// embedding, head) is a unit. A unit is gathered before each pass through it, at most one unit ahead, and freed
// afterwards. In the backward pass the next gather is issued before this unit's gradients are reduce-scattered; both
// use one communicator, in that order. The last unit of a forward pass stays gathered if its backward pass follows
// immediately. An embedding and a head on one rank that share the token table are one unit, the root, which is gathered
// for a forward pass and its backward pass.
#include "core/base/error.hpp"
#include "core/workload/build/replica_traffic.hpp"
#include "core/workload/model/multi_token_prediction.hpp"

namespace manyworlds::core::workload {
namespace {

class ShardedTraffic : public ReplicaTraffic {
 public:
  ShardedTraffic(const Model& model, const Strategy& strategy, const StageWork& work, ProgramBuilder& builder)
      : strategy_(strategy),
        builder_(builder),
        families_(replicated_families(model, strategy)),
        last_(families_.size()),
        last_inter_group_(families_.size()) {
    for (const auto& parts : work.chunks) {
      std::vector<Unit>& units = units_.emplace_back();
      for (const ModelPart part : parts)
        units.push_back({work.of(part).parameters, work.of(part).trained, work.of(part).has_backward()});
    }
    has_root_ = stages_share_table(model) && work.has_embedding_and_head;
    if (!has_root_) return;
    units_.front().front().all.dense += units_.back().back().all.dense;
    units_.front().front().trained.dense += units_.back().back().trained.dense;
    units_.back().back() = {};
  }

  bool splits(const StepPass&) const override { return !families_.empty(); }

  void before_part(const StepPass& step_pass, std::size_t part_index) override {
    if (part_index == 0) begin_pass(step_pass);
    gather_up_to(step_pass, part_index);
    const ProgramBuilder::Waits gathered = gathers_[part_index];
    gather_up_to(step_pass, part_index + 1);
    for (const std::uint32_t gather : gathered) builder_.wait_for(gather);
  }

  void after_part(const StepPass& step_pass, std::size_t part_index) override {
    if (!step_pass.pass.ends_backward()) return;
    const Parameters& unit = unit_of(step_pass, part_index).trained;
    for (std::size_t family = 0; family < families_.size(); ++family) {
      const std::int64_t count = unit.*families_[family].count;
      if (count == 0) continue;
      const ParameterFamily& spec = families_[family];
      ProgramBuilder::Waits waits = builder_.all_work_so_far();
      if (spec.shards > 1) {
        last_[family] = issue(family, collective::Kind::reduce_scatter, gradient_bytes(strategy_) * spec.padded(count),
                              "gradients of a unit", waits);
        waits = {*last_[family]};
      }
      if (step_pass.last && spec.groups > 1)
        last_inter_group_[family] =
            builder_.collective(spec.inter_group_stream, spec.inter_group_role, collective::Kind::all_reduce,
                                gradient_bytes(strategy_) * spec.share(count), "gradient shard of a unit", waits);
      if (strategy_.overlap_grad_reduce) continue;
      builder_.wait_for(last_[family]);
      builder_.wait_for(last_inter_group_[family]);
    }
  }

  ProgramBuilder::Waits finish_gradients() override {
    ProgramBuilder::Waits waits;
    for (const auto* all : {&last_, &last_inter_group_})
      for (const auto& last : *all)
        if (last) waits.push_back(*last);
    return waits;
  }

 private:
  /// All parameters of a unit, which are gathered, and those with gradients.
  struct Unit {
    Parameters all, trained;
    bool has_backward = true;
  };

  std::size_t units_in(const StepPass& step_pass) const {
    return units_[static_cast<std::size_t>(step_pass.pass.chunk)].size();
  }
  const Unit& unit_of(const StepPass& step_pass, std::size_t part_index) const {
    const auto& units = units_[static_cast<std::size_t>(step_pass.pass.chunk)];
    return units[step_pass.pass.forward() ? part_index : units.size() - 1 - part_index];
  }

  void begin_pass(const StepPass& step_pass) {
    // The end of a backward pass waits for its gradients.
    if (current_pass_ && !current_pass_->pass.forward())
      for (const auto* all : {&last_, &last_inter_group_})
        for (const auto& last : *all) builder_.wait_for(last);
    follows_forward_ = step_pass.pass.begins_backward() && current_pass_ && current_pass_->pass.forward() &&
                       current_pass_->pass.micro_batch == step_pass.pass.micro_batch &&
                       current_pass_->pass.chunk == step_pass.pass.chunk;
    current_pass_ = step_pass;
    gathers_.clear();
  }

  /// Whether the unit is already gathered when a pass reaches it.
  bool is_gathered(const StepPass& step_pass, std::size_t part_index) const {
    if (step_pass.pass.forward()) return false;
    if (step_pass.pass.kind == PassKind::weight_gradient) return true;  // weight gradients need no weights
    if (!unit_of(step_pass, part_index).has_backward) return true;      // nor does a pass that does not happen
    const bool is_root = has_root_ && step_pass.pass.chunk == 0 && part_index + 1 == units_in(step_pass);
    return is_root || (follows_forward_ && part_index == 0);
  }

  void gather_up_to(const StepPass& step_pass, std::size_t part_index) {
    for (std::size_t next = gathers_.size(); next <= part_index && next < units_in(step_pass); ++next) {
      ProgramBuilder::Waits& gathers = gathers_.emplace_back();
      if (is_gathered(step_pass, next)) continue;
      for (std::size_t family = 0; family < families_.size(); ++family)
        if (const std::int64_t count = unit_of(step_pass, next).all.*families_[family].count;
            count > 0 && families_[family].shards > 1)
          gathers.push_back(issue(family, collective::Kind::all_gather,
                                  kParameterBytes * families_[family].padded(count), "parameters of a unit",
                                  builder_.last_kernel()));
    }
  }

  std::uint32_t issue(std::size_t family, collective::Kind kind, std::int64_t bytes, std::string_view name,
                      const ProgramBuilder::Waits& waits) {
    return builder_.collective(families_[family].stream, families_[family].role, kind, bytes, name, waits);
  }

  const Strategy& strategy_;
  ProgramBuilder& builder_;
  const std::vector<ParameterFamily> families_;
  std::vector<std::vector<Unit>> units_;  // by chunk, in forward order
  bool has_root_ = false;
  std::vector<std::optional<std::uint32_t>> last_, last_inter_group_;  // latest reductions, by family
  std::optional<StepPass> current_pass_;                               // the pass that runs, or ran last
  bool follows_forward_ = false;                // this backward pass follows its own forward pass
  std::vector<ProgramBuilder::Waits> gathers_;  // by unit of this pass, so far
};

}  // namespace

std::unique_ptr<ReplicaTraffic> make_sharded_traffic(const Model& model, const Strategy& strategy,
                                                     const StageWork& work, ProgramBuilder& builder) {
  return std::make_unique<ShardedTraffic>(model, strategy, work, builder);
}

}  // namespace manyworlds::core::workload
