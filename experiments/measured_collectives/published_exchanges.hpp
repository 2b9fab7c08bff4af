// Tables of exchanges of experts' tokens in the form in which NVIDIA's aiconfigurator publishes them: DeepEP's normal
// and low-latency kernels, and TensorRT-LLM's all-to-all. They become rows with the columns of collectives.csv.
#pragma once

#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

/// Returns whether a header is that of such a table.
bool is_published_exchanges(const import::CsvHeader& header);

/// Returns such a table with the columns of collectives.csv and those of an exchange. A row that has both directions
/// becomes two.
import::CsvTable exchanges_as_collectives(const import::CsvTable& table);

}  // namespace manyworlds::experiments::measured
