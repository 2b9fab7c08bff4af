#include "experiments/nsys/export_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/error.hpp"
#include "experiments/nsys/database.hpp"
#include "experiments/nsys/event_records.hpp"
#include "experiments/nsys/gpu_names.hpp"
#include "experiments/nsys/payloads.hpp"
#include "experiments/nsys/range_texts.hpp"
#include "experiments/profiler_events/trace_builder.hpp"

namespace manyworlds::experiments::nsys {
namespace {

using core::InputError;
using profiler::TraceEvent;

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kSets = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
constexpr const char* kSyncs = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
constexpr const char* kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr const char* kRanges = "NVTX_EVENTS";
constexpr std::int64_t kStreamSync = 3;  // of CUPTI's types of synchronization

constexpr int kProcessShift = 24;  // of the identities of processes and threads, behind which is the thread's

profiler::WrittenTime at_ns(std::int64_t ns) {
  return {ns, true, false};
}

/// The time from the first column to the second of a row: not known where no clock has it.
profiler::WrittenTime duration_of(const Rows& rows) {
  std::int64_t ns = 0;
  const bool is_one = !__builtin_sub_overflow(rows.whole(1, -1), rows.whole(0, 0), &ns);
  return {ns, is_one, false};
}

/// Whether a number of CUPTI's is one: it has all bits set where there is none.
bool is_given(std::optional<std::int64_t> number) {
  return number && *number >= 0 && *number < 0xffffffff;
}

/// Returns the name of a call without the version that the runtime gives it, such as cudaLaunchKernel_v7000.
std::string without_version(std::string name) {
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits != name.npos && digits + 1 < name.size() && digits > 0 && name.compare(digits - 1, 2, "_v") == 0)
    name.resize(digits - 1);
  return name;
}

class ExportReader {
 public:
  ExportReader(const std::string& path, std::uint32_t first_number, Communicators& communicators)
      : database_(path),
        payloads_(database_),
        records_(database_),
        first_number_(first_number),
        communicators_(communicators) {}

  Exported read() {
    find_ranks();
    read_kernels();
    read_copies();
    read_sets();
    read_calls();
    read_syncs();
    read_ranges();
    return finish();
  }

 private:
  using ProcessAndDevice = std::pair<std::int64_t, std::int64_t>;
  static constexpr std::uint32_t kNoRank = UINT32_MAX;

  struct CallName {
    std::string text;
    bool is_kept = false, is_graph = false;
  };

  [[noreturn]] void fail(const std::string& what) const { throw InputError(what, database_.path()); }

  /// Kernels of older exports do not say their process: there must be one alone then.
  std::int64_t process_of(std::optional<std::int64_t> global_process) {
    if (global_process) return *global_process >> kProcessShift;
    if (only_process_) return *only_process_;
    std::set<std::int64_t> all;
    if (database_.has(kCalls)) {
      Rows rows = database_.rows(kCalls, {{"globalTid"}});
      while (rows.next()) all.insert(rows.whole(0, 0) >> kProcessShift);
    }
    if (all.size() > 1)
      fail(fmt::format(
          "has kernels without a column 'globalPid', and {} processes, so that nothing says whose they are: "
          "export it with a newer nsys",
          all.size()));
    only_process_ = all.empty() ? 0 : *all.begin();
    return *only_process_;
  }

  void find_ranks() {
    if (database_.has("rocpd_op") || database_.has("rocpd_api"))
      fail("is a database of AMD's profiler (rocpd), which is not read: profile with PyTorch's profiler");
    if (!database_.has(kKernels) && database_.has("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"))
      fail("is a database of nvprof, which is not read: profile with Nsight Systems");
    if (!database_.has(kKernels))
      fail(fmt::format("is no export of Nsight Systems with CUDA: it has no table {}; profile with --trace=cuda,nvtx",
                       kKernels));
    if (database_.has(kGraphs)) {
      std::int64_t graphs = 0;
      for (Rows rows = database_.rows(kGraphs, {{"start", false}}); rows.next();) ++graphs;
      if (graphs > 0) fail_for_graphs(graphs);
    }
    std::set<ProcessAndDevice> found;
    Rows rows = database_.rows(kKernels, {{"globalPid", false}, {"deviceId"}});
    while (rows.next()) found.emplace(process_of(rows.whole(0)), rows.whole(1, 0));
    if (found.empty()) fail("has no kernels: profile with --trace=cuda,nvtx while GPUs work");
    for (const ProcessAndDevice& one : found) {
      const auto number = static_cast<std::uint32_t>(places_.size());
      ranks_.emplace(one, number);
      of_process_[one.first].push_back(number);
      places_.push_back(one);
      builders_.push_back(std::make_unique<profiler::TraceBuilder>(database_.path()));
    }
  }

  [[noreturn]] void fail_for_graphs(std::int64_t launches) const {
    fail(fmt::format("has {} launches of graphs of CUDA without their kernels: profile with --cuda-graph-trace=node",
                     launches));
  }

  std::uint32_t rank_of(std::optional<std::int64_t> global_process, std::int64_t device) {
    const auto known = ranks_.find({process_of(global_process), device});
    return known == ranks_.end() ? kNoRank : known->second;
  }
  bool has_several_gpus(std::int64_t process) const {
    const auto known = of_process_.find(process);
    return known != of_process_.end() && known->second.size() > 1;
  }

  /// Fills the event of an operation whose columns are start, end, globalPid, deviceId, streamId and correlationId;
  /// returns its rank.
  std::uint32_t begin_op(const Rows& rows, const char* category) {
    const std::uint32_t rank = rank_of(rows.whole(2), rows.whole(3, 0));
    if (rank == kNoRank) {
      ++counts_.left_out;
      return rank;
    }
    event_.clear();
    event_.phase = "X";
    event_.category = category;
    event_.start = at_ns(rows.whole(0, -1));
    event_.duration = duration_of(rows);
    event_.device = rows.whole(3, 0);
    event_.stream = rows.whole(4, 0);
    event_.correlation = rows.whole(5, 0);
    if (has_several_gpus(places_[rank].first)) rank_of_launch_[{places_[rank].first, event_.correlation}] = rank;
    return rank;
  }

  const std::string& string_of(std::int64_t id) {
    const auto [known, is_new] = strings_.try_emplace(id);
    if (is_new) known->second = database_.string_of(id);
    return known->second;
  }

  void read_kernels() {
    const bool has_names = database_.has(kKernels, "demangledName");
    Rows rows = database_.rows(kKernels, {{"start"},
                                          {"end"},
                                          {"globalPid", false},
                                          {"deviceId"},
                                          {"streamId"},
                                          {"correlationId"},
                                          {has_names ? "demangledName" : "shortName"},
                                          {"graphNodeId", false}});
    while (rows.next()) {
      const std::uint32_t rank = begin_op(rows, "kernel");
      if (rank == kNoRank) continue;
      event_.name = string_of(rows.whole(6, 0));
      if (rows.whole(7, 0) != 0) {
        ++counts_.graph_kernels;
        graph_launches_.emplace(places_[rank].first, event_.correlation);
      }
      builders_[rank]->add(event_);
    }
  }

  void read_copies() {
    if (!database_.has(kCopies)) return;
    const MemoryKinds kinds(database_);
    Rows rows = database_.rows(kCopies, {{"start"},
                                         {"end"},
                                         {"globalPid", false},
                                         {"deviceId"},
                                         {"streamId"},
                                         {"correlationId"},
                                         {"copyKind"},
                                         {"bytes"},
                                         {"srcKind", false},
                                         {"dstKind", false}});
    while (rows.next()) {
      const std::uint32_t rank = begin_op(rows, "gpu_memcpy");
      if (rank == kNoRank) continue;
      const bool is_pageable = kinds.is_pageable(rows.whole(8)) || kinds.is_pageable(rows.whole(9));
      event_.name = name_of_copy(rows.whole(6, 0), is_pageable);
      event_.bytes = rows.whole(7, 0);
      builders_[rank]->add(event_);
    }
  }

  void read_sets() {
    if (!database_.has(kSets)) return;
    Rows rows = database_.rows(
        kSets,
        {{"start"}, {"end"}, {"globalPid", false}, {"deviceId"}, {"streamId"}, {"correlationId"}, {"bytes", false}});
    while (rows.next()) {
      const std::uint32_t rank = begin_op(rows, "gpu_memset");
      if (rank == kNoRank) continue;
      event_.name = "Memset";
      event_.bytes = rows.whole(6, 0);
      builders_[rank]->add(event_);
    }
  }

  const CallName& call_name(std::int64_t id) {
    const auto [known, is_new] = call_names_.try_emplace(id);
    if (!is_new) return known->second;
    CallName& name = known->second;
    name.text = without_version(database_.string_of(id));
    name.is_kept = profiler::call_kind(name.text).has_value();
    name.is_graph = name.text.find("GraphLaunch") != std::string::npos;
    return name;
  }

  /// Calls of a process with several GPUs are of that of what they launched, or of their thread's last launch.
  std::uint32_t rank_of_call(std::int64_t process, std::int64_t correlation, std::int64_t thread) {
    const auto ranks = of_process_.find(process);
    if (ranks == of_process_.end()) return kNoRank;
    if (ranks->second.size() == 1) return ranks->second.front();
    const auto launched = rank_of_launch_.find({process, correlation});
    std::uint32_t& last = last_rank_.try_emplace(thread, ranks->second.front()).first->second;
    if (launched != rank_of_launch_.end()) last = launched->second;
    return last;
  }

  void read_calls() {
    if (!database_.has(kCalls)) return;
    std::int64_t graphs = 0;
    Rows rows = database_.rows(kCalls, {{"start"}, {"end"}, {"globalTid"}, {"correlationId"}, {"nameId"}});
    while (rows.next()) {
      const CallName& name = call_name(rows.whole(4, 0));
      if (!name.is_kept) continue;
      const std::int64_t thread = rows.whole(2, 0), process = thread >> kProcessShift, correlation = rows.whole(3, 0);
      const std::uint32_t rank = rank_of_call(process, correlation, thread);
      if (rank == kNoRank) continue;
      if (name.is_graph) {
        ++graphs;
        if (!graph_launches_.contains({process, correlation})) ++counts_.graphs_without_kernels;
      }
      event_.clear();
      event_.phase = "X";
      event_.category = "cuda_runtime";
      event_.name = name.text;
      event_.thread = name_of_thread(thread);
      event_.start = at_ns(rows.whole(0, -1));
      event_.duration = duration_of(rows);
      event_.correlation = correlation;
      builders_[rank]->add(event_);
    }
    if (graphs > 0 && counts_.graphs_without_kernels == graphs) fail_for_graphs(graphs);
  }

  static std::string name_of_thread(std::int64_t thread) {
    return fmt::format("{}", thread & ((1 << kProcessShift) - 1));
  }

  /// What streams and the host waited for: an event that was recorded, where the export has these, or a stream.
  void read_syncs() {
    if (!database_.has(kSyncs)) return;
    Rows rows = database_.rows(kSyncs, {{"correlationId"},
                                        {"globalPid", false},
                                        {"deviceId", false},
                                        {"contextId", false},
                                        {"streamId"},
                                        {"eventId", false},
                                        {"eventSyncId", false},
                                        {"syncType", false}});
    while (rows.next()) {
      const std::int64_t process = process_of(rows.whole(1)), correlation = rows.whole(0, 0);
      const auto ranks = of_process_.find(process);
      if (ranks == of_process_.end()) continue;
      const bool has_event = is_given(rows.whole(5)) && rows.whole(7, 0) != kStreamSync;
      if (has_event && !records_.are_there()) continue;  // its dependency is inferred
      std::uint32_t rank = ranks->second.front();
      const EventRecord* record =
          has_event ? records_.find(process, rows.whole(3, 0), *rows.whole(5), rows.whole(6, -1), correlation)
                    : nullptr;
      if (ranks->second.size() > 1) {
        const auto known = ranks_.find({process, rows.whole(2, record == nullptr ? -1 : record->device)});
        if (known == ranks_.end()) continue;
        rank = known->second;
      }
      event_.clear();
      event_.phase = "X";
      event_.category = "cuda_sync";
      event_.correlation = correlation;
      event_.device = places_[rank].second;
      if (is_given(rows.whole(4))) event_.stream = *rows.whole(4);
      if (has_event) event_.awaited_record = -1;
      if (record != nullptr && (record->device < 0 || record->device == event_.device)) {
        event_.awaited_stream = record->stream;
        event_.awaited_record = record->correlation;
      } else if (record != nullptr) {
        ++counts_.foreign_waits;
      }
      builders_[rank]->add(event_);
    }
  }

  void read_ranges() {
    if (!database_.has(kRanges)) return;
    Rows rows = database_.rows(
        kRanges, {{"start"}, {"end"}, {"globalTid"}, {"text", false}, {"textId", false}, {"binaryData", false}});
    std::unordered_map<std::int64_t, RangeText> known;
    while (rows.next()) {
      if (!rows.whole(1)) continue;  // a mark, or a range that had not ended
      RangeText unshared;
      const RangeText* text = &unshared;
      if (const auto given = rows.text(3)) {
        unshared = range_text(*given);
      } else if (const auto id = rows.whole(4)) {
        const auto [found, is_new] = known.try_emplace(*id);
        if (is_new) found->second = range_text(database_.string_of(*id));
        text = &found->second;
      }
      if (text->nccl || text->creates_communicator)
        add_nccl(*text, rows);
      else if (!text->span.empty())
        add_span(text->span, rows);
    }
  }

  void add_nccl(const RangeText& text, const Rows& rows) {
    const std::int64_t thread = rows.whole(2, 0), process = thread >> kProcessShift;
    const auto ranks = of_process_.find(process);
    if (ranks == of_process_.end()) return;
    const std::map<std::string, std::int64_t> fields = payloads_.fields_of(rows.bytes(5));
    const auto field = [&](const char* name) {
      const auto found = fields.find(name);
      return found == fields.end() ? std::optional<std::int64_t>() : found->second;
    };
    const auto communicator = field("NCCL communicator ID");
    if (text.creates_communicator) {
      const auto count = field("No. of ranks"), rank = field("Rank");
      if (!communicator || *communicator == 0 || !count || !rank || *rank < 0 || *rank >= *count) return;
      const auto place = ranks->second.size() == 1 ? ranks_.find(places_[ranks->second.front()])
                                                   : ranks_.find({process, field("CUDA device").value_or(-1)});
      if (place == ranks_.end()) return;
      Communicator& one = communicators_[static_cast<std::uint64_t>(*communicator)];
      one.ranks = *count;
      one.traces[*rank] = first_number_ + place->second;
      return;
    }
    NcclCall call;
    call.range = *text.nccl;
    call.start = rows.whole(0, 0), call.end = rows.whole(1, 0);
    call.communicator = static_cast<std::uint64_t>(communicator.value_or(0));
    if (communicator) call.bytes = field("Message size [bytes]").value_or(-1);
    call.other = field("Peer rank").value_or(field("Root").value_or(-1));
    if (call.range != NcclRange::group_start && call.range != NcclRange::group_end && call.bytes < 0)
      ++counts_.unsized_calls;
    calls_[process][name_of_thread(thread)].push_back(call);
  }

  void add_span(const std::string& name, const Rows& rows) {
    const std::int64_t thread = rows.whole(2, 0);
    const auto ranks = of_process_.find(thread >> kProcessShift);
    if (ranks == of_process_.end()) return;
    event_.clear();
    event_.phase = "X";
    event_.category = "user_annotation";
    event_.name = name;
    event_.thread = name_of_thread(thread);
    event_.start = at_ns(rows.whole(0, -1));
    event_.duration = duration_of(rows);
    for (const std::uint32_t rank : ranks->second) builders_[rank]->add(event_);
  }

  Exported finish() {
    const std::int64_t clock = clock_base(database_);
    const GpuNames gpus(database_);
    Exported result;
    std::vector<std::int64_t> zero;
    for (std::uint32_t rank = 0; rank < builders_.size(); ++rank) {
      builders_[rank]->head("baseTimeNanoseconds", clock);
      result.traces.push_back(builders_[rank]->finish());
      builders_[rank].reset();
      zero.push_back(result.traces.back().base - clock);
      const std::int64_t process = places_[rank].first & ((1 << kProcessShift) - 1);
      result.traces.back().device_name = gpus.name_of(process, places_[rank].second);
      result.places.push_back({process, places_[rank].second});
    }
    for (auto& [process, calls] : calls_)
      match_calls(calls, of_process_.at(process), zero, first_number_, result.traces, communicators_);
    result.counts = counts_;
    return result;
  }

  Database database_;
  Payloads payloads_;
  EventRecords records_;
  const std::uint32_t first_number_;
  Communicators& communicators_;
  std::optional<std::int64_t> only_process_;
  std::map<ProcessAndDevice, std::uint32_t> ranks_;
  std::map<std::int64_t, std::vector<std::uint32_t>> of_process_;  // ranks
  std::vector<ProcessAndDevice> places_;                           // by rank
  std::vector<std::unique_ptr<profiler::TraceBuilder>> builders_;  // by rank
  std::unordered_map<std::int64_t, std::string> strings_;          // names of kernels
  std::unordered_map<std::int64_t, CallName> call_names_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> rank_of_launch_;  // in processes with several GPUs
  std::unordered_map<std::int64_t, std::uint32_t> last_rank_;                      // by thread of such processes
  std::set<std::pair<std::int64_t, std::int64_t>> graph_launches_;                 // with kernels
  std::map<std::int64_t, CallsOfThreads> calls_;                                   // of NCCL, by process
  ExportCounts counts_;
  TraceEvent event_;
};

}  // namespace

Exported read_export(const std::string& path, std::uint32_t first_number, Communicators& communicators) {
  return ExportReader(path, first_number, communicators).read();
}

}  // namespace manyworlds::experiments::nsys
