#include "core/workload/layer/layer_parameters.hpp"

#include "core/workload/layer/distillation.hpp"
#include "core/workload/parts/registry.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {
namespace {

/// Returns the weights of a layer but those of its routed experts. Every tensor-parallel rank has those of
/// `data_parts`, a set of workload::data_part.
PartParameters dense_part(const Model& model, LayerKind kind, Modules data_parts = 0) {
  PartParameters sum;
  for_each_branch(model, kind, [&](const LayerBranch& branch) {
    const PartParameters part = branch.part.parameters(branch.model), pairs = branch.part.lora_parameters(branch.model);
    const std::int64_t sharded = part.sharded + pairs.sharded;
    const bool is_shared = (branch.part.data_part() & data_parts) == 0;
    sum.sharded += is_shared ? sharded : 0;
    sum.replicated += (is_shared ? 0 : sharded) + part.replicated + pairs.replicated +
                      branch.options.norm_count() * norm_parameters(branch.model);
  });
  return sum;
}

/// Returns the parameters of the routed experts of a layer, if there are `experts` of them.
std::int64_t routed_parameters(const Model& model, LayerKind kind, std::int64_t experts, std::int64_t etp) {
  std::int64_t sum = 0;
  for_each_branch(model, kind, [&](const LayerBranch& branch) {
    if (branch.part.has_experts()) sum += experts * branch.part.expert_parameters(branch.model, etp);
  });
  return sum;
}

/// Returns the sum of a number over the tables of a layer that ranks share out.
template <class Number>
std::int64_t sum_over_tables(const Model& model, LayerKind kind, Number&& number) {
  std::int64_t sum = 0;
  for_each_branch(model, kind, [&](const LayerBranch& branch) {
    if (branch.part.tables() != nullptr) sum += number(*branch.part.tables());
  });
  return sum;
}

/// Returns the model's parameters if each layer with experts had `experts` of them, and tables had `of_tables`.
std::int64_t parameters_with_experts(const Model& model, std::int64_t experts,
                                     std::int64_t (SharedTables::*of_tables)() const) {
  const bool embeds = has_embedding(model), has_output = has_head(model);
  // An output layer that is tied shares the model's table, or that of a network's own.
  const std::int64_t tables = (embeds ? 1 : 0) + (has_output && !model.tied_embeddings ? 1 : 0);
  std::int64_t sum = tables * model.vocabulary * model.hidden + final_norm_parameters(model) +
                     (embeds ? position_parameters(model) : 0);
  for (const LayerKind kind : all_layers(model)) {
    const PartParameters dense = dense_part(model, kind);
    sum += dense.sharded + dense.replicated + routed_parameters(model, kind, experts, 1);
    sum += sum_over_tables(model, kind, [&](const SharedTables& one) { return (one.*of_tables)(); });
  }
  return sum;
}

}  // namespace

std::int64_t replicated_layer_parameters(const Model& model, const Strategy& strategy, LayerKind kind) {
  return dense_part(model, kind, strategy.data_parts).replicated;
}

Parameters layer_parameters(const Model& model, const Strategy& strategy, LayerKind kind) {
  const PartParameters dense = dense_part(model, kind, strategy.data_parts);
  return {dense.sharded / strategy.tp + dense.replicated,
          routed_parameters(model, kind, model.experts / strategy.ep, strategy.etp)};
}

std::int64_t table_copy_parameters(const Model& model, const Strategy& strategy) {
  const bool has_table = model.tied_embeddings || strategy.stages().first_and_last_share_rank();
  return model.mtp_layers > 0 && !has_table ? token_table_parameters(model, strategy.tp) : 0;
}

Parameters stage_parameters(const Model& model, const Strategy& strategy, std::int64_t stage) {
  Parameters sum;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const LayerKind kind : chunk_layers(model, strategy, stage, chunk)) {
      const Parameters layer = layer_parameters(model, strategy, kind);
      sum.dense += layer.dense, sum.experts += layer.experts;
    }
  const StageMap stages = strategy.stages();
  if (stages.has_first(stage)) sum.dense += embedding_parameters(model, strategy.tp);
  if (stages.has_last(stage))
    sum.dense += head_parameters(model, strategy.tp, stages.first_and_last_share_rank()) +
                 table_copy_parameters(model, strategy);
  const Parameters of_teacher = teacher_parameters(model, strategy, stage);
  return {sum.dense + of_teacher.dense, sum.experts + of_teacher.experts};
}

std::int64_t model_parameters(const Model& model) {
  return parameters_with_experts(model, model.experts, &SharedTables::table_parameters);
}

std::int64_t active_parameters(const Model& model) {
  return parameters_with_experts(model, model.experts_per_token, &SharedTables::looked_up_parameters);
}

TableBytes table_bytes(const Model& model, const Strategy& strategy, RankClass rank_class) {
  TableBytes sum;
  if (!has_tables(model)) return sum;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const LayerKind kind : chunk_layers(model, strategy, rank_class.stage, chunk))
      for_each_branch(model, kind, [&](const LayerBranch& branch) {
        if (branch.part.tables() == nullptr) return;
        const TableBytes one = branch.part.tables()->bytes_on(strategy.ep, rank_class.expert_rank);
        sum.weights += one.weights, sum.optimizer += one.optimizer;
      });
  return sum;
}

}  // namespace manyworlds::core::workload
