#include "experiments/chakra/read_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "core/base/error.hpp"
#include "experiments/chakra/comm_groups.hpp"
#include "experiments/chakra/trace.hpp"
#include "experiments/chakra/trace_paths.hpp"
#include "experiments/graphs/graph_programs.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::chakra {
namespace {

using core::InputError;
using core::collective::Kind;

constexpr std::size_t kMaxTraceBytes = std::size_t{2} << 30;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
constexpr std::uint64_t kMaxUs = 1'000'000'000;
/// ASTRA-sim's resources of a rank.
enum Resource : std::uint32_t { host, compute, communication };

/// What is counted over all ranks for the account.
struct Counts {
  std::map<std::uint32_t, std::int64_t> unknown_types;
  std::map<std::string, std::int64_t> unknown_attributes;
  std::int64_t control = 0, host_communications = 0, without_time = 0, by_roofline = 0, broadcasts = 0;
};

const std::set<std::string_view>& known_attributes() {
  // Those of the last two lines are what converters of PyTorch traces leave behind: names and threads.
  static const std::set<std::string_view> names{
      "is_cpu_op", "num_ops",  "tensor_size", "comm_type",    "comm_priority", "comm_size",   "comm_src",
      "comm_dst",  "comm_tag", "pg_name",     "involved_dim", "root_rank",     "measured_us", "rf_id",
      "fw_parent", "seq_id",   "scope",       "tid",          "fw_tid",        "op_schema",   "stream"};
  return names;
}

class NodeReader {
 public:
  NodeReader(std::uint32_t rank, const std::string& name, CommGroups& groups, const TraceOptions& options,
             Counts& counts)
      : rank_(rank), name_(name), groups_(groups), options_(options), counts_(counts) {}

  graphs::RankGraph graph_of(const Trace& trace) {
    graphs::RankGraph graph{name_, {}};
    const NodePlaces places(trace.nodes, name_);
    for (const TraceNode& node : trace.nodes) {
      graphs::GraphNode& to = graph.nodes.emplace_back();
      to.id = node.id;
      to.name = node.name.empty() ? fmt::format("node {}", node.id) : node.name;
      places.append(node, node.data_deps, to.parents);
      if (options_.follows_control) places.append(node, node.ctrl_deps, to.parents);
      counts_.control += std::ssize(node.ctrl_deps);
      set_work(node, to);
    }
    if (!options_.rendezvous) graphs::post_receives(graph, kMaxBytes);
    return graph;
  }

  /// The group of a collective, which involved_dim may make.
  std::uint32_t group_of(const TraceNode& node) {
    const Attribute* group = find(node, "pg_name");
    if (group != nullptr && !group->text()) fail(node, "has a 'pg_name' that is no text");
    const std::string called = group == nullptr ? std::string() : std::string(*group->text());
    const std::optional<std::uint32_t> known = groups_.find(rank_, called);
    if (!known)
      fail(node, fmt::format("is of group '{}', which neither the groups' file (--groups) nor the trace has", called));
    if (*known != 0) return *known;
    if (const auto some = involved(node)) return groups_.around(rank_, options_.dimensions, *some);
    return 0;
  }

  /// Whether the graph has a transfer, or a collective of other than all ranks: it is of this rank alone.
  bool is_of_rank() const { return is_of_rank_; }

 private:
  [[noreturn]] void fail(const TraceNode& node, const std::string& why) const { refuse(node, why, name_); }

  const Attribute* find(const TraceNode& node, std::string_view name) const {
    for (const Attribute& attribute : node.attributes)
      if (attribute.name == name) return &attribute;
    return nullptr;
  }

  std::int64_t integer(const TraceNode& node, std::string_view name, std::int64_t otherwise, std::int64_t most) const {
    const Attribute* attribute = find(node, name);
    if (attribute == nullptr) return otherwise;
    const std::optional<std::int64_t> value = attribute->integer();
    if (!value || *value < 0 || *value > most)
      fail(node, fmt::format("has '{}' which is no integer from 0 to {}", name, most));
    return *value;
  }

  std::int64_t needed(const TraceNode& node, std::string_view name, std::int64_t most) const {
    if (find(node, name) == nullptr) fail(node, fmt::format("has no attribute '{}'", name));
    return integer(node, name, 0, most);
  }

  void set_work(const TraceNode& node, graphs::GraphNode& to) {
    for (const Attribute& attribute : node.attributes)
      if (known_attributes().count(attribute.name) == 0) ++counts_.unknown_attributes[attribute.name.substr(0, 60)];
    if (node.duration_us > kMaxUs) fail(node, fmt::format("takes {} us, above {}", node.duration_us, kMaxUs));
    const bool is_host = integer(node, "is_cpu_op", 0, 1) != 0;
    to.us = exact_us(node);
    const auto type = static_cast<NodeType>(node.type);
    const bool is_communication =
        type == NodeType::comm_coll || type == NodeType::comm_send || type == NodeType::comm_recv;
    if (is_host && (is_communication || type == NodeType::comp)) {
      if (is_communication) ++counts_.host_communications;
      to.work = programs::HostWork{to.us};
      to.resource = Resource::host;
    } else if (type == NodeType::comp) {
      to.work = kernel_of(node, to.us);
      to.resource = Resource::compute;
    } else if (is_communication) {
      communication(node, type, to);
    } else if (type == NodeType::mem_load || type == NodeType::mem_store) {
      programs::CopyWork copy;
      copy.direction = type == NodeType::mem_load ? programs::CopyDirection::host_to_device
                                                  : programs::CopyDirection::device_to_host;
      copy.bytes = integer(node, "tensor_size", 0, kMaxBytes);
      if (node.duration_us > 0 || copy.bytes == 0) copy.measured_us = to.us;
      to.work = copy;
      to.resource = is_host ? Resource::host : Resource::communication;
    } else if (type != NodeType::invalid && type != NodeType::metadata) {
      ++counts_.unknown_types[node.type];
    }
    if (!options_.one_at_a_time) to.resource = graphs::kNoResource;
  }

  /// ASTRA-sim takes what has no duration for a nanosecond. `measured_us` is ours, for times below a microsecond.
  double exact_us(const TraceNode& node) const {
    if (const Attribute* exact = find(node, "measured_us")) {
      const std::optional<double> us = exact->real();
      if (!us || !(*us >= 0 && *us <= static_cast<double>(kMaxUs))) fail(node, "has 'measured_us' which is no time");
      return *us;
    }
    return node.duration_us > 0 ? static_cast<double>(node.duration_us) : 1e-3;
  }

  programs::KernelWork kernel_of(const TraceNode& node, double& us) {
    programs::KernelWork work;
    work.flops = integer(node, "num_ops", 0, std::numeric_limits<std::int64_t>::max());
    work.shape.bytes = integer(node, "tensor_size", 0, kMaxBytes);
    const bool has_time = node.duration_us > 0 || find(node, "measured_us") != nullptr;
    if (options_.roofline && work.flops > 0 && work.shape.bytes > 0) {
      us = std::max(static_cast<double>(work.flops) / (options_.roofline->peak_tflops * 1e6),
                    static_cast<double>(work.shape.bytes) / (options_.roofline->memory_gb_per_s * 1e3));
      ++counts_.by_roofline;
    } else if (!has_time && work.flops > 0) {
      fail(node,
           "has num_ops and no duration: say the peak and the memory bandwidth of the GPU (ASTRA-sim's roofline)");
    } else if (!has_time) {
      ++counts_.without_time;
    }
    work.measured_us = us;
    return work;
  }

  void communication(const TraceNode& node, NodeType type, graphs::GraphNode& to) {
    const std::int64_t bytes = needed(node, "comm_size", kMaxBytes);
    to.resource = type == NodeType::comm_recv ? graphs::kNoResource : std::uint32_t{Resource::communication};
    if (type == NodeType::comm_coll) return collective(node, bytes, to);
    is_of_rank_ = true;
    graphs::Transfer transfer;
    transfer.receives = type == NodeType::comm_recv;
    transfer.bytes = bytes;
    const char* peer = transfer.receives ? "comm_src" : "comm_dst";
    transfer.peer = static_cast<std::uint32_t>(needed(node, peer, programs::kMaxRanks));
    const char* own = transfer.receives ? "comm_dst" : "comm_src";
    if (integer(node, own, rank_, programs::kMaxRanks) != rank_)
      fail(node, fmt::format("has a '{}' other than its own rank {}", own, rank_));
    transfer.tag = static_cast<std::uint64_t>(integer(node, "comm_tag", 0, 0xffffffff));
    if (bytes > 0) to.work = transfer;
    to.us = bytes > 0 ? to.us : 0;
  }

  /// The dimensions that a collective of all ranks involves, where these are not all of them.
  std::optional<std::vector<bool>> involved(const TraceNode& node) const {
    const Attribute* attribute = find(node, "involved_dim");
    if (attribute == nullptr || attribute->field != Attribute::kBoolList) return std::nullopt;
    std::vector<bool> all;
    for (WireReader list(attribute->bytes, name_); !list.done();) {
      const WireField field = list.field();
      if (field.number != 1) continue;
      if (field.type == WireType::varint) all.push_back(field.value != 0);
      if (field.type != WireType::bytes) continue;
      for (WireReader packed(field.bytes, name_); !packed.done();) all.push_back(packed.varint() != 0);
    }
    if (options_.dimensions.empty()) {
      if (std::find(all.begin(), all.end(), false) == all.end()) return std::nullopt;
      fail(
          node,
          "involves some dimensions of ASTRA-sim's topology alone: say the topology (--astra-system, --astra-network), "
          "or give it a group ('pg_name')");
    }
    if (all.empty()) fail(node, "involves no dimension, of which ASTRA-sim waits for the end for ever");
    if (all.size() < options_.dimensions.size())
      fail(node, fmt::format("has 'involved_dim' of {} dimensions, where the network has {}", all.size(),
                             options_.dimensions.size()));
    all.resize(options_.dimensions.size());
    const auto number = std::count(all.begin(), all.end(), true);
    if (number == 0) fail(node, "involves no dimension, of which ASTRA-sim waits for the end for ever");
    if (number == std::ssize(all)) return std::nullopt;
    return all;
  }

  void collective(const TraceNode& node, std::int64_t bytes, graphs::GraphNode& to) {
    graphs::GroupCall call;
    call.group = group_of(node);
    is_of_rank_ = is_of_rank_ || call.group != 0;
    call.bytes = bytes;
    const auto members = static_cast<std::int64_t>(groups_.ranks()[call.group].size());
    switch (static_cast<CommType>(needed(node, "comm_type", 1000))) {
      case CommType::all_reduce:
        break;
      case CommType::barrier:
        call.bytes = std::max<std::int64_t>(bytes, 4);
        break;
      case CommType::all_gather:
        call.kind = Kind::all_gather;
        if (bytes > kMaxBytes / members) fail(node, "gathers more than 2^50 bytes");
        call.bytes = bytes * members;
        break;
      case CommType::all_to_all:
        call.kind = Kind::all_to_all;
        break;
      case CommType::reduce_scatter:
      case CommType::reduce_scatter_block:
        call.kind = Kind::reduce_scatter;
        break;
      case CommType::broadcast:
      case CommType::reduce:
        call.kind = needed(node, "comm_type", 1000) == static_cast<std::int64_t>(CommType::reduce) ? Kind::reduce
                                                                                                   : Kind::broadcast;
        call.root = static_cast<std::uint32_t>(integer(node, "root_rank", 0, members - 1));
        if (call.kind == Kind::broadcast) ++counts_.broadcasts;
        break;
      default:
        fail(node, fmt::format("has 'comm_type' {}: gather and scatter are not known here, nor to ASTRA-sim",
                               integer(node, "comm_type", 0, 1000)));
    }
    if (call.bytes > 0) to.work = call;
    if (call.bytes == 0) to.resource = graphs::kNoResource;
  }

  std::uint32_t rank_;
  const std::string& name_;
  CommGroups& groups_;
  const TraceOptions& options_;
  Counts& counts_;
  bool is_of_rank_ = false;
};

/// Tells what is not as it stands, of programs that are simulated or of graphs alone.
void tell(const Counts& counts, const TraceOptions& options, bool are_simulated, programs::Imported& to) {
  const auto count = [&](std::int64_t number, const std::string& what) {
    if (number > 0) to.account.push_back(fmt::format("{} {}", number, what));
  };
  for (const auto& [type, number] : counts.unknown_types)
    count(number, fmt::format("nodes of type {}, which the schema does not have, take no time", type));
  std::string unknown;
  for (const auto& [name, number] : counts.unknown_attributes)
    if (unknown.size() < 400) unknown += fmt::format("{}{} ({})", unknown.empty() ? "" : ", ", name, number);
  if (!unknown.empty()) to.account.push_back("attributes that are not known, and not followed: " + unknown);
  if (!options.follows_control)
    count(counts.control,
          "control dependencies are not followed, as Chakra's own feeder follows those of data alone; ASTRA-sim's "
          "follows both (--collectives as-astra)");
  count(counts.host_communications,
        "communications with is_cpu_op are host operations: the GPU's own nodes communicate");
  if (are_simulated || !options.roofline)  // of graphs, the roofline says what has no time
    count(counts.without_time, "compute nodes have no duration, and take a nanosecond as in ASTRA-sim");
  count(counts.by_roofline, "compute nodes are timed by the roofline");
  if (are_simulated) count(counts.broadcasts, "broadcasts are simulated; ASTRA-sim replays their duration");
  if (!are_simulated) return;
  to.programs.notes.push_back(
      options.one_at_a_time
          ? "a rank does one host operation, one kernel and one communication at a time, in the order in which it "
            "would "
            "alone; ASTRA-sim decides by the state of the network"
          : "what no dependency orders may run at once; ASTRA-sim runs one kernel and one communication at a time");
  to.programs.notes.push_back(
      "a transfer begins when both ends have come to it; kernels are not slowed by collectives");
}

using Load = std::function<TraceFile(std::uint32_t)>;

/// Reads the traces of a job, and hands its graphs on as they come: large ones need not all be there at once.
class JobReader {
 public:
  JobReader(std::uint32_t files, const Load& load, std::string_view groups_text, const std::string& what,
            const TraceOptions& options)
      : files_(files), load_(load), what_(what), options_(options), groups_(ranks_of(files, what, options)) {
    if (options.roofline && !(options.roofline->peak_tflops > 0 && options.roofline->memory_gb_per_s > 0))
      throw InputError("needs a roofline of a peak and a bandwidth above 0", what);
    if (!options.groups_path.empty() || !groups_text.empty())
      groups_.add_file(groups_text, options.groups_path.empty() ? "groups" : options.groups_path);
    else
      add_listed_groups();
  }

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(groups_.ranks().front().size()); }
  const CommGroups& groups() const { return groups_; }

  /// Calls `add` with a rank and its graph, or `add_same` with a rank and one before it that does the same.
  template <class Add, class AddSame>
  void read(const Add& add, const AddSame& add_same) {
    std::unordered_map<std::string, std::uint32_t>
        same_anywhere;  // bytes of files that are of no rank alone, and the first
    for (std::uint32_t rank = 0; rank < files_; ++rank) {
      const TraceFile file = load_(rank);
      if (const auto known = same_anywhere.find(file.bytes); known != same_anywhere.end()) {
        add_same(rank, known->second);
        continue;
      }
      const Trace trace = parse_trace(file.bytes, file.name);
      versions_.insert(trace.version);
      NodeReader reader(rank, file.name, groups_, options_, counts_);
      graphs::RankGraph graph = reader.graph_of(trace);
      if (graph.nodes.empty()) throw InputError("has no node", file.name);
      add(rank, std::move(graph));
      if (!reader.is_of_rank() && file.bytes.size() < (1u << 20) && same_anywhere.size() < 64)
        same_anywhere.emplace(file.bytes, rank);
      if (files_ > 1 || ranks() == 1) continue;
      if (reader.is_of_rank())
        throw InputError(
            fmt::format("is of one rank alone, by its transfers or groups, and cannot stand for {}", ranks()),
            file.name);
      for (std::uint32_t other = 1; other < ranks(); ++other) add_same(other, 0);
    }
  }

  /// Finds the groups that involved_dim makes, which are else found while the traces are read.
  void find_groups() {
    for (std::uint32_t rank = 0; rank < files_ && !options_.dimensions.empty(); ++rank) {
      const TraceFile file = load_(rank);
      NodeReader reader(rank, file.name, groups_, options_, counts_);
      for (const TraceNode& node : parse_trace(file.bytes, file.name).nodes)
        if (node.type == static_cast<std::uint32_t>(NodeType::comm_coll)) reader.group_of(node);
    }
  }

  void tell(programs::Imported& to, bool are_simulated) const {
    to.programs.name = what_.substr(what_.rfind('/') + 1);
    to.programs.origin = fmt::format("Chakra traces {}", what_);
    std::string all_versions;
    for (const std::string& version : versions_)
      all_versions += (all_versions.empty() ? "" : ", ") + version.substr(0, 20);
    if (!all_versions.empty()) to.account.push_back("schema " + all_versions);
    chakra::tell(counts_, options_, are_simulated, to);
  }

 private:
  static std::uint32_t ranks_of(std::uint32_t files, const std::string& what, const TraceOptions& options) {
    const std::uint32_t ranks = files == 1 ? options.ranks.value_or(1) : files;
    if (options.ranks && *options.ranks != ranks)
      throw InputError(fmt::format("has traces of {} ranks, not of {}", files, *options.ranks), what);
    return ranks;
  }

  void add_listed_groups() {
    for (std::uint32_t rank = 0; rank < files_; ++rank) {
      const TraceFile file = load_(rank);
      try {
        for (const TraceNode& node : parse_trace(file.bytes, file.name).nodes)
          if (node.type == static_cast<std::uint32_t>(NodeType::metadata)) groups_.add_listed(rank, node);
      } catch (const InputError& error) {
        if (std::string_view(error.what()).starts_with(file.name)) throw;
        throw InputError(error.what(), file.name);
      }
    }
  }

  std::uint32_t files_;
  const Load& load_;
  const std::string& what_;
  const TraceOptions& options_;
  CommGroups groups_;
  Counts counts_;
  std::set<std::string> versions_;
};

programs::Imported import_all(JobReader reader, const std::string& what) {
  reader.find_groups();
  graphs::GraphPrograms job(reader.ranks(), reader.groups().ranks(), reader.groups().exposed());
  reader.read([&](std::uint32_t rank, const graphs::RankGraph& graph) { job.add(rank, graph); },
              [&](std::uint32_t rank, std::uint32_t as) { job.add_same(rank, as); });
  programs::Imported result = job.finish(what);
  reader.tell(result, true);
  return result;
}

TraceGraphs graphs_of(JobReader reader) {
  TraceGraphs all;
  all.graph_of_rank.resize(reader.ranks());
  reader.read(
      [&](std::uint32_t rank, graphs::RankGraph graph) {
        all.graph_of_rank[rank] = static_cast<std::uint32_t>(all.graphs.size());
        all.graphs.push_back(std::move(graph));
      },
      [&](std::uint32_t rank, std::uint32_t as) { all.graph_of_rank[rank] = all.graph_of_rank[as]; });
  all.groups = reader.groups().ranks();
  all.exposed = reader.groups().exposed();
  all.dimensions = reader.groups().dimensions();
  reader.tell(all.told, false);
  return all;
}

/// Calls `use` with a reader of the traces at a prefix.
template <class Use>
auto with_files(const std::string& prefix, const TraceOptions& options, const Use& use) {
  const std::uint32_t files = count_traces(prefix);
  const std::string groups = options.groups_path.empty() ? std::string() : import::read_text(options.groups_path);
  const Load load = [&](std::uint32_t rank) {
    return TraceFile{path_of(prefix, rank), import::read_table_text(path_of(prefix, rank), kMaxTraceBytes)};
  };
  return use(JobReader(files, load, groups, prefix, options));
}

template <class Use>
auto with_files(const std::vector<TraceFile>& files, std::string_view groups, const std::string& what,
                const TraceOptions& options, const Use& use) {
  if (files.empty()) throw InputError("has no trace", what);
  const Load load = [&](std::uint32_t rank) { return files[rank]; };
  return use(JobReader(static_cast<std::uint32_t>(files.size()), load, groups, what, options));
}

}  // namespace

programs::Imported import_traces(const std::vector<TraceFile>& files, std::string_view groups, const std::string& what,
                                 const TraceOptions& options) {
  return with_files(files, groups, what, options,
                    [&](JobReader reader) { return import_all(std::move(reader), what); });
}

programs::Imported read_traces(const std::string& prefix, const TraceOptions& options) {
  return with_files(prefix, options, [&](JobReader reader) { return import_all(std::move(reader), prefix); });
}

TraceGraphs import_graphs(const std::vector<TraceFile>& files, std::string_view groups, const std::string& what,
                          const TraceOptions& options) {
  return with_files(files, groups, what, options, [](JobReader reader) { return graphs_of(std::move(reader)); });
}

TraceGraphs read_graphs(const std::string& prefix, const TraceOptions& options) {
  return with_files(prefix, options, [](JobReader reader) { return graphs_of(std::move(reader)); });
}

}  // namespace manyworlds::experiments::chakra
