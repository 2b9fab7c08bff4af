// Measured collectives: each row of a table becomes the operation and the machines that it was measured on, or a reason
// why it cannot be simulated. README.md has the columns, and what is assumed where a row does not say.
#pragma once

#include <string>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "experiments/config/world.hpp"
#include "experiments/settings/catalog.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

struct Collective {
  std::string id, system, source;
  std::string family;  // GPU, in a node or across nodes, from 1 MiB on or below
  int line = 0;        // of the file
  double measured_us = 0;
  std::string op;  // as printed: a kind's name, where it is one that we simulate
  core::collective::Kind kind = core::collective::Kind::all_reduce;
  std::string algorithm;                         // a name of the registry where the row says what ran, otherwise "auto"
  std::string gpu;                               // in the catalog
  std::int64_t ranks = 0, nodes = 0, bytes = 0;  // bytes as core::collective::Kind has them
  bool apart = false;                            // kept out of its family's figures
  std::string apart_because;                     // of one that is

  std::vector<std::string> assumed;  // what the row does not say and was assumed, by names of columns
  std::string left_out;              // why it cannot be simulated; empty where it can
  std::string detail;                // of that reason, in this row
  Settings settings;                 // machines and library; of a row that is left out, empty
};

/// From this size on bandwidth counts more than latency: figures are of rows on one side of it.
inline constexpr std::int64_t kLargeBytes = 1 << 20;

/// Does this header name the columns of such a table?
bool is_collectives(const import::CsvHeader& header);

/// All rows in their order. Throws InputError only for what is wrong with the table, never for what a row says: that
/// ends in left_out.
std::vector<Collective> read_collectives(const import::CsvTable& table, const Catalog& catalog);

}  // namespace manyworlds::experiments::measured
