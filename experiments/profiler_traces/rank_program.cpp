#include "experiments/profiler_traces/rank_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>
#include <utility>

#include "experiments/profiler_traces/host_threads.hpp"
#include "experiments/profiler_traces/passes.hpp"
#include "experiments/profiler_traces/stream_times.hpp"

namespace manyworlds::experiments::profiler {
namespace {

using core::collective::Kind;
using core::workload::StepPart;
using programs::StreamOp;

double in_us(std::int64_t ns) {
  return static_cast<double>(ns) / 1000;  // the double that the text of so many microseconds is read as
}

/// Puts nodes in an order in which each comes after those it waits for, the earliest recorded first. `streams` has the
/// nodes of each stream in order. Edges that close a circle are taken out of `edges`; returns how many.
class Order {
 public:
  Order(const std::vector<std::int64_t>& times, const std::vector<std::vector<std::uint32_t>>& streams,
        std::vector<Edge>& edges)
      : times_(times), edges_(edges), waits_(times.size()), next_(times.size(), kNone), done_(times.size()) {
    for (const std::vector<std::uint32_t>& stream : streams)
      for (std::size_t i = 1; i < stream.size(); ++i) {
        next_[stream[i - 1]] = stream[i];
        ++waits_[stream[i]];
      }
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    first_.assign(times.size() + 1, 0);
    for (const Edge& edge : edges_) ++waits_[edge.to], ++first_[edge.from + 1];
    for (std::size_t i = 0; i < times.size(); ++i) first_[i + 1] += first_[i];
    is_dropped_.resize(edges_.size());
  }

  std::vector<std::uint32_t> find() {
    for (std::uint32_t node = 0; node < times_.size(); ++node)
      if (waits_[node] == 0) ready_.emplace(times_[node], node);
    while (result_.size() < times_.size()) {
      if (ready_.empty()) break_circle();
      take();
    }
    std::vector<Edge> kept;
    for (std::size_t i = 0; i < edges_.size(); ++i)
      if (!is_dropped_[i]) kept.push_back(edges_[i]);
    dropped_ = std::ssize(edges_) - std::ssize(kept);
    edges_ = std::move(kept);
    return std::move(result_);
  }
  std::int64_t dropped() const { return dropped_; }

 private:
  using Ready = std::pair<std::int64_t, std::uint32_t>;

  void take() {
    const std::uint32_t node = ready_.top().second;
    ready_.pop();
    done_[node] = true;
    result_.push_back(node);
    for (std::size_t i = first_[node]; i < first_[node + 1]; ++i)
      if (!is_dropped_[i]) release(edges_[i].to);
    if (next_[node] != kNone) release(next_[node]);
  }
  void release(std::uint32_t node) {
    if (--waits_[node] == 0) ready_.emplace(times_[node], node);
  }

  /// Drops what the earliest of the operations that are at the head of their streams waits for.
  void break_circle() {
    std::vector<bool> is_head(times_.size(), true);
    for (std::uint32_t node = 0; node < times_.size(); ++node)
      if (!done_[node] && next_[node] != kNone) is_head[next_[node]] = false;
    std::uint32_t earliest = kNone;
    for (std::uint32_t node = 0; node < times_.size(); ++node)
      if (!done_[node] && is_head[node] && (earliest == kNone || times_[node] < times_[earliest])) earliest = node;
    for (std::size_t i = 0; i < edges_.size(); ++i)
      if (edges_[i].to == earliest && !is_dropped_[i] && !done_[edges_[i].from]) {
        is_dropped_[i] = true;
        --waits_[earliest];
      }
    ready_.emplace(times_[earliest], earliest);
  }

  const std::vector<std::int64_t>& times_;
  std::vector<Edge>& edges_;
  std::vector<std::uint32_t> waits_;  // by node: what it still waits for
  std::vector<std::uint32_t> next_;   // by node: the next of its stream
  std::vector<std::size_t> first_;    // by node: its first edge
  std::vector<bool> is_dropped_, done_;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
  std::vector<std::uint32_t> result_;
  std::int64_t dropped_ = 0;
};

class Assembly {
 public:
  Assembly(const RankTrace& trace, const std::map<std::uint32_t, MatchedOp>& matched, const MatchedCollectives& all,
           Collectives collectives, std::int64_t begin, programs::Names& names)
      : trace_(trace),
        matched_(matched),
        all_(all),
        collectives_(collectives),
        begin_(begin),
        names_(names),
        launches_(trace),
        waits_(find_waits(trace, launches_)),
        communicates_(trace.ops.size()),
        passes_(trace) {
    if (collectives == Collectives::simulated)
      for (const auto& [op, ignored] : matched) communicates_[op] = true;
    times_ = stream_times(trace, launches_, waits_, communicates_);
    host_ = host_threads(trace, launches_, waits_, times_, begin);
  }

  AssembledRank assemble() {
    AssembledRank result;
    account(result.account);
    std::vector<Edge> edges = std::move(host_.edges);
    for (const OpEdge& edge : waits_.edges) edges.push_back({edge.from, edge.to});
    keep_dimensions_in_order(edges);
    const std::vector<std::vector<std::uint32_t>> streams = streams_of(result.program);
    std::vector<std::int64_t> at;
    for (const DeviceOp& op : trace_.ops) at.push_back(op.start);
    for (const HostOp& op : host_.ops) at.push_back(op.end);
    Order order(at, streams, edges);
    const std::vector<std::uint32_t> nodes = order.find();
    result.account.cycles = order.dropped();
    add_ops(nodes, edges, result.program);
    return result;
  }

 private:
  std::size_t devices() const { return trace_.ops.size(); }

  void account(RankAccount& to) const {
    to.between_streams = waits_.between_streams, to.host = waits_.host;
    to.unresolved = waits_.unresolved, to.of_library = waits_.of_library;
    to.launches = host_.launches, to.handovers = host_.handovers, to.unlaunched = host_.unlaunched;
    to.overlapping = times_.overlapping;
    to.late = host_.late, to.late_us = in_us(host_.lateness);
    to.gaps_us = in_us(times_.gaps);
    to.operations = trace_.ops.size(), to.threads = host_.threads.size();
    std::int64_t end = begin_;
    std::set<std::int64_t> devices;
    for (const DeviceOp& op : trace_.ops) {
      end = std::max(end, op.end());
      devices.insert(trace_.streams[op.stream].device);
    }
    to.devices = devices.size();
    for (const HostOp& op : host_.ops) end = std::max(end, op.end);
    to.span_us = in_us(end - begin_);
  }

  /// NCCL runs the collectives of a communicator one after the other, whatever their streams.
  void keep_dimensions_in_order(std::vector<Edge>& edges) const {
    if (collectives_ != Collectives::simulated) return;
    std::map<std::pair<std::uint32_t, bool>, std::uint32_t> last;  // by dimension, and whether it receives
    for (const auto& [op, matched] : matched_) {
      const auto [known, is_new] = last.try_emplace({matched.dimension, matched.what.receives}, op);
      if (!is_new && trace_.ops[known->second].stream != trace_.ops[op].stream) edges.push_back({known->second, op});
      known->second = op;
    }
  }

  /// Names the streams: that of the device with the most time of kernels is the compute stream, and the first thread
  /// the host. Returns their nodes, and sets the stream of each.
  std::vector<std::vector<std::uint32_t>> streams_of(programs::RankProgram& program) {
    std::vector<std::int64_t> busy(trace_.streams.size()), has_ops(trace_.streams.size());
    for (const DeviceOp& op : trace_.ops) {
      ++has_ops[op.stream];
      if (op.kind == DeviceKind::kernel && !op.communicates()) busy[op.stream] += op.duration + 1;
    }
    const auto busiest = static_cast<std::size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
    std::vector<std::uint32_t> number(trace_.streams.size());
    const bool one_device = std::all_of(trace_.streams.begin(), trace_.streams.end(), [&](const DeviceStream& one) {
      return one.device == trace_.streams[0].device;
    });
    for (std::size_t stream = 0; stream < trace_.streams.size(); ++stream) {
      if (has_ops[stream] == 0) continue;
      const DeviceStream& one = trace_.streams[stream];
      number[stream] = static_cast<std::uint32_t>(program.streams.size());
      std::string name =
          one_device ? fmt::format("stream {}", one.id) : fmt::format("stream {}:{}", one.device, one.id);
      if (stream == busiest && busy[stream] > 0) name = "compute";
      program.streams.push_back({std::move(name), programs::StreamKind::device});
    }
    const auto first_thread = static_cast<std::uint32_t>(program.streams.size());
    for (std::size_t thread = 0; thread < host_.threads.size(); ++thread)
      program.streams.push_back({thread == 0 ? "host" : host_.threads[thread], programs::StreamKind::host});
    std::vector<std::vector<std::uint32_t>> nodes(program.streams.size());
    for (std::uint32_t op = 0; op < devices(); ++op) stream_of_.push_back(number[trace_.ops[op].stream]);
    for (const HostOp& op : host_.ops) stream_of_.push_back(first_thread + op.thread);
    for (std::uint32_t node = 0; node < stream_of_.size(); ++node) nodes[stream_of_[node]].push_back(node);
    return nodes;
  }

  void add_ops(const std::vector<std::uint32_t>& nodes, const std::vector<Edge>& edges,
               programs::RankProgram& program) {
    std::vector<std::uint32_t> place(nodes.size());
    for (std::uint32_t i = 0; i < nodes.size(); ++i) place[nodes[i]] = i;
    program.ops.resize(nodes.size());
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      StreamOp& op = program.ops[i];
      op.stream = stream_of_[nodes[i]];
      if (nodes[i] < devices())
        set_device_op(nodes[i], op);
      else
        set_host_op(host_.ops[nodes[i] - devices()], op);
    }
    for (const Edge& edge : edges) program.ops[place[edge.to]].after.push_back(place[edge.from]);
    for (StreamOp& op : program.ops) std::sort(op.after.begin(), op.after.end());
  }

  void set_host_op(const HostOp& host, StreamOp& op) {
    op.name = names_(host.name == kNone      ? "not known"
                     : host.name == kTakesUp ? "takes up an event"
                                             : trace_.names[host.name]);
    op.work = programs::HostWork{in_us(host.duration)};
  }

  void set_device_op(std::uint32_t number, StreamOp& op) {
    const DeviceOp& device = trace_.ops[number];
    op.name = names_(trace_.names[device.name]);
    op.began_us = in_us(device.start - begin_);
    const std::uint32_t call = launches_.call_of(number);
    if (communicates_[number]) {
      op.work = communication(matched_.at(number));
    } else if (device.kind != DeviceKind::kernel) {
      programs::CopyWork copy;
      copy.direction = device.direction;
      copy.bytes = device.bytes > 0 || call == kNone ? device.bytes : trace_.calls[call].bytes;
      copy.measured_us = in_us(times_.occupied[number]);
      op.work = copy;
    } else {
      programs::KernelWork kernel;
      kernel.measured_us = in_us(times_.occupied[number]);
      if (device.is_collective)
        kernel.part = StepPart::exposed_other;
      else if (device.is_expert_exchange)
        kernel.part = StepPart::exposed_ep;
      else if (call != kNone)
        kernel.part = passes_.part_of(trace_.calls[call].thread, trace_.calls[call].start);
      const auto matched = matched_.find(number);
      if (matched != matched_.end()) kernel.part = all_.dimensions[matched->second.dimension].exposed;
      if (matched != matched_.end() && collectives_ == Collectives::without_waiting)
        kernel.measured_us = in_us(all_.shortest[matched->second.instance]);
      if (device.shape != kNone) kernel.shape = trace_.shapes[device.shape];
      op.work = kernel;
    }
  }

  programs::Communication communication(const MatchedOp& matched) const {
    programs::Communication work;
    work.dimension = matched.dimension;
    work.receives = matched.what.receives;
    work.kind = matched.what.kind;
    work.bytes = matched.what.bytes;
    work.split.bytes = matched.what.counts;
    if (matched.what.root > 0)
      work.split = core::collective::rooted_split(static_cast<std::uint32_t>(matched.what.root),
                                                  members_of(matched.dimension), work.bytes);
    return work;
  }
  std::uint32_t members_of(std::uint32_t dimension) const {
    for (const core::workload::GivenGroup& group : all_.groups)
      if (group.dimension == dimension) return static_cast<std::uint32_t>(group.ranks.size());  // of all of its groups
    return 0;
  }

  const RankTrace& trace_;
  const std::map<std::uint32_t, MatchedOp>& matched_;
  const MatchedCollectives& all_;
  Collectives collectives_;
  std::int64_t begin_;
  programs::Names& names_;
  Launches launches_;
  Waits waits_;
  std::vector<bool> communicates_;  // by operation
  Passes passes_;
  StreamTimes times_;
  HostThreads host_;
  std::vector<std::uint32_t> stream_of_;  // by node: of the program
};

}  // namespace

AssembledRank assemble_rank(const RankTrace& trace, const std::map<std::uint32_t, MatchedOp>& matched,
                            const MatchedCollectives& all, Collectives collectives, std::int64_t begin,
                            programs::Names& names) {
  return Assembly(trace, matched, all, collectives, begin, names).assemble();
}

}  // namespace manyworlds::experiments::profiler
