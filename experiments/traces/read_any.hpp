// Files of any format that becomes stream programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/astra_sim/read_astra_sim.hpp"
#include "experiments/captured/read_captured.hpp"
#include "experiments/chakra/read_traces.hpp"
#include "experiments/goal/read_goal.hpp"
#include "experiments/msccl/read_algorithm.hpp"
#include "experiments/nccl_logs/read_flight_recorder.hpp"
#include "experiments/profiler_traces/import_traces.hpp"
#include "experiments/programs/imported.hpp"
#include "experiments/simai/workload.hpp"

namespace manyworlds::experiments::traces {

/// What readers of single formats are told; each takes its own.
struct AnyOptions {
  profiler::ReadOptions profiler;  // of PyTorch's and of Nsight Systems
  captured::ReadOptions captured;
  chakra::TraceOptions chakra;
  std::optional<astra_sim::Paths> astra_sim;  // of Chakra's traces: what ASTRA-sim is run with beside them
  astra_sim::Communication as_astra_sim;      // with these
  simai::RunOptions simai;
  goal::GoalOptions goal;
  msccl::AlgorithmOptions msccl;
  nccl_logs::FlightOptions flight;
};

/// Returns the name (reader_options.hpp) of the format that read_any() takes a file for: by its first bytes or, of
/// Chakra's, by its name; a folder is taken for records of a captured program. Empty: none.
std::string_view format_name(const std::string& path);

/// Reads files of one format: traces of PyTorch's profiler, exports of Nsight Systems, dumps of PyTorch's flight
/// recorder or logs of NCCL's Inspector, one per rank; records of a captured program, or their folder; the traces of
/// Chakra, by their prefix, their first one or all of them; a workload of SimAI, a table of AICB, a schedule of GOAL,
/// an algorithm of MSCCL, or our own program file. Throws core::InputError for what its reader refuses, for several
/// files of a format that has one, for files of several formats, and for a format that is none of these.
programs::Imported read_any(const std::vector<std::string>& paths, const AnyOptions& options);

}  // namespace manyworlds::experiments::traces
