#include "farm/verbs/descriptions/model_layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "core/workload/layer/kernel_costs.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/parts/registry.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "experiments/models/read_model_config.hpp"

namespace manyworlds::farm::commands {
namespace {

using core::workload::LayerBranch;
using core::workload::LayerKind;
using core::workload::Model;
using core::workload::Operator;
using core::workload::OpList;
using experiments::models::count_text;
using Json = nlohmann::ordered_json;

/// What one direction computes and moves.
struct PassWork {
  std::int64_t flops = 0, bytes = 0;
};

PassWork work_of(const std::vector<Operator>& operators, OpList Operator::*direction) {
  PassWork sum;
  for (const Operator& each : operators)
    for (const auto& item : each.*direction)
      if (const core::workload::KernelWork* kernel = item.kernel())
        sum.flops += kernel->shape.flops, sum.bytes += kernel->shape.bytes;
  return sum;
}

std::int64_t saved_bytes(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& each : operators) sum += each.tensor_count * (each.saved_bytes + each.attention_core_bytes);
  return sum;
}

/// A part of a layer, or embedding or head.
struct PartRow {
  std::string layer, part;
  std::int64_t layers = 1, parameters = 0, expert_parameters = 0;
  PassWork forward, backward;
  std::int64_t saved = 0;
};

PartRow measured(PartRow row, const std::vector<Operator>& operators) {
  row.forward = work_of(operators, &Operator::forward);
  row.backward = work_of(operators, &Operator::backward);
  row.saved = saved_bytes(operators);
  return row;
}

/// Returns how many layers there are of each kind, in the order of their first layers.
std::vector<std::pair<LayerKind, std::int64_t>> kinds_of(const Model& model) {
  std::vector<std::pair<LayerKind, std::int64_t>> kinds;
  for (const LayerKind kind : core::workload::all_layers(model)) {
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const auto& one) { return one.first == kind; });
    known == kinds.end() ? (void)kinds.emplace_back(kind, 1) : (void)++known->second;
  }
  return kinds;
}

std::string type_of(const Model& model, LayerKind kind, std::size_t index) {
  if (core::workload::is_mtp(kind)) {
    const LayerKind inner = core::workload::inner_kind(model, kind);
    const std::size_t parts = model.architecture ? model.architecture->block_of(inner).branches.size() : 2;
    return index == 0 ? "mtp_input" : index <= parts ? type_of(model, inner, index - 1) : "mtp_output";
  }
  if (model.architecture) return model.architecture->block_of(kind).branches[index].type;
  return index == 0 ? "attention" : kind.experts ? "experts" : "mlp";
}

/// Returns the weights that a table of tokens has more than the vocabulary, which no count has.
std::int64_t padding_of(const Model& model) {
  return (core::workload::padded_vocabulary(model, 1) - model.vocabulary) * model.hidden;
}

/// Whether the output layer has a table of its own.
bool has_output_table(const Model& model) {
  return core::workload::has_head(model) && !model.tied_embeddings;
}

/// Returns a line about the padding, which rows of parameters are without, as the total is, and FLOPs and bytes with.
std::string padding_text(const Model& model) {
  const bool has_table = core::workload::has_embedding(model) || core::workload::has_head(model);
  if (!has_table || padding_of(model) == 0) return "";
  return fmt::format(
      "  parameters are those of {} tokens, as in the total; on ranks a table has {}, a multiple of 128 x tp, and "
      "{} parameters more, which FLOPs and bytes are with\n",
      model.vocabulary, core::workload::padded_vocabulary(model, 1), count_text(padding_of(model)));
}

std::vector<PartRow> rows_of(const Model& model) {
  core::workload::Strategy one_rank;
  one_rank.stack.attention = core::workload::AttentionKernel::cudnn;
  std::vector<PartRow> rows;
  const bool embeds = core::workload::has_embedding(model);
  const std::int64_t embedding = core::workload::embedding_parameters(model, 1) - (embeds ? padding_of(model) : 0);
  rows.push_back(
      measured({"embedding", "", 1, embedding, 0, {}, {}, 0}, core::workload::embedding_operators(model, one_rank)));
  for (const auto& [kind, layers] : kinds_of(model)) {
    std::size_t index = 0;
    core::workload::for_each_branch(model, kind, [&](const LayerBranch& branch) {
      const core::workload::PartParameters own = branch.part.parameters(branch.model),
                                           pairs = branch.part.lora_parameters(branch.model);
      PartRow row{std::string(core::workload::layer_name(model, kind)),
                  type_of(model, kind, index++),
                  layers,
                  own.sharded + own.replicated + pairs.sharded + pairs.replicated +
                      branch.options.norm_count() * core::workload::norm_parameters(branch.model) +
                      (branch.part.tables() != nullptr ? branch.part.tables()->table_parameters() : 0),
                  branch.part.has_experts() ? model.experts * branch.part.expert_parameters(branch.model, 1) : 0,
                  {},
                  {},
                  0};
      std::vector<Operator> operators;
      core::workload::add_branch_operators(operators, branch, one_rank, 0);
      rows.push_back(measured(std::move(row), operators));
    });
  }
  const std::int64_t head =
      core::workload::head_parameters(model, 1, true) - (has_output_table(model) ? padding_of(model) : 0);
  rows.push_back(measured({"head", "", 1, head, 0, {}, {}, 0}, core::workload::head_operators(model, one_rank)));
  return rows;
}

struct NamedFormulas {
  std::string part;
  core::workload::PartFormulas formulas;
  auto key() const { return std::tie(part, formulas.parameters, formulas.expert_parameters, formulas.forward_flops); }
};

/// Returns the formulas of all parts, each once.
std::vector<NamedFormulas> formulas_of(const Model& model) {
  std::vector<NamedFormulas> all;
  for (const auto& [kind, layers] : kinds_of(model)) {
    std::size_t index = 0;
    core::workload::for_each_branch(model, kind, [&](const LayerBranch& branch) {
      NamedFormulas one{type_of(model, kind, index++), branch.part.formulas(branch.model)};
      const bool is_known =
          std::any_of(all.begin(), all.end(), [&](const NamedFormulas& other) { return other.key() == one.key(); });
      if (!is_known) all.push_back(std::move(one));
    });
  }
  return all;
}

std::string teraflops(std::int64_t flops) {
  return fmt::format("{:.4g}", static_cast<double>(flops) * 1e-12);
}

std::string gigabytes(std::int64_t bytes) {
  return fmt::format("{:.4g}", static_cast<double>(bytes) * 1e-9);
}

/// Entries of a line: layer and part, to the left, and numbers, to the right.
using Line = std::array<std::string, 10>;

/// Returns lines whose columns are as wide as those of usual models, and wider where an entry needs it.
std::string in_columns(const std::vector<Line>& lines) {
  std::array<std::size_t, 10> widths{17, 17, 6, 12, 12, 10, 10, 9, 9, 9};
  for (const Line& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size() + 1);
  std::string text;
  for (const Line& line : lines) {
    text += "  ";
    for (std::size_t i = 0; i < line.size(); ++i)
      text += i < 2 ? fmt::format("{:<{}}", line[i], widths[i]) : fmt::format("{:>{}}", line[i], widths[i]);
    text += "\n";
  }
  return text;
}

}  // namespace

std::string layers_text(const Model& model) {
  std::vector<Line> lines{{"layer", "part", "layers", "parameters", "experts", "TFLOP", "TFLOP", "GB", "GB", "MiB"},
                          {"", "", "", "of one", "of one", "forward", "backward", "forward", "backward", "saved"}};
  for (const PartRow& row : rows_of(model))
    lines.push_back({row.layer, row.part, std::to_string(row.layers), count_text(row.parameters),
                     row.expert_parameters > 0 ? count_text(row.expert_parameters) : "", teraflops(row.forward.flops),
                     teraflops(row.backward.flops), gigabytes(row.forward.bytes), gigabytes(row.backward.bytes),
                     fmt::format("{:.1f}", static_cast<double>(row.saved) / (1 << 20))});
  std::string text =
      fmt::format("\nlayers of one sample of {} tokens, on one rank, kernels fused, nothing recomputed\n{}",
                  model.sequence, in_columns(lines) + padding_text(model));
  text += "\nformulas, by the names of options; norms of hidden states apart\n";
  const std::vector<NamedFormulas> formulas = formulas_of(model);
  std::size_t width = 17;
  for (const NamedFormulas& one : formulas) width = std::max(width, one.part.size() + 1);
  for (const NamedFormulas& one : formulas) {
    text += fmt::format("  {:<{}}parameters     {}\n", one.part, width, one.formulas.parameters);
    if (!one.formulas.expert_parameters.empty())
      text += fmt::format("  {:<{}}of an expert   {}\n", "", width, one.formulas.expert_parameters);
    text += fmt::format("  {:<{}}forward FLOPs  {}\n", "", width, one.formulas.forward_flops);
  }
  return text;
}

Json layers_json(const Model& model) {
  Json rows = Json::array(), formulas = Json::array();
  for (const PartRow& row : rows_of(model))
    rows.push_back({{"layer", row.layer},
                    {"part", row.part},
                    {"layers", row.layers},
                    {"parameters", row.parameters},
                    {"expert_parameters", row.expert_parameters},
                    {"forward_flops", row.forward.flops},
                    {"backward_flops", row.backward.flops},
                    {"forward_bytes", row.forward.bytes},
                    {"backward_bytes", row.backward.bytes},
                    {"saved_bytes", row.saved}});
  for (const NamedFormulas& one : formulas_of(model))
    formulas.push_back({{"part", one.part},
                        {"parameters", one.formulas.parameters},
                        {"expert_parameters", one.formulas.expert_parameters},
                        {"forward_flops", one.formulas.forward_flops}});
  return {{"sequence", model.sequence}, {"rows", rows}, {"formulas", formulas}};
}

}  // namespace manyworlds::farm::commands
