// Measured collectives: each row of a table becomes the operation and the machines that were measured, or a reason why
// it cannot be simulated. experiments/measured/README.md describes the columns and what is assumed if a row lacks one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "core/collective/library/token_exchange.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

struct MeasuredCollective {
  std::string id, system, source;
  std::string family;  // GPU, in a node or across nodes, from 1 MiB or below
  int line = 0;        // line in the file
  double measured_us = 0;
  std::string op;  // as printed: the name of a kind if it can be simulated
  core::collective::Kind kind = core::collective::Kind::all_reduce;
  std::string algorithm;  // a name of the registry if the row says which one ran, otherwise "auto"
  std::string gpu;        // name in the catalog
  std::int64_t ranks = 0, nodes = 0, bytes = 0;           // bytes as defined by core::collective::Kind
  std::optional<core::collective::TokenExchange> tokens;  // of an exchange of experts' tokens, an all_to_all
  bool excluded_from_family = false;                      // excluded from its family's statistics
  std::string exclusion_reason;                           // if it is excluded

  std::vector<std::string> assumed;  // columns that the row lacks and whose values were assumed
  std::string unsupported;           // why it cannot be simulated; empty if it can
  std::string detail;                // of that reason, for this row
  Settings settings;                 // machines and library; empty if it cannot be simulated
};

/// Bandwidth matters more than latency from this size on; statistics separate smaller and larger rows.
inline constexpr std::int64_t kLargeBytes = 1 << 20;

/// Returns whether a header has the columns of such a table.
bool is_collectives_table(const import::CsvHeader& header);

/// Returns all rows in order. Throws InputError for errors of the table only; errors of a row are stored in
/// `unsupported`.
std::vector<MeasuredCollective> read_collectives(const import::CsvTable& table, const Catalog& catalog);

}  // namespace manyworlds::experiments::measured
