// Measured peaks of device memory: rows of Megatron-LM's functional tests, whose columns are that program's arguments.
// Each becomes a model and a layout, or a reason why it cannot. memory.md describes the columns and what is assumed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

struct MemoryRow {
  std::string id, test_case;
  std::string kind;  // dense, moe, fsdp, or other: an architecture that is not modelled, or a row that cannot be read
  std::string gpu;   // name in the catalog
  int line = 0;      // line in the file
  std::int64_t gpus = 0;
  std::int64_t measured_bytes = 0;   // peak of the bytes that the framework had allocated
  std::string exclusion_reason;      // why it is excluded from its kind's statistics; empty if it is not
  bool contradicted = false;         // by another run of the same test on the same GPU, which excludes it
  std::vector<std::string> assumed;  // columns that the row lacks and whose values were assumed
  std::string unsupported;           // why it cannot be predicted; empty if it can
  std::string detail;                // of that reason, for this row

  core::workload::Model model;
  core::workload::Strategy strategy;
  core::compute::Gpu device;
};

/// Returns whether a header has the columns of such a table.
bool is_memory_table(const import::CsvHeader& header);

/// Returns all rows in order. What the model lacks, other architectures, and fields that cannot be read are stored in
/// `unsupported`.
std::vector<MemoryRow> read_memory(const import::CsvTable& table, const Catalog& catalog);

/// Returns the bytes that the framework allocates on the last pipeline rank, whose values the tests record.
std::int64_t predicted_bytes(const MemoryRow& row);

}  // namespace manyworlds::experiments::measured
