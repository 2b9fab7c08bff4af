// Measured peaks of device memory: rows of Megatron-LM's functional tests, whose columns are that program's arguments.
// Each becomes a model and a layout, or a reason why it cannot. memory.md has the columns and what is assumed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"
#include "experiments/settings/catalog.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

struct MemoryRow {
  std::string id, test_case;
  std::string kind;  // dense, moe or fsdp
  std::string gpu;   // in the catalog
  int line = 0;      // of the file
  std::int64_t gpus = 0;
  std::int64_t measured_bytes = 0;   // that the framework had allocated at its peak
  std::string apart_because;         // of a row that is kept out of its kind's figures; else empty
  bool contradicted = false;         // by another run of the same test on the same GPU: one of the reasons
  std::vector<std::string> assumed;  // what the row does not say, by names of columns
  std::string left_out;              // why it cannot be predicted; empty where it can

  core::workload::Model model;
  core::workload::Strategy strategy;
  core::compute::Gpu device;
};

/// Does this header name the columns of such a table?
bool is_memory(const import::CsvHeader& header);

/// All rows in their order. Throws InputError for a number that is none or is out of range, and for a GPU that the
/// catalog does not have; what our model lacks ends in left_out.
std::vector<MemoryRow> read_memory(const import::CsvTable& table, const Catalog& catalog);

/// What the framework allocates on the last pipeline rank, whose figures the tests keep.
std::int64_t predicted_bytes(const MemoryRow& row);

}  // namespace manyworlds::experiments::measured
