// Algorithms of MSCCL as stream programs of their GPUs. docs/msccl.md says what of the interpreter is modelled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::msccl {

struct AlgorithmOptions {
  std::int64_t bytes = 0;  // of the operation, as core::collective::Kind means them; 0: not given
};

/// Returns the programs of an algorithm's GPUs, one operation of `options.bytes`, which nchunksperloop must divide.
/// Throws InputError as parse_algorithm() and check_algorithm() do, for bytes that are missing or not divisible, and
/// for programs of more than 20,000,000 operations.
programs::Imported import_algorithm(std::string_view text, const std::string& name, const AlgorithmOptions& options);

/// The same of a file, which may be compressed by gzip.
programs::Imported read_algorithm(const std::string& path, const AlgorithmOptions& options);

}  // namespace manyworlds::experiments::msccl
