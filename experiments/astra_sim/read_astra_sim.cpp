#include "experiments/astra_sim/read_astra_sim.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/astra_sim/as_cluster.hpp"
#include "experiments/astra_sim/collectives/collective_times.hpp"
#include "experiments/astra_sim/replay.hpp"
#include "experiments/chakra/trace_paths.hpp"
#include "experiments/graphs/graph_programs.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

using core::InputError;

/// Returns the options of the traces' reader that the files ask for.
chakra::TraceOptions trace_options(const Configuration& configuration, Communication communication,
                                   chakra::TraceOptions options) {
  const System& system = configuration.system;
  if (system.has_roofline) options.roofline = chakra::Roofline{system.peak_tflops, system.memory_gb_per_s};
  for (const NetworkDimension& dimension : configuration.network.dimensions)
    options.dimensions.push_back(dimension.ranks);
  if (communication) options.one_at_a_time = options.rendezvous = true;  // a replay posts receives itself
  options.follows_control = communication.has_value();
  return options;
}

void check_ranks(std::size_t ranks, const Network& network) {
  if (ranks != network.ranks())
    throw InputError(
        fmt::format("npus_count: must be {} ranks in all, as the workload has, not {}", ranks, network.ranks()),
        network.name);
}

/// Gives compute nodes the roofline's nanoseconds as Workload::issue_comp rounds them: one without a tensor's size
/// takes none, one without operations has no time at all. Returns how many take none.
std::int64_t time_by_roofline(graphs::RankGraph& graph, const System& system) {
  std::int64_t without = 0;
  for (graphs::GraphNode& node : graph.nodes) {
    auto* kernel = std::get_if<programs::KernelWork>(&node.work);
    if (kernel == nullptr) continue;
    if (kernel->shape.bytes == 0) {
      ++without;
      node.work = std::monostate{};
      node.resource = graphs::kNoResource;
      continue;
    }
    if (kernel->flops == 0)
      throw InputError(fmt::format("{} has a tensor_size and no num_ops, of which the roofline has no time",
                                   graphs::node_text(node.id, node.name)),
                       graph.name);
    const auto operations = static_cast<double>(kernel->flops), bytes = static_cast<double>(kernel->shape.bytes);
    const double per_second = std::min(system.memory_gb_per_s * 1e9 * (operations / bytes), system.peak_tflops * 1e12);
    const double ns = operations / per_second * 1e9;
    if (!(ns < kLongestNs))
      throw InputError("peak-perf: must be such that a compute node takes less than 10^15 ns", system.name);
    node.us = static_cast<double>(static_cast<std::int64_t>(ns)) * 1e-3;
  }
  return without;
}

/// Puts the times of a rank's replay into its graph: what communicated is a kernel, from when it began until it ended.
graphs::RankGraph timed(graphs::RankGraph graph, const std::vector<Span>& spans) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    graphs::GraphNode& node = graph.nodes[i];
    node.us = static_cast<double>(spans[i].end_ns - spans[i].begin_ns) * 1e-3;
    if (auto* host = std::get_if<programs::HostWork>(&node.work)) {
      host->us = node.us;
    } else if (auto* copy = std::get_if<programs::CopyWork>(&node.work)) {
      copy->measured_us = node.us;
    } else if (auto* kernel = std::get_if<programs::KernelWork>(&node.work)) {
      kernel->measured_us = node.us;
    } else if (!std::holds_alternative<std::monostate>(node.work)) {
      programs::KernelWork communication;
      communication.measured_us = node.us;
      communication.part = core::workload::StepPart::exposed_other;
      node.work = communication;
    }
  }
  return graph;
}

/// Calls the stream of a program's own kernels the compute stream, whose waits make the breakdown of a step.
void name_compute_stream(programs::RankProgram& program) {
  for (const programs::StreamOp& op : program.ops) {
    const auto* kernel = std::get_if<programs::KernelWork>(&op.work);
    if (kernel == nullptr || kernel->part == core::workload::StepPart::exposed_other) continue;
    program.streams[op.stream].name = "compute";
    return;
  }
}

programs::Imported as_astra_sim(chakra::TraceGraphs traces, const std::string& what, const Configuration& configuration,
                                Congestion congestion) {
  const auto& [system, network, memory, custom] = configuration;
  check_ranks(traces.graph_of_rank.size(), network);
  if (!system.refused.empty()) throw InputError(system.refused.front(), system.name);
  std::int64_t without_time = 0;
  for (graphs::RankGraph& graph : traces.graphs) {
    graphs::execution_order(graph);  // refuses circles
    if (system.has_roofline) without_time += time_by_roofline(graph, system);
  }
  const Job job{std::move(traces.graphs), std::move(traces.graph_of_rank), std::move(traces.groups),
                std::move(traces.dimensions)};
  CollectiveTimes collectives(system, network, congestion, custom);
  const Replay replayed = replay(job, network, memory.value_or(Memory()), congestion, collectives);
  const auto ranks = static_cast<std::uint32_t>(job.graph_of_rank.size());
  graphs::GraphPrograms programs(ranks, job.groups, std::move(traces.exposed));
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    programs.add(rank, timed(job.graphs[job.graph_of_rank[rank]], replayed.spans[rank]));
  programs::Imported result = programs.finish(what);
  for (programs::RankProgram& program : result.programs.programs) name_compute_stream(program);
  result.programs.name = traces.told.programs.name;
  result.programs.origin = traces.told.programs.origin;
  result.programs.notes.push_back(fmt::format(
      "communication is kernels of the times that ASTRA-sim's congestion-{} backend gives it, with waiting for other "
      "ranks: no network is simulated",
      congestion == Congestion::aware ? "aware" : "unaware"));
  result.account.insert(result.account.end(), traces.told.account.begin(), traces.told.account.end());
  result.account.push_back(fmt::format("ASTRA-sim's time: {} ns, of the longest rank", replayed.longest_ns));
  if (without_time > 0)
    result.account.push_back(fmt::format("{} compute nodes without a tensor_size take no time", without_time));
  if (collectives.begun_late() > 0)
    result.account.push_back(
        fmt::format("{} collectives whose ranks come at different times begin when the last has come; ASTRA-sim begins "
                    "before",
                    collectives.begun_late()));
  if (collectives.tied() > 0)
    result.account.push_back(
        fmt::format("in {} kinds of collectives with doubleBinaryTree, chunks come to a dimension in one nanosecond: "
                    "ASTRA-sim may take them in another order",
                    collectives.tied()));
  return result;
}

void tell(const Configuration& configuration, Communication communication, programs::Imported& to) {
  const System& system = configuration.system;
  if (!communication && !system.collective_keys.empty())
    to.account.push_back(
        fmt::format("collectives are simulated, and not as {} says: {} (--collectives as-astra has ASTRA-sim's times)",
                    system.name, fmt::join(system.collective_keys, ", ")));
  if (!communication)
    for (const std::string& refused : system.refused) to.account.push_back(fmt::format("not followed: {}", refused));
  if (!communication && configuration.memory && configuration.memory->type != MemoryType::none)
    to.account.push_back("loads and stores take the rate of the GPU's host link, not that of the remote memory file");
  if (!system.silent_keys.empty())
    to.account.push_back(
        fmt::format("keys of {} that change no time: {}", system.name, fmt::join(system.silent_keys, "; ")));
  to.account.push_back(as_cluster(configuration.network));
}

/// Makes programs of graphs that ASTRA-sim's network times, or of traces that ours will.
template <class ReadGraphs, class ReadTraces>
programs::Imported import_by(const Configuration& configuration, Communication communication, const std::string& what,
                             std::size_t files, const chakra::TraceOptions& options, const ReadGraphs& read_graphs,
                             const ReadTraces& read_traces) {
  chakra::TraceOptions told = trace_options(configuration, communication, options);
  if (files == 1 && !told.ranks) told.ranks = configuration.network.ranks();
  if (files > 1) check_ranks(files, configuration.network);
  programs::Imported result;
  if (communication) {
    result = as_astra_sim(read_graphs(told), what, configuration, *communication);
  } else {
    result = read_traces(told);
    check_ranks(result.programs.ranks.program_of_rank.size(), configuration.network);
  }
  tell(configuration, communication, result);
  return result;
}

}  // namespace

programs::Imported import_astra_sim(const std::vector<chakra::TraceFile>& files, std::string_view groups,
                                    const std::string& what, const Configuration& configuration,
                                    Communication communication, const chakra::TraceOptions& options) {
  return import_by(
      configuration, communication, what, files.size(), options,
      [&](const chakra::TraceOptions& told) { return chakra::import_graphs(files, groups, what, told); },
      [&](const chakra::TraceOptions& told) { return chakra::import_traces(files, groups, what, told); });
}

Configuration read_configuration(const Paths& paths, Communication communication) {
  Configuration all;
  all.system = parse_system_file(import::read_text(paths.system), paths.system);
  all.network = parse_network_file(import::read_text(paths.network), paths.network);
  if (!paths.memory.empty())
    all.memory = parse_memory_file(import::read_text(paths.memory), paths.memory, all.network.ranks());
  if (communication) all.custom = read_custom_algorithms(all.system.custom, paths.system);
  return all;
}

programs::Imported read_astra_sim(const std::string& prefix, const Paths& paths, Communication communication,
                                  const chakra::TraceOptions& options) {
  return import_by(
      read_configuration(paths, communication), communication, prefix, chakra::count_traces(prefix), options,
      [&](const chakra::TraceOptions& told) { return chakra::read_graphs(prefix, told); },
      [&](const chakra::TraceOptions& told) { return chakra::read_traces(prefix, told); });
}

}  // namespace manyworlds::experiments::astra_sim
