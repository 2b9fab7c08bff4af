// Chakra's traces of the ranks of a job as programs, by the rules of ASTRA-sim (astra-sim/workload/Workload.cc).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/graphs/rank_graph.hpp"
#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::chakra {

/// A GPU as ASTRA-sim's roofline knows it: min(peak, bandwidth times operations per byte).
struct Roofline {
  double peak_tflops = 0, memory_gb_per_s = 0;
};

struct TraceOptions {
  std::string groups_path;             // ASTRA-sim's --comm-group-configuration; empty: none
  std::optional<std::uint32_t> ranks;  // how many there are, where there is one file, which all of them run
  std::optional<Roofline> roofline;    // for nodes with num_ops and tensor_size, as roofline-enabled
  bool one_at_a_time = false;          // as ASTRA-sim's HardwareResource
  bool rendezvous = false;             // sends wait until the receiver comes to them, which ASTRA-sim's do not
  bool follows_control = false;        // nodes wait for their control dependencies too, as in ASTRA-sim since feeder_v3
  std::vector<std::uint32_t> dimensions;  // ranks of each dimension of ASTRA-sim's network, the first one counted
                                          // fastest: what involved_dim names; none: not known
};

/// One file's bytes, and its name in messages.
struct TraceFile {
  std::string name, bytes;
};

/// Returns the traces as programs. A node waits for its data dependencies (Chakra's own feeder takes these alone;
/// control dependencies are counted, unless `follows_control`). Compute nodes take duration_micros, or the roofline's
/// time, or a nanosecond if they have neither; on the host's streams if is_cpu_op. Collectives are of the group
/// pg_name: of the groups' file, or of the process groups that a PyTorch trace lists in its metadata node; none, or
/// "0": all ranks, or those that differ in the dimensions of involved_dim alone. bytes are comm_size, of an all-gather
/// times the group, as ASTRA-sim's ring takes it. A communication with is_cpu_op is what the host does to issue it, for
/// its duration. Memory nodes are copies from and to the host's memory. Streams are chains of the graph; with
/// `one_at_a_time` the nodes of each resource of ASTRA-sim are one stream: host operations; compute; communication but
/// for receives, with memory nodes, which start in the order in which a rank alone would start them. Throws InputError
/// for what parse_trace() refuses, an id that two nodes have, a parent that is none of the nodes, a circle, a group
/// that is not known, a collective that ASTRA-sim does not have either (gather, scatter), and a compute node with
/// num_ops whose time nothing says; and for what GraphPrograms refuses.
programs::Imported import_traces(const std::vector<TraceFile>& files, std::string_view groups, const std::string& what,
                                 const TraceOptions& options = {});

/// Reads all traces at a prefix (trace_paths.hpp), as ASTRA-sim's --workload-configuration; files may be compressed by
/// gzip.
programs::Imported read_traces(const std::string& prefix, const TraceOptions& options = {});

/// The graphs of a job before they are programs, for who runs them by rules of its own.
struct TraceGraphs {
  std::vector<graphs::RankGraph> graphs;
  std::vector<std::uint32_t> graph_of_rank;
  std::vector<std::vector<std::uint32_t>> groups;         // what the groups of calls are
  std::vector<core::workload::StepPart> exposed;          // by group
  std::map<std::uint32_t, std::vector<bool>> dimensions;  // of groups that involved_dim makes: which it involves
  programs::Imported told;                                // account, name and origin; no programs
};

/// Return the graphs of what import_traces() and read_traces() read.
TraceGraphs import_graphs(const std::vector<TraceFile>& files, std::string_view groups, const std::string& what,
                          const TraceOptions& options = {});
TraceGraphs read_graphs(const std::string& prefix, const TraceOptions& options = {});

}  // namespace manyworlds::experiments::chakra
