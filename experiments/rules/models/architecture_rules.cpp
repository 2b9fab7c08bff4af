#include "experiments/rules/models/architecture_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/model/layer_kinds.hpp"
#include "core/workload/model/token_trade.hpp"
#include "core/workload/model/wide_stream.hpp"
#include "core/workload/operators/context_sizes.hpp"
#include "core/workload/operators/key_heads.hpp"
#include "core/workload/parts/registry.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::workload::Architecture;
using core::workload::Block;
using core::workload::Branch;
using core::workload::Model;
using core::workload::ShardAxis;
using core::workload::ShardedSize;
using core::workload::Strategy;

const Architecture* architecture_of(const ExperimentConfig& config) {
  return config.configuration.model.architecture.get();
}

/// The name of the ranks that a size is divided over, and their number.
struct Ranks {
  const char* name;
  std::int64_t count;
};
Ranks ranks_of(ShardAxis axis, std::int64_t weight_ranks, const Strategy& strategy) {
  if (axis == ShardAxis::tensor) return {"tp", weight_ranks};
  return axis == ShardAxis::expert ? Ranks{"ep", strategy.ep} : Ranks{"etp", strategy.etp};
}

/// Calls `visit` with the block and the branch of every part until it returns a violation.
template <class Visitor>
Violation first_violation(const Architecture& architecture, Visitor&& visit) {
  for (const Block& block : architecture.blocks)
    for (const Branch& branch : block.branches)
      if (Violation violation = visit(block, branch)) return violation;
  return std::nullopt;
}

Violation undivided_size(const Architecture& architecture, const Strategy& strategy) {
  return first_violation(architecture, [&](const Block& block, const Branch& branch) -> Violation {
    const auto* shares = dynamic_cast<const core::workload::SharesKeyHeads*>(branch.part.get());
    for (const ShardedSize& size : branch.part->sharded_sizes(*branch.model)) {
      if (shares != nullptr && size.is_of_keys) continue;
      const Ranks ranks =
          ranks_of(size.axis, core::workload::weight_ranks(strategy, branch.part->data_part()), strategy);
      if (size.size % ranks.count != 0)
        return fmt::format("block '{}': {} {} of {}, {} {}", block.name, size.name, size.size, branch.type, ranks.name,
                           ranks.count);
    }
    const std::int64_t tp = core::workload::weight_ranks(strategy, branch.part->data_part());
    const std::string heads = shares == nullptr ? "" : shares->unshared_key_heads(*branch.model, strategy, tp);
    if (!heads.empty()) return fmt::format("block '{}': {}", block.name, heads);
    return std::nullopt;
  });
}

Violation undivided_tokens(const Architecture& architecture, const Strategy& strategy) {
  const std::int64_t ranks = strategy.cp * (strategy.sequence_parallel ? strategy.tp : 1);
  return first_violation(architecture, [&](const Block& block, const Branch& branch) -> Violation {
    if (branch.model->sequence % ranks == 0) return std::nullopt;
    return fmt::format("block '{}': sequence {}, cp x tp {}", block.name, branch.model->sequence, ranks);
  });
}

Violation heads_of_mixers(const Architecture& architecture, const Strategy& strategy) {
  return first_violation(architecture, [&](const Block& block, const Branch& branch) -> Violation {
    const auto* part = dynamic_cast<const core::workload::TradesTokens*>(branch.part.get());
    const std::int64_t tp = core::workload::weight_ranks(strategy, branch.part->data_part());
    const std::string size = part == nullptr ? "" : part->undivided_size(tp, strategy.cp);
    if (size.empty()) return std::nullopt;
    return fmt::format("block '{}': {} of {}, tp {} x cp {}", block.name, size, branch.type, tp, strategy.cp);
  });
}

Violation context_of_states(const Architecture& architecture) {
  return first_violation(architecture, [](const Block& block, const Branch& branch) -> Violation {
    if (branch.part->shares_context()) return std::nullopt;
    return fmt::format("block '{}' has {}", block.name, branch.type);
  });
}

Violation undivided_context(const Architecture& architecture, const Strategy& strategy) {
  return first_violation(architecture, [&](const Block& block, const Branch& branch) -> Violation {
    const auto* part = dynamic_cast<const core::workload::DividesInContext*>(branch.part.get());
    const std::string size = part == nullptr ? "" : part->undivided_in_context(*branch.model, strategy);
    if (size.empty()) return std::nullopt;
    return fmt::format("block '{}': {} of {}", block.name, size, branch.type);
  });
}

/// Returns a violation if a network is read across stages, through all of which its output would have to go.
Violation cut_networks(const Architecture& architecture, const Strategy& strategy) {
  if (strategy.stages().count() == 1) return std::nullopt;
  return first_violation(architecture, [](const Block& block, const Branch& branch) -> Violation {
    if (!branch.part->reads_other_network()) return std::nullopt;
    return fmt::format("block '{}' has {}", block.name, branch.type);
  });
}

/// Returns a violation if a part has a window that it does not heed, because it selects the tokens that it reads.
Violation window_of_selected(const Architecture& architecture) {
  return first_violation(architecture, [](const Block& block, const Branch& branch) -> Violation {
    const bool selects = branch.type == "sparse_attention" || branch.type == "compressed_attention";
    if (!selects || branch.model->window == 0) return std::nullopt;
    return fmt::format("window {}, block '{}' has {}", branch.model->window, block.name, branch.type);
  });
}

/// Returns the parts of the model that tensor-parallel ranks can share out by samples, a set of workload::data_part.
core::workload::Modules data_parts_of(const Model& model) {
  core::workload::Modules parts = 0;
  for (const core::workload::LayerKind kind : core::workload::layer_kinds(model))
    core::workload::for_each_branch(
        model, kind, [&](const core::workload::LayerBranch& branch) { parts |= branch.part.data_part(); });
  return parts;
}

/// Returns the names of a set of workload::data_part.
std::string names_of(core::workload::Modules parts) {
  std::vector<std::string_view> names;
  const std::vector<std::string>& all = core::workload::data_part_names();
  for (std::size_t i = 0; i < all.size(); ++i)
    if ((parts >> i & 1) != 0) names.push_back(all[i]);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Returns a violation if a layer reads the several vectors of a token elsewhere than in its first part, whose input is
/// what full recomputation keeps.
Violation wide_stream_inside(const Architecture& architecture) {
  const auto widens = [](const Branch& branch) {
    return dynamic_cast<const core::workload::WidensStream*>(branch.part.get()) != nullptr;
  };
  return first_violation(architecture, [&](const Block& block, const Branch& branch) -> Violation {
    const Branch& first = block.branches.front();
    const bool reads_stream = !first.options.has_norm_before() && !first.options.residual;
    if (!widens(branch) || (widens(first) && reads_stream)) return std::nullopt;
    return fmt::format("recompute full, block '{}' begins with another part than its {}", block.name, branch.type);
  });
}

/// Returns what of a layout embedding tables cannot have.
Violation layout_of_tables(const Strategy& strategy) {
  for (const auto& [name, ranks] :
       {std::pair{"tp", strategy.tp}, {"pp", strategy.pp}, {"cp", strategy.cp}, {"etp", strategy.etp}})
    if (ranks > 1) return fmt::format("{} {}", name, ranks);
  if (strategy.ep != strategy.dp) return fmt::format("ep {}, dp {}", strategy.ep, strategy.dp);
  if (strategy.global_batch != strategy.dp * strategy.micro_batch)
    return fmt::format("global_batch {}, dp {} x micro_batch {}", strategy.global_batch, strategy.dp,
                       strategy.micro_batch);
  return std::nullopt;
}

}  // namespace

std::vector<Rule> architecture_rules() {
  return {
      rule("architecture_fits", "model.architecture",
           "an architecture has as many layers as the model, and its parts have all sizes that they need",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             return e.architecture_error.empty() ? std::nullopt : Violation(e.architecture_error);
           }),
      rule("parts_by_ranks", "model.architecture",
           "heads and widths of parts must be multiples of the ranks that share them", {kDivide},
           [](const ExperimentConfig& e) -> Violation {
             const Architecture* architecture = architecture_of(e);
             return architecture == nullptr ? std::nullopt : undivided_size(*architecture, e.configuration.strategy);
           }),
      rule("networks_by_ranks", "model.architecture",
           "the tokens of every network must be a multiple of cp, and under sequence_parallel of cp x tp", {kDivide},
           [](const ExperimentConfig& e) -> Violation {
             const Architecture* architecture = architecture_of(e);
             return architecture == nullptr ? std::nullopt : undivided_tokens(*architecture, e.configuration.strategy);
           }),
      rule("context_of_states", "strategy.cp",
           "cp > 1 is for parts whose ranks can share the tokens of a sample: not compressed attention, attention by "
           "distances, nor parts whose windows reach over the border of a rank's rows or tokens",
           {"by construction; Megatron-LM's dev branch @d48bd6b, core/transformer/transformer_config.py: of compressed "
            "attention ranks have contiguous shares of packed samples, whose work differs"},
           [](const ExperimentConfig& e) -> Violation {
             const Architecture* architecture = architecture_of(e);
             if (architecture == nullptr || e.configuration.strategy.cp == 1) return std::nullopt;
             return context_of_states(*architecture);
           }),
      rule("heads_of_mixers", "strategy.cp",
           "heads of mixers must be multiples of tp x cp: ranks trade their tokens for a share of the heads; groups of "
           "a tensor-parallel rank must be a multiple of cp, or cp one of them",
           {"Megatron-LM, core/ssm/mamba_context_parallel.py and core/transformer/transformer_config.py",
            {"parts_by_ranks"}},
           [](const ExperimentConfig& e) -> Violation {
             const Architecture* architecture = architecture_of(e);
             if (architecture == nullptr || e.configuration.strategy.cp == 1) return std::nullopt;
             return heads_of_mixers(*architecture, e.configuration.strategy);
           }),
      rule("context_of_parts", "strategy.cp",
           "the text of joint parts, and the keys of cross attention that are not whole on every rank, must be "
           "multiples of cp, and under sequence_parallel of cp x tp; under cp_comm ulysses their heads of tp x cp",
           {"by construction: every rank has its share of both (diffusers, models/transformers/transformer_flux.py, "
            "_cp_plan)",
            {"parts_by_ranks"}},
           [](const ExperimentConfig& e) -> Violation {
             const Architecture* architecture = architecture_of(e);
             if (architecture == nullptr || e.configuration.strategy.cp == 1) return std::nullopt;
             return undivided_context(*architecture, e.configuration.strategy);
           }),
      rule("window_of_part", "model.window",
           "window is of attention to all tokens before: what sparse and compressed attention read are index_keys and "
           "window_keys of their own",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const Architecture* architecture = architecture_of(e);
             return architecture == nullptr ? std::nullopt : window_of_selected(*architecture);
           }),
      rule("architecture_sums_gradients", "strategy.gradient_exchange",
           "gradient_exchange other than sums is for models without an architecture", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const bool sums = e.configuration.strategy.gradient_exchange == core::workload::GradientExchange::sums;
             return architecture_of(e) == nullptr || sums ? std::nullopt : Violation("architecture given");
           }),
      rule("architecture_recompute", "strategy.recompute",
           "recompute per_op and split by_cost are for models without an architecture, and full recomputation of a "
           "layer with hyper-connections for one that begins with such a part, whose input is kept",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             if (architecture_of(e) == nullptr) return std::nullopt;
             if (s.recompute == core::workload::Recompute::per_op) return "recompute per_op";
             if (s.recompute == core::workload::Recompute::full)
               if (Violation wide = wide_stream_inside(*architecture_of(e))) return wide;
             return s.split == core::workload::LayerSplit::by_cost ? Violation("split by_cost") : std::nullopt;
           }),
      rule("stages_of_networks", "strategy.pp",
           "with several stages no layer may read a network but the one before its own, whose output would have to go "
           "through all stages between",
           {"by construction"},
           [](const ExperimentConfig& e) -> Violation {
             const Architecture* architecture = architecture_of(e);
             return architecture == nullptr ? std::nullopt : cut_networks(*architecture, e.configuration.strategy);
           }),
  };
}

std::vector<Rule> data_part_rules() {
  const std::string key = "strategy.data_parts";
  return {
      rule("data_parts_by_samples", key,
           "parts that tensor-parallel ranks share out by samples need sequence_parallel, so that ranks have tokens of "
           "their own between parts, and a micro_batch that is a multiple of tp",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             if (s.data_parts == 0 || (s.sequence_parallel && s.micro_batch % s.tp == 0)) return std::nullopt;
             return fmt::format("sequence_parallel {}, micro_batch {}, tp {}", s.sequence_parallel, s.micro_batch,
                                s.tp);
           }),
      rule("data_parts_in_model", key, "data_parts names parts that a layer of the model has", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const core::workload::Modules wanted = e.configuration.strategy.data_parts;
             if (wanted == 0 || !e.architecture_error.empty()) return std::nullopt;
             const core::workload::Modules missing = wanted & ~data_parts_of(e.configuration.model);
             return missing == 0 ? std::nullopt : Violation("no layer has " + names_of(missing));
           }),
      rule("data_parts_are_trained", key, "data_parts is for models all of whose weights are trained", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (e.configuration.strategy.data_parts == 0 || !e.architecture_error.empty()) return std::nullopt;
             const bool frozen = core::workload::has_frozen_part(e.configuration.model);
             return frozen ? Violation("a part is frozen") : std::nullopt;
           }),
      rule("data_parts_sum_gradients", key, "data_parts needs gradient_exchange sums", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const Strategy& s = e.configuration.strategy;
             const bool sums = s.gradient_exchange == core::workload::GradientExchange::sums;
             return s.data_parts == 0 || sums ? std::nullopt : Violation("factors are exchanged");
           }),
  };
}

std::vector<Rule> network_stage_rules() {
  return {
      rule("tables_by_data_parallel_ranks", "strategy.ep",
           "embedding tables need tp, pp, cp and etp 1, ep as many as dp, and one micro-batch: all data-parallel ranks "
           "share the tables out, and update them in the backward pass",
           {"by construction: the layout of DLRM (Mudigere et al. 2022); TorchRec's 2D parallelism, where "
            "groups of ranks have all tables, is not built",
            {"gpus_by_tp_pp"}},
           [](const ExperimentConfig& e) -> Violation {
             if (!core::workload::has_tables(e.configuration.model)) return std::nullopt;
             return layout_of_tables(e.configuration.strategy);
           }),
  };
}

}  // namespace manyworlds::experiments
