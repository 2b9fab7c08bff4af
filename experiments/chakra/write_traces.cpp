#include "experiments/chakra/write_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <utility>

#include "core/base/error.hpp"
#include "experiments/chakra/trace_paths.hpp"
#include "experiments/programs/written_account.hpp"

namespace manyworlds::experiments::chakra {
namespace {

using core::InputError;
using core::collective::Kind;
using programs::Communication;

/// Where the rank's own part stands until trace_of_rank() puts it there: attribute values that name a dimension.
constexpr const char* kGroup = "pg_name";
constexpr const char* kReceiver = "comm_dst";
constexpr const char* kSender = "comm_src";

/// A group's number in the groups' file.
std::uint64_t number_of(std::size_t group) {
  return group + 1;
}

CommType type_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return CommType::all_reduce;
    case Kind::all_gather:
      return CommType::all_gather;
    case Kind::reduce_scatter:
      return CommType::reduce_scatter;
    case Kind::all_to_all:
      return CommType::all_to_all;
    case Kind::broadcast:
      return CommType::broadcast;
    case Kind::reduce:
      return CommType::reduce;
    case Kind::send:
      break;
  }
  MANYWORLDS_CHECK(false, "kind {} is no collective", static_cast<int>(kind));
  return CommType::all_reduce;
}

class ProgramWriter {
 public:
  ProgramWriter(const programs::StreamPrograms& all, const programs::RankProgram& program, const std::string& name)
      : all_(all), program_(program), name_(name) {}

  Trace trace() {
    Trace trace;
    trace.version = "0.0.4";
    std::vector<std::int64_t> last(program_.streams.size(), -1);
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const programs::StreamOp& op = program_.ops[i];
      TraceNode& node = trace.nodes.emplace_back();
      node.id = i;
      node.name = all_.names.at(op.name);
      for (const std::uint32_t before : op.after) node.data_deps.push_back(before);
      if (last[op.stream] >= 0) node.data_deps.push_back(static_cast<std::uint64_t>(last[op.stream]));
      std::sort(node.data_deps.begin(), node.data_deps.end());
      node.data_deps.erase(std::unique(node.data_deps.begin(), node.data_deps.end()), node.data_deps.end());
      last[op.stream] = static_cast<std::int64_t>(i);
      write(op, node);
    }
    return trace;
  }

  const programs::Rounding& rounding() const { return rounding_; }
  std::int64_t copies_in_gpu() const { return copies_in_gpu_; }

 private:
  void integer(TraceNode& node, const char* name, std::int64_t value) const {
    node.attributes.push_back(Attribute::of(name, Attribute::kInt64, static_cast<std::uint64_t>(value)));
  }

  void write(const programs::StreamOp& op, TraceNode& node) {
    const bool is_host = std::holds_alternative<programs::HostWork>(op.work);
    node.attributes.push_back(Attribute::of("is_cpu_op", Attribute::kBool, is_host ? 1 : 0));
    if (const auto* host = std::get_if<programs::HostWork>(&op.work)) {
      node.type = static_cast<std::uint32_t>(NodeType::comp);
      time(node, host->us);
    } else if (const auto* kernel = std::get_if<programs::KernelWork>(&op.work)) {
      node.type = static_cast<std::uint32_t>(NodeType::comp);
      if (!kernel->measured_us)
        throw InputError(fmt::format("'{}' has no time, which a trace needs: simulate the programs on a GPU first",
                                     node.name.substr(0, 80)),
                         name_);
      if (kernel->flops > 0) integer(node, "num_ops", kernel->flops);
      if (kernel->shape.bytes > 0) bytes(node, kernel->shape.bytes);
      time(node, *kernel->measured_us);
    } else if (const auto* copy = std::get_if<programs::CopyWork>(&op.work)) {
      write_copy(*copy, node);
    } else {
      write_communication(std::get<Communication>(op.work), node);
    }
  }

  static void bytes(TraceNode& node, std::int64_t value) {
    node.attributes.push_back(Attribute::of("tensor_size", Attribute::kUint64, static_cast<std::uint64_t>(value)));
  }

  void write_copy(const programs::CopyWork& copy, TraceNode& node) {
    const bool is_remote = copy.direction == programs::CopyDirection::host_to_device ||
                           copy.direction == programs::CopyDirection::device_to_host;
    if (!is_remote && !copy.measured_us)
      throw InputError(
          fmt::format("'{}' is a copy inside a GPU with no time, which a trace needs", node.name.substr(0, 80)), name_);
    const NodeType type =
        copy.direction == programs::CopyDirection::host_to_device ? NodeType::mem_load : NodeType::mem_store;
    node.type = static_cast<std::uint32_t>(is_remote ? type : NodeType::comp);
    copies_in_gpu_ += is_remote ? 0 : 1;
    if (copy.bytes > 0) bytes(node, copy.bytes);
    if (copy.measured_us) time(node, *copy.measured_us);
  }

  void write_communication(const Communication& call, TraceNode& node) const {
    if (call.kind == Kind::send) {
      node.type = static_cast<std::uint32_t>(call.receives ? NodeType::comm_recv : NodeType::comm_send);
      integer(node, "comm_size", call.bytes);
      for (const char* end : {kSender, kReceiver})
        node.attributes.push_back(Attribute::of(end, Attribute::kInt32, call.dimension));
      node.attributes.push_back(Attribute::of("comm_tag", Attribute::kInt32, call.dimension));
      return;
    }
    node.type = static_cast<std::uint32_t>(NodeType::comm_coll);
    const bool is_rooted = call.kind == Kind::broadcast || call.kind == Kind::reduce;
    if (!call.split.even() && !is_rooted)
      throw InputError(
          fmt::format("'{}' divides its bytes unevenly, which a trace has no form for", node.name.substr(0, 80)),
          name_);
    integer(node, "comm_type", static_cast<std::int64_t>(type_of(call.kind)));
    integer(node, "comm_size", call.bytes);
    node.attributes.push_back(Attribute::of_text(kGroup, std::to_string(call.dimension)));
    if (is_rooted && !call.split.even()) {
      const auto root = std::max_element(call.split.bytes.begin(), call.split.bytes.end()) - call.split.bytes.begin();
      integer(node, "root_rank", root);
    }
  }

  void time(TraceNode& node, double us) {
    node.duration_us = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(us)));
    rounding_.add(us, static_cast<double>(node.duration_us));
    node.attributes.push_back(Attribute::of_real("measured_us", us));
  }

  const programs::StreamPrograms& all_;
  const programs::RankProgram& program_;
  const std::string& name_;
  programs::Rounding rounding_;
  std::int64_t copies_in_gpu_ = 0;
};

/// The groups of each rank: in a dimension, as a sender, as a receiver.
class Places {
 public:
  Places(const programs::StreamPrograms& programs, std::uint32_t rank) : ranks_(programs.ranks) {
    for (std::size_t i = 0; i < ranks_.groups.size(); ++i) {
      const core::workload::GivenGroup& group = ranks_.groups[i];
      const auto place = std::find(group.ranks.begin(), group.ranks.end(), rank);
      if (place == group.ranks.end()) continue;
      const bool is_pair = ranks_.dimensions[group.dimension].kind != core::workload::DimensionKind::groups;
      groups_[{group.dimension, is_pair && place != group.ranks.begin()}] = i;
    }
  }
  std::size_t group(std::uint32_t dimension, bool receives) const { return groups_.at({dimension, receives}); }
  const std::vector<std::uint32_t>& members(std::uint32_t dimension, bool receives) const {
    return ranks_.groups[group(dimension, receives)].ranks;
  }

 private:
  const core::workload::GivenRanks& ranks_;
  std::map<std::pair<std::uint32_t, bool>, std::size_t> groups_;
};

std::string groups_text(const programs::StreamPrograms& programs) {
  std::string text = "{";
  for (std::size_t i = 0; i < programs.ranks.groups.size(); ++i) {
    const core::workload::GivenGroup& group = programs.ranks.groups[i];
    if (programs.ranks.dimensions[group.dimension].kind != core::workload::DimensionKind::groups) continue;
    text += fmt::format("{}\n \"{}\": [{}]", text.size() > 1 ? "," : "", number_of(i), fmt::join(group.ranks, ", "));
  }
  return text + "\n}\n";
}

}  // namespace

WrittenTraces write_traces(const programs::StreamPrograms& programs, const std::string& name) {
  WrittenTraces written;
  std::vector<programs::Rounding> rounded;
  std::int64_t copies = 0;
  for (const programs::RankProgram& program : programs.programs) {
    ProgramWriter writer(programs, program, name);
    written.traces.push_back(writer.trace());
    rounded.push_back(writer.rounding());
    copies = std::max(copies, writer.copies_in_gpu());
  }
  written.of_rank = programs.ranks.program_of_rank;
  written.groups = groups_text(programs);
  if (const std::string text = programs::rounding_text(rounded, "whole microseconds, 1 at least"); !text.empty())
    written.account.push_back(text + "; our own measured_us is exact");
  if (copies > 0)
    written.account.push_back(
        fmt::format("up to {} copies of a rank inside GPUs are compute nodes, as its kernels are", copies));
  if (const std::string text = programs::left_out_text(programs); !text.empty()) written.account.push_back(text);
  return written;
}

Trace trace_of_rank(const WrittenTraces& written, const programs::StreamPrograms& programs, std::uint32_t rank) {
  Trace trace = written.traces.at(written.of_rank.at(rank));
  const Places places(programs, rank);
  for (TraceNode& node : trace.nodes) {
    const auto type = static_cast<NodeType>(node.type);
    const bool receives = type == NodeType::comm_recv, is_collective = type == NodeType::comm_coll;
    if (!is_collective && !receives && type != NodeType::comm_send) continue;
    std::uint64_t* size = nullptr;
    std::size_t members = 1;
    bool gathers = false;
    for (Attribute& attribute : node.attributes) {
      if (attribute.name == "comm_size") size = &attribute.bits;
      if (attribute.name == "comm_type") gathers = attribute.bits == static_cast<std::uint64_t>(CommType::all_gather);
      if (attribute.name == kGroup) {
        const auto dimension = static_cast<std::uint32_t>(std::stoul(attribute.bytes));
        members = places.members(dimension, false).size();
        attribute.bytes = std::to_string(number_of(places.group(dimension, false)));
      }
      if (attribute.name == kSender || attribute.name == kReceiver)
        attribute.bits =
            places.members(static_cast<std::uint32_t>(attribute.bits), receives)[attribute.name == kReceiver];
    }
    if (gathers && size != nullptr) *size /= members;
  }
  return trace;
}

std::vector<std::string> write_trace_files(const programs::StreamPrograms& programs, const std::string& prefix) {
  const auto write = [](const std::string& path, const std::string& bytes) {
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    if (!file.flush()) throw core::IoError("write", path);
  };
  WrittenTraces written = write_traces(programs, prefix);
  for (std::uint32_t rank = 0; rank < written.of_rank.size(); ++rank)
    write(path_of(prefix, rank), trace_bytes(trace_of_rank(written, programs, rank)));
  write(groups_path_of(prefix), written.groups);
  return std::move(written.account);
}

}  // namespace manyworlds::experiments::chakra
