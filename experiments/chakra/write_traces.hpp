// Programs as Chakra's traces, which ASTRA-sim takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/chakra/trace.hpp"
#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::chakra {

struct WrittenTraces {
  std::vector<Trace> traces;           // by program
  std::vector<std::uint32_t> of_rank;  // the program of a rank; its transfers and groups: trace_of_rank()
  std::string groups;                  // ASTRA-sim's --comm-group-configuration
  std::vector<std::string> account;    // what they do not say, or not so; a line each
};

/// Returns what is written of `programs`: a node per operation with the data dependencies of its stream's order and of
/// what it waits for, and the attributes that ASTRA-sim's feeder reads: is_cpu_op, comm_type, comm_size (of an
/// all-gather, what one member gives), pg_name, comm_src, comm_dst, comm_tag, tensor_size, num_ops. Times are whole
/// microseconds in duration_micros, of 1 at least, and exact in our own `measured_us`. Every dimension has a tag, every
/// group a number from 1 on. Throws core::InputError for what the schema has no form for: kernels with no time, uneven
/// divisions of an all-to-all.
WrittenTraces write_traces(const programs::StreamPrograms& programs, const std::string& name);

/// Returns the trace of a rank: that of its program, with its own groups and peers.
Trace trace_of_rank(const WrittenTraces& written, const programs::StreamPrograms& programs, std::uint32_t rank);

/// Writes PREFIX.0.et, PREFIX.1.et, ..., and PREFIX.groups.json, and returns the account. Throws core::IoError.
std::vector<std::string> write_trace_files(const programs::StreamPrograms& programs, const std::string& prefix);

}  // namespace manyworlds::experiments::chakra
