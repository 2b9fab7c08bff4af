// Rules about overlapped communication. Each names the settings that contradict each other.
#include "experiments/rules/layouts/overlap_rules.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "experiments/rules/rule_sources.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace manyworlds::experiments {
namespace {

using core::workload::CommunicationEngine;
using core::workload::ContextExchange;

/// Returns how many streams of collectives, without pipeline transfers, a rank may have in flight at once.
std::int64_t collective_streams(const ExperimentConfig& config) {
  const auto& s = config.configuration.strategy;
  const bool experts = config.configuration.model.has_experts();
  const std::int64_t inter_group_streams = s.zero_groups() > 1 ? 1 + experts : 0;
  return (s.tp > 1) + (s.cp > 1) + (s.replicas() > 1) + (s.ep * s.etp > 1) + (experts && s.expert_replicas() > 1) +
         inter_group_streams;
}

std::vector<Rule> tensor_rules() {
  return {
      rule("tensor_chunks_wanted", "strategy.stack.tensor_chunks", "tensor_chunks needs overlap_tensor, which it cuts",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& stack = e.configuration.strategy.stack;
             if (stack.tensor_chunks == 0 || stack.overlap_tensor) return std::nullopt;
             return fmt::format("tensor_chunks {}, overlap_tensor false", stack.tensor_chunks);
           }),
      rule("tokens_by_chunks", "strategy.stack.tensor_chunks",
           "the tokens of a micro-batch on a context-parallel rank must be a multiple of tp x tensor_chunks",
           {"Transformer Engine, module/base.py, initialize_ub(): a buffer is cut into equal chunks"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.tp == 1 || s.stack.tensor_chunks == 0) return std::nullopt;
             const std::int64_t tokens = s.micro_batch * e.configuration.model.sequence / s.cp;
             if (tokens % (s.tp * s.stack.tensor_chunks) == 0) return std::nullopt;
             return fmt::format("tokens {}, tp x tensor_chunks {}", tokens, s.tp * s.stack.tensor_chunks);
           }),
  };
}

std::vector<Rule> context_rules() {
  return {
      rule("cp_comm_wanted", "strategy.cp_comm", "cp_comm other than ring needs cp > 1", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.cp > 1 || s.cp_comm == ContextExchange::ring) return std::nullopt;
             return "cp 1";
           }),
      rule("blocks_of_fused_attention", "strategy.cp_comm",
           "cp_comm gathered_blocks needs a fused attention, whose logarithms merge blocks",
           {"PyTorch, distributed/tensor/experimental/_attention.py: flash, memory-efficient and cuDNN attention only"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.cp_comm != ContextExchange::gathered_blocks) return std::nullopt;
             if (s.stack.attention != core::workload::AttentionKernel::unfused) return std::nullopt;
             return "attention unfused";
           }),
      rule("heads_by_cp", "strategy.cp_comm",
           "under cp_comm ulysses heads and kv_heads must be multiples of tp x cp: a rank has its share of them",
           {"Jacobs et al. 2023 (DeepSpeed-Ulysses), section 3.1: heads are shared out over the group"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& m = e.configuration.model;
             const auto& s = e.configuration.strategy;
             const std::int64_t ranks = core::workload::weight_ranks(s, core::workload::data_part::attention) * s.cp;
             if (s.cp_comm != ContextExchange::ulysses || m.kv() % ranks == 0) return std::nullopt;
             return fmt::format("heads {}, kv_heads {}, tp x cp {}", m.heads, m.kv(), ranks);
           }),
  };
}

std::vector<Rule> engine_rules() {
  return {
      rule("communication_sms_wanted", "strategy.stack.communication_sms",
           "communication_engine sm needs communication_sms, and calibrated has no use for it", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& stack = e.configuration.strategy.stack;
             const CommunicationEngine engine = stack.communication_engine;
             const bool has_sms = stack.communication_sms > 0;
             if (engine == CommunicationEngine::copy || has_sms == (engine == CommunicationEngine::sm))
               return std::nullopt;
             return fmt::format("communication_engine {}, communication_sms {}", has_sms ? "calibrated" : "sm",
                                stack.communication_sms);
           }),
      rule("units_for_kernels", "strategy.stack.communication_sms",
           "communication_sms x the collectives that may run at once (of tensor, context, data and expert parallelism) "
           "must be below the GPU's compute_units",
           {kConstruction, {"gpus_by_tp_pp"}},
           [](const ExperimentConfig& e) -> Violation {
             const std::int64_t sms_each = e.configuration.strategy.stack.communication_sms;
             const std::int64_t streams = collective_streams(e);
             std::int64_t units = e.configuration.gpu.compute_units;
             for (const core::compute::Gpu& gpu : e.configuration.other_gpus)
               units = std::min(units, gpu.compute_units);
             if (sms_each == 0 || sms_each * streams < units) return std::nullopt;
             return fmt::format("communication_sms {}, collectives {}, compute_units {}", sms_each, streams, units);
           }),
  };
}

std::vector<Rule> expert_overlap_rules() {
  using core::workload::Recompute;
  return {
      rule("expert_overlap_fits", "strategy.stack.overlap_experts",
           "overlap_experts needs experts and ep > 1, recompute none or selective, and virtual_stages > 1 with pp > 1 "
           "(Megatron-LM, transformer_config.py): a forward and a backward pass take turns",
           {kTransformerConfig},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (!s.stack.overlap_experts) return std::nullopt;
             const bool experts = e.configuration.model.has_experts();
             if (experts && s.ep > 1 && s.recompute != Recompute::full && (s.pp == 1 || s.virtual_stages > 1))
               return std::nullopt;
             return fmt::format("experts {}, ep {}, recompute {}, pp {}, virtual_stages {}",
                                e.configuration.model.experts, s.ep, s.recompute == Recompute::full ? "full" : "less",
                                s.pp, s.virtual_stages);
           }),
      rule("shared_overlap_fits", "strategy.stack.overlap_shared_expert",
           "overlap_shared_expert needs a shared expert and ep > 1, and no overlap_experts, which hides the same "
           "exchanges (Megatron-LM, transformer_config.py)",
           {kConstruction, {"gpus_by_tp_pp"}},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (!s.stack.overlap_shared_expert) return std::nullopt;
             const std::int64_t shared = e.configuration.model.shared_ffn_hidden;
             if (shared > 0 && s.ep > 1 && !s.stack.overlap_experts) return std::nullopt;
             return fmt::format("shared_ffn_hidden {}, ep {}, overlap_experts {}", shared, s.ep,
                                s.stack.overlap_experts);
           }),
      rule("delayed_weights_fit", "strategy.stack.delay_expert_weights",
           "delay_expert_weights needs experts and ep > 1: gradients of tokens that travel",
           {kConstruction, {"gpus_by_tp_pp"}},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (!s.stack.delay_expert_weights || (e.configuration.model.has_experts() && s.ep > 1))
               return std::nullopt;
             return fmt::format("experts {}, ep {}", e.configuration.model.experts, s.ep);
           }),
  };
}

}  // namespace

std::vector<Rule> overlap_rules() {
  std::vector<Rule> all;
  for (auto part : {tensor_rules(), context_rules(), engine_rules(), expert_overlap_rules()})
    for (Rule& one : part) all.push_back(std::move(one));
  return all;
}

}  // namespace manyworlds::experiments
