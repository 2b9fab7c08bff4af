#include "experiments/nsys/read_nsys.hpp"

#include <fmt/format.h>

#include <utility>

#include "experiments/nsys/export_file.hpp"

namespace manyworlds::experiments::nsys {
namespace {

constexpr profiler::ProfilerTerms kTerms{
    "exports of Nsight Systems", "a communicator of NCCL that all ranks are in, whose creation is in the export",
    "range of NVTX such as 'iteration 7': push one in every step", "--cuda-event-trace=true"};

void add(ExportCounts& to, const ExportCounts& one) {
  to.graph_kernels += one.graph_kernels, to.left_out += one.left_out;
  to.foreign_waits += one.foreign_waits, to.unsized_calls += one.unsized_calls;
  to.graphs_without_kernels += one.graphs_without_kernels;
}

std::vector<std::string> account_of(const std::vector<profiler::RankTrace>& traces,
                                    const std::vector<RankPlace>& places, const ResolvedCommunicators& communicators,
                                    const ExportCounts& counts) {
  std::vector<std::string> account;
  for (std::size_t i = 0; i < traces.size(); ++i)
    account.push_back(fmt::format("rank {}: process {}, GPU {} of {}", *traces[i].rank, places[i].process,
                                  places[i].device, traces[i].file));
  if (!communicators.world_is_known && traces.size() > 1)
    account.emplace_back(
        "no communicator whose creation is in the exports has all ranks: they are numbered by the names "
        "of files if these have a rank each, otherwise by file, process and GPU");
  const auto tell = [&](std::int64_t count, const char* what) {
    if (count > 0) account.push_back(fmt::format("{} {}", count, what));
  };
  tell(communicators.created, "communicators have the ranks that their creation tells");
  tell(communicators.inferred,
       "communicators are taken to be of the ranks that use them, in their order, as their creation is not in the "
       "exports: all of their ranks must be");
  tell(communicators.incomplete, "communicators have ranks whose exports are not there");
  tell(counts.unsized_calls,
       "calls of NCCL have no payload with their bytes: their kernels keep the times that they took; trace with NVTX "
       "and "
       "a newer NCCL");
  tell(counts.graph_kernels, "kernels were launched by graphs of CUDA, whose dependencies are not in an export");
  tell(counts.graphs_without_kernels, "launches of graphs of CUDA have no kernels in the exports");
  tell(counts.foreign_waits, "waits for events of another GPU of their process are not followed");
  tell(counts.left_out, "copies on GPUs on which their process ran no kernel are left out");
  return account;
}

}  // namespace

bool is_nsys_export(std::string_view head) {
  return head.starts_with(std::string_view("SQLite format 3\0", 16));
}

programs::Imported read_nsys(const std::vector<std::string>& paths, const profiler::ReadOptions& options) {
  std::vector<profiler::RankTrace> traces;
  std::vector<RankPlace> places;
  Communicators communicators;
  ExportCounts counts;
  for (const std::string& path : paths) {
    Exported one = read_export(path, static_cast<std::uint32_t>(traces.size()), communicators);
    for (profiler::RankTrace& trace : one.traces) traces.push_back(std::move(trace));
    places.insert(places.end(), one.places.begin(), one.places.end());
    add(counts, one.counts);
  }
  const ResolvedCommunicators resolved = resolve(communicators, traces);
  std::vector<std::string> account = account_of(traces, places, resolved, counts);
  programs::Imported result = profiler::import_traces(std::move(traces), options, kTerms);
  if (resolved.inferred > 0)
    result.programs.notes.push_back(
        fmt::format("{} communicators are taken to be of the ranks that use them.", resolved.inferred));
  result.account.insert(result.account.begin(), account.begin(), account.end());
  return result;
}

}  // namespace manyworlds::experiments::nsys
