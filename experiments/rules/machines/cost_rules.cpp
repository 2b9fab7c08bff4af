// Rules about prices, failures and checkpoints. Each names the settings that are missing or superfluous.
#include "experiments/rules/machines/cost_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

Rule rule(std::string name, std::string key, std::string reason, RuleSource source, ConfigCheck check) {
  Rule result =
      experiments::rule(std::move(name), std::move(key), std::move(reason), std::move(source), std::move(check));
  result.steps_only = true;
  return result;
}

/// Returns "given" or "not given", for users who look for the setting that they forgot.
const char* given_or_not(bool present) {
  return present ? "given" : "not given";
}

bool copies_to_host(const Training& training) {
  return training.checkpoint == CheckpointKind::async || training.checkpoint == CheckpointKind::flash;
}

std::vector<Rule> price_rules() {
  return {
      rule("one_price", "cluster.usd_per_gpu_hour",
           "GPUs are rented (usd_per_gpu_hour) or bought (usd_per_gpu, lifetime_years, utilisation, usd_per_kwh), not "
           "both",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const Price& p = e.price;
             const bool bought = p.usd_per_gpu > 0 || p.lifetime_years > 0 || p.utilisation > 0 || p.usd_per_kwh >= 0;
             if (e.cluster.usd_per_gpu_hour == 0 || !bought) return std::nullopt;
             return fmt::format("usd_per_gpu_hour {} beside a purchase", e.cluster.usd_per_gpu_hour);
           }),
      rule(
          "purchase_is_whole", "cluster.usd_per_gpu",
          "GPUs that are bought need all of usd_per_gpu, lifetime_years, utilisation and usd_per_kwh (0 where somebody "
          "else pays the energy)",
          {kConstruction},
          [](const ExperimentConfig& e) -> Violation {
            const Price& p = e.price;
            const bool none = p.usd_per_gpu == 0 && p.lifetime_years == 0 && p.utilisation == 0 && p.usd_per_kwh < 0;
            if (none || p.known()) return std::nullopt;
            return fmt::format("usd_per_gpu {}, lifetime_years {}, utilisation {}, usd_per_kwh {}",
                               given_or_not(p.usd_per_gpu > 0), given_or_not(p.lifetime_years > 0),
                               given_or_not(p.utilisation > 0), given_or_not(p.usd_per_kwh >= 0));
          }),
  };
}

/// Whether an hour of every GPU has a price.
bool has_price(const ExperimentConfig& e) {
  if (e.machines.empty()) return e.cluster.usd_per_gpu_hour > 0 || e.price.known();
  return std::all_of(e.machines.begin(), e.machines.end(), [&](const MachineKind& kind) {
    Price price = e.price;
    price.usd_per_gpu = kind.node.usd_per_gpu;
    return kind.gpus == 0 || kind.node.usd_per_gpu_hour > 0 || price.known();
  });
}

std::vector<Rule> budget_rules() {
  return {
      rule("tokens_or_budget", "training.tokens",
           "a run's length is its tokens, or what budget_gpu_days, budget_usd and budget_days pay for, not both",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (e.training.tokens == 0 || !e.training.has_budget()) return std::nullopt;
             return fmt::format("tokens {} beside a budget", e.training.tokens);
           }),
      rule("budget_needs_price", "training.budget_usd",
           "budget_usd needs a price: usd_per_gpu_hour, or usd_per_gpu and what belongs to it", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (e.training.budget_usd == 0 || has_price(e)) return std::nullopt;
             return "no price given";
           }),
      rule("loss_of_dense_models", "training.loss_experts",
           "a budget leads to a loss by a law that was fitted to dense models: for a model with experts say what it "
           "counts of them (loss_experts all or active), with constants that were fitted so",
           {"Hoffmann et al. 2022, section 3.3: dense transformers"},
           [](const ExperimentConfig& e) -> Violation {
             if (!e.training.has_budget() || e.configuration.model.experts == 0) return std::nullopt;
             if (e.training.loss_experts != LossExperts::refused) return std::nullopt;
             return fmt::format("{} experts, loss_experts refused", e.configuration.model.experts);
           }),
  };
}

std::vector<Rule> failure_rules() {
  return {
      rule("one_mtbf", "training.node_mtbf_hours", "failures are those of nodes or those of GPUs, not both",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const Training& t = e.training;
             if (t.node_mtbf_hours == 0 || t.gpu_mtbf_hours == 0) return std::nullopt;
             return fmt::format("node_mtbf_hours {}, gpu_mtbf_hours {}", t.node_mtbf_hours, t.gpu_mtbf_hours);
           }),
      rule("failures_need_restart", "training.restart_s", "where nodes fail, restart_s must be given", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (!e.training.fails() || e.training.restart_s >= 0) return std::nullopt;
             return "restart_s not given";
           }),
      rule("checkpoints_need_failures", "training.checkpoint",
           "a checkpoint other than none needs node_mtbf_hours or gpu_mtbf_hours: without failures nobody takes one",
           {"Young 1974: the interval follows from the time between failures"},
           [](const ExperimentConfig& e) -> Violation {
             if (e.training.checkpoint == CheckpointKind::none || e.training.fails()) return std::nullopt;
             return "neither given";
           }),
      rule("checkpoints_cost", "training.checkpoint",
           "what a checkpoint costs must follow: sync needs storage_gb_per_s or block_s; async and flash need "
           "storage_gb_per_s, and snapshot_gb_per_s or block_s",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const Training& t = e.training;
             const bool stores = t.storage_gb_per_s > 0, blocks = t.block_s > 0;
             if (t.checkpoint == CheckpointKind::none) return std::nullopt;
             if (copies_to_host(t) ? stores && (blocks || t.snapshot_gb_per_s > 0) : stores || blocks)
               return std::nullopt;
             return fmt::format("storage_gb_per_s {}, snapshot_gb_per_s {}, block_s {}", given_or_not(stores),
                                given_or_not(t.snapshot_gb_per_s > 0), given_or_not(blocks));
           }),
      rule("storage_keeps_up", "training.interval_s",
           "of checkpoint async one must be in storage before the next begins: storage_gb_per_s is too low, or "
           "interval_s too short",
           {"Mohan et al. 2021 (CheckFreq), section 4: one checkpoint is on its way at a time"},
           [](const ExperimentConfig& e) -> Violation {
             const Training& t = e.training;
             if (t.checkpoint != CheckpointKind::async || t.interval_s == 0) return std::nullopt;
             const Checkpoints c = checkpoints_of(t, static_cast<double>(checkpoint_bytes(e.configuration.model)),
                                                  static_cast<double>(e.cluster.gpus()));
             if (c.persist_s <= t.interval_s + c.block_s) return std::nullopt;
             return fmt::format("storage takes {:.6g} s, interval_s {:.6g}", c.persist_s, t.interval_s);
           }),
      rule("replicas_at_most", "training.replicas", "checkpoint flash needs as many nodes as replicas",
           {"Wang et al. 2023 (Gemini), section 4: copies are in as many machines"},
           [](const ExperimentConfig& e) -> Violation {
             const Training& t = e.training;
             if (t.checkpoint != CheckpointKind::flash || t.replicas <= e.cluster.nodes) return std::nullopt;
             return fmt::format("replicas {}, nodes {}", t.replicas, e.cluster.nodes);
           }),
  };
}

}  // namespace

std::vector<Rule> cost_rules() {
  std::vector<Rule> all = price_rules();
  for (Rule& one : budget_rules()) all.push_back(std::move(one));
  for (Rule& one : failure_rules()) all.push_back(std::move(one));
  return all;
}

}  // namespace manyworlds::experiments
