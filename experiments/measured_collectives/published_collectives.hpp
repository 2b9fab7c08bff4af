// Tables of collectives in the form in which others publish them: they become rows with the columns of collectives.csv.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "experiments/nccl/nccl_tests.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

bool has_all(const import::CsvHeader& header, std::initializer_list<const char*> columns);

/// Returns the first word of a device's name after its maker's, up to a hyphen: A100 of "NVIDIA A100-SXM4-80GB".
std::string chip_of(std::string_view device);

/// Returns whether a header is that of NVIDIA's aiconfigurator (nccl_perf: op_name, num_gpus, message_size, latency;
/// or its exchanges of tokens) or of PICO's runs on MareNostrum 5 (gpus, algorithm, median_ns).
bool is_published_collectives(const import::CsvHeader& header);

/// Returns such a table with the columns of collectives.csv, row by row; what cannot be read stays as it is printed,
/// for the reader of collectives to refuse it.
import::CsvTable as_collectives(const import::CsvTable& table);

/// Returns the rows of nccl-tests with the columns of collectives.csv. Families are "nccl-tests" and the operation.
import::CsvTable as_collectives(const std::vector<import::NcclTestRow>& rows, const std::string& file);

}  // namespace manyworlds::experiments::measured
