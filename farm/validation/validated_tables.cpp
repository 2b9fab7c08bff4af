#include "farm/validation/validated_tables.hpp"

#include "core/base/error.hpp"
#include "experiments/config/graphs.hpp"
#include "farm/validation/predicted_collectives.hpp"

namespace manyworlds::farm {
namespace {

using experiments::measured::MeasuredCollective;
using experiments::measured::MemoryRow;

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
