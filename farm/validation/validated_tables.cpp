#include "farm/validation/validated_tables.hpp"

#include "core/base/error.hpp"
#include "experiments/config/graphs.hpp"
#include "farm/validation/measured_collectives.hpp"

namespace manyworlds::farm {
namespace {

using experiments::measured::Collective;
using experiments::measured::MemoryRow;

constexpr std::int64_t kLargePeak = 20'000'000'000;

std::string family_of(const MemoryRow& row) {
  if (row.kind != "dense") return "memory, " + row.kind;
  return row.measured_bytes >= kLargePeak ? "memory, dense, 20 GB and more" : "memory, dense, below 20 GB";
}

}  // namespace

Comparison compare(const std::vector<MemoryRow>& rows) {
  Comparison made;
  for (const MemoryRow& row : rows) {
    if (!row.left_out.empty()) {
      made.left.push_back({row.id, family_of(row), row.left_out, row.test_case});
      continue;
    }
    const auto predicted = static_cast<double>(experiments::measured::predicted_bytes(row));
    // Nobody chooses among tests: each is a choice of its own.
    made.rows.push_back({row.id, family_of(row), row.id, "", static_cast<double>(row.measured_bytes), predicted,
                         "bytes", 1, !row.apart_because.empty()});
  }
  return made;
}

Comparison compare(const std::vector<Collective>& rows) {
  Comparison made;
  experiments::GraphCache graphs;
  for (const Collective& row : rows) {
    if (!row.left_out.empty()) {
      made.left.push_back({row.id, row.family, row.left_out, row.detail});
      continue;
    }
    const PredictedCollective told = predict(row, graphs);
    if (!told.predicted_us) {
      made.left.push_back({row.id, row.family, told.reason, told.detail});
      continue;
    }
    made.rows.push_back({row.id, row.family, row.id, "", row.measured_us, *told.predicted_us, "us", 1, row.apart});
    made.assumed.insert(made.assumed.end(), row.assumed.begin(), row.assumed.end());
    if (told.calibrated != "yes") made.assumed.push_back("costs of the library: " + told.calibrated);
  }
  return made;
}

}  // namespace manyworlds::farm
