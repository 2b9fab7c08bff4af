#include "experiments/rules/models/document_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/workload/model/architecture.hpp"
#include "core/workload/parts/attention.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::workload::AttentionKernel;
using core::workload::Block;
using core::workload::Branch;
using core::workload::ContextExchange;

/// Parts whose work no document changes: tokens by themselves, and scans, which begin anew at no cost.
constexpr std::array<std::string_view, 5> kByToken{"mlp", "experts", "mamba2", "linear_attention", "gated_delta"};

Violation part_across_documents(const core::workload::Model& model) {
  for (const Block& block : model.architecture->blocks)
    for (const Branch& branch : block.branches) {
      const bool by_token = std::find(kByToken.begin(), kByToken.end(), branch.type) != kByToken.end();
      if (!by_token && !core::workload::sees_all_before(*branch.part))
        return fmt::format("block '{}' has {}", block.name, branch.type);
      if (branch.model->sequence != model.sequence)
        return fmt::format("block '{}': sequence {}, the model's is {}", block.name, branch.model->sequence,
                           model.sequence);
    }
  return std::nullopt;
}

}  // namespace

std::vector<Rule> document_rules() {
  return {
      rule("documents_of_a_model", "documents", "documents are of a model's samples, and given programs have none",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (!e.configuration.model.documents || !e.configuration.programs) return std::nullopt;
             return fmt::format("documents and program {}", e.program.file);
           }),
      rule("documents_of_sequences", "documents",
           "documents are of samples that are sequences: images, and rows of a table, have none", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& model = e.configuration.model;
             return !model.documents || model.sequence > 1 ? std::nullopt : Violation("sequence 1");
           }),
      rule("documents_by_fused_attention", "strategy.stack.attention",
           "documents need fused attention: unfused kernels compute all pairs of a sample, and another softmax reads a "
           "mask of them, which is not built",
           {"Megatron-LM, core/fusions/fused_softmax.py: an arbitrary mask has kernels of its own"},
           [](const ExperimentConfig& e) -> Violation {
             if (!e.configuration.model.documents) return std::nullopt;
             if (e.configuration.strategy.stack.attention != AttentionKernel::unfused) return std::nullopt;
             return "attention unfused";
           }),
      rule("documents_in_context", "strategy.cp_comm",
           "documents with cp > 1 need cp_comm ring, all_gather or ulysses: blocks of gathered keys are those of whole "
           "samples",
           {"by construction: torch's context_parallel() of scaled_dot_product_attention() has no mask of documents"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (!e.configuration.model.documents || s.cp == 1) return std::nullopt;
             if (s.cp_comm != ContextExchange::gathered_blocks) return std::nullopt;
             return fmt::format("cp {}, cp_comm gathered_blocks", s.cp);
           }),
      rule(
          "documents_in_architecture", "documents",
          "documents need layers of causal attention without chunks, feed-forward networks, experts and scans over the "
          "model's own sequence: of other parts it is not built what a document changes",
          {kConstruction},
          [](const ExperimentConfig& e) -> Violation {
            const auto& m = e.configuration.model;
            if (!m.documents || !m.architecture) return std::nullopt;
            return part_across_documents(m);
          }),
  };
}

}  // namespace manyworlds::experiments
