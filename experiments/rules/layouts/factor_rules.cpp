#include "experiments/rules/layouts/factor_rules.hpp"

#include <fmt/format.h>

#include "core/workload/schedule/schedule.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::workload::GradientExchange;
using core::workload::Precision;

constexpr const char* kKey = "strategy.gradient_exchange";

bool exchanges_factors(const ExperimentConfig& config) {
  return config.configuration.strategy.gradient_exchange != GradientExchange::sums;
}

bool has_dense_layer(const core::workload::Model& model) {
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (!model.layer_kind(layer).experts) return true;
  return false;
}

}  // namespace

std::vector<Rule> factor_rules() {
  return {
      rule("factor_weights_wanted", "strategy.factor_weights", "factor_weights needs gradient_exchange factors",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.factor_weights == 0 || s.gradient_exchange == GradientExchange::factors) return std::nullopt;
             return fmt::format("gradient_exchange {}", exchanges_factors(e) ? "cheapest" : "sums");
           }),
      rule("factors_of_replicas", kKey, "gradient_exchange other than sums needs several replicas",
           {kConstruction, {"gpus_by_tp_pp"}},
           [](const ExperimentConfig& e) -> Violation {
             if (!exchanges_factors(e) || e.configuration.strategy.replicas() > 1) return std::nullopt;
             return "replicas 1";
           }),
      rule("factors_of_dense_layers", kKey,
           "gradient_exchange other than sums needs a layer without experts: layers with experts sum their gradients",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (!exchanges_factors(e) || has_dense_layer(e.configuration.model)) return std::nullopt;
             return fmt::format("experts {} in all of layers {}", e.configuration.model.experts,
                                e.configuration.model.layers);
           }),
      rule("factors_without_zero", kKey,
           "gradient_exchange other than sums needs zero 0: every replica computes the sum of all gradients, of which "
           "it would keep a shard",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const std::int64_t zero = e.configuration.strategy.zero;
             if (!exchanges_factors(e) || zero == 0) return std::nullopt;
             return fmt::format("zero {}", zero);
           }),
      rule("factors_of_whole_passes", kKey,
           "gradient_exchange other than sums needs a schedule whose backward passes are whole: 1f1b, gpipe or "
           "interleaved",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& schedule = core::workload::schedule_type(e.configuration.strategy.schedule);
             if (!exchanges_factors(e) || schedule.has_formula) return std::nullopt;
             return fmt::format("schedule {}", schedule.name);
           }),
      rule("factors_of_one_micro_batch", kKey,
           "gradient_exchange other than sums needs one micro-batch in a step: factors of several are not supported, "
           "and take as many bytes each",
           {kConstruction, {"gpus_by_tp_pp", "batch_by_replicas"}},
           [](const ExperimentConfig& e) -> Violation {
             const std::int64_t micro_batches = e.configuration.strategy.micro_batches();
             if (!exchanges_factors(e) || micro_batches == 1) return std::nullopt;
             return fmt::format("global_batch / (dp x micro_batch) {}", micro_batches);
           }),
      rule("factors_in_16_bits", kKey,
           "gradient_exchange other than sums needs GEMMs of 16 bits: replicas scale narrower factors differently",
           {"by construction: a GEMM over the tokens of all replicas has one scale for each input (Micikevicius et al. "
            "2022, FP8 formats, section 3)"},
           [](const ExperimentConfig& e) -> Violation {
             const Precision precision = e.configuration.strategy.stack.precision;
             if (!exchanges_factors(e) || precision == Precision::bf16 || precision == Precision::fp16)
               return std::nullopt;
             return fmt::format("precision {}", precision == Precision::nvfp4   ? "nvfp4"
                                                : precision == Precision::mxfp8 ? "mxfp8"
                                                                                : "fp8");
           }),
  };
}

}  // namespace manyworlds::experiments
