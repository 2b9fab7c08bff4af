#include "farm/validation/validated_tables.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/memory/footprint.hpp"
#include "experiments/config/graphs.hpp"
#include "farm/validation/predicted_collectives.hpp"

namespace manyworlds::farm {
namespace {

using experiments::measured::MeasuredCollective;
using experiments::measured::MemoryRow;
using experiments::measured::TrainingStep;

constexpr std::int64_t kLargePeak = 20'000'000'000;

std::string family_of(const MemoryRow& row) {
  if (row.kind != "dense") return "memory, " + row.kind;
  return row.measured_bytes >= kLargePeak ? "memory, dense, 20 GB and more" : "memory, dense, below 20 GB";
}

}  // namespace

Comparison compare(const std::vector<MemoryRow>& rows) {
  Comparison comparison;
  for (const MemoryRow& row : rows) {
    if (!row.unsupported.empty()) {
      comparison.omitted.push_back(
          {row.id, family_of(row), row.unsupported, row.detail.empty() ? row.test_case : row.detail});
      continue;
    }
    const auto predicted = static_cast<double>(experiments::measured::predicted_bytes(row));
    // Nobody chooses among these tests, so each is a comparison group of its own.
    comparison.rows.push_back({row.id, family_of(row), row.id, "", static_cast<double>(row.measured_bytes), predicted,
                               "bytes", 1, !row.exclusion_reason.empty()});
  }
  return comparison;
}

namespace {

/// Adds the ranks of a step to its family. The footprint of a rank is that of its pipeline stage, and stages follow one
/// another in Megatron-LM's order of ranks.
void compare_ranks(Comparison& comparison, const TrainingStep& step) {
  const auto configuration = experiments::config_of(step.experiments.back()).configuration;
  std::vector<core::memory::Footprint> stages;
  for (std::int64_t stage = 0; stage < configuration.strategy.pp; ++stage)
    stages.push_back(core::memory::footprint(configuration.model, configuration.strategy, configuration.gpu, stage));
  const auto add = [&](const std::vector<double>& measured_mib, const char* what, auto bytes) {
    for (std::size_t rank = 0; rank < measured_mib.size(); ++rank) {
      const auto& stage = stages[rank * stages.size() / measured_mib.size()];
      const std::string id = fmt::format("{} rank {}", step.id, rank);
      comparison.rows.push_back({id, fmt::format("memory, {}, {}", step.family, what), id, "",
                                 measured_mib[rank] * (1 << 20), static_cast<double>(bytes(stage)), "bytes", 1,
                                 step.excluded_from_family});
    }
  };
  add(step.rank_memory.allocated_mib, "allocated", [](const auto& stage) { return stage.allocated(); });
  add(step.rank_memory.reserved_mib, "reserved", [](const auto& stage) { return stage.reserved(); });
}

}  // namespace

Comparison compare_rank_memory(const std::vector<TrainingStep>& steps) {
  Comparison comparison;
  for (const TrainingStep& step : steps)
    if (!step.rank_memory.empty() && !step.experiments.empty() && !step.one_layer()) compare_ranks(comparison, step);
  return comparison;
}

Comparison compare(const std::vector<MeasuredCollective>& rows) {
  Comparison comparison;
  experiments::GraphCache graphs;
  for (const MeasuredCollective& row : rows) {
    if (!row.unsupported.empty()) {
      comparison.omitted.push_back({row.id, row.family, row.unsupported, row.detail});
      continue;
    }
    const PredictedCollective prediction = predict(row, graphs);
    if (!prediction.predicted_us) {
      comparison.omitted.push_back({row.id, row.family, prediction.reason, prediction.detail});
      continue;
    }
    comparison.rows.push_back(
        {row.id, row.family, row.id, "", row.measured_us, *prediction.predicted_us, "us", 1, row.excluded_from_family});
    comparison.assumed.insert(comparison.assumed.end(), row.assumed.begin(), row.assumed.end());
    if (prediction.calibrated != "yes") comparison.assumed.push_back("costs of the library: " + prediction.calibrated);
  }
  return comparison;
}

Comparison compare(const std::vector<experiments::measured::MeasuredKernel>& rows) {
  Comparison comparison;
  for (const experiments::measured::MeasuredKernel& row : rows)
    if (row.unsupported.empty())
      comparison.rows.push_back({row.id, row.family, row.id, "", row.measured_us, row.predicted_us, "us", 1, false});
    else
      comparison.omitted.push_back({row.id, row.family, row.unsupported, row.detail});
  return comparison;
}

}  // namespace manyworlds::farm
