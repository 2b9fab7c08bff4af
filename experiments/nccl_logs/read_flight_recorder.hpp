// Dumps of PyTorch's flight recorder, one per rank, as programs of communication alone, and who lacks which collective
// (docs/flight_recorder.md).
#pragma once

#include <string>
#include <vector>

#include "experiments/nccl_logs/flight_dump.hpp"
#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::nccl_logs {

struct FlightOptions {
  bool host_gaps = false;  // the host takes what was between the times of its calls; otherwise nothing
};

/// Reads dumps, pickles or JSON, each compressed by gzip or not; ranks are in the names of their files. The account
/// tells what differs between ranks and what has not completed; if ranks differ, dumps are missing, or there are calls
/// that are not simulated (gather, scatter), there are no programs and `refused` says why. Throws core::InputError for
/// what parse_flight_dump() refuses, for a name without a rank, and for two files of one rank.
programs::Imported read_flight_recorder(const std::vector<std::string>& paths, const FlightOptions& options = {});

/// The same of dumps that have been parsed, of different ranks.
programs::Imported import_flight_dumps(const std::vector<FlightDump>& dumps, const FlightOptions& options = {});

}  // namespace manyworlds::experiments::nccl_logs
