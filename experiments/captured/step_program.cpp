#include "experiments/captured/step_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "experiments/records/device_calls.hpp"

namespace manyworlds::experiments::captured {
namespace {

using core::InputError;
using programs::CopyDirection;
using programs::CopyWork;
using programs::KernelWork;
using programs::StreamKind;

constexpr double kLargestDifference = 0.05;  // sizes that data decide

std::string name_of(const StreamKey& key) {
  if (key.kind == StreamKey::Kind::host) return fmt::format("thread {}", key.thread);
  std::string name = key.number == 0           ? std::string("default stream")
                     : key.number == 1         ? fmt::format("default stream of thread {}", key.thread)
                     : key.number >= kOfNodes  ? fmt::format("stream {} of nodes", key.number - kOfNodes)
                     : key.number >= kInGraphs ? fmt::format("stream {} in graphs", key.number - kInGraphs)
                                               : fmt::format("stream {}", key.number);
  if (key.lane > 0) name += fmt::format(", lane {}", key.lane);
  return name;
}

class Builder {
 public:
  Builder(const RankRecord& record, const KernelTable& table, const Words& words, double host_us, Tally& tally)
      : record_(record),
        table_(table),
        words_(words),
        host_us_(host_us),
        tally_(tally),
        calls_(
            record, [this](const Call& call, const StreamOrder::Issued& issued) { add(call, issued); }, host_us > 0) {}

  StepProgram build(const StepRange& range) {
    std::int64_t allocated = 0;
    for (std::uint32_t i = 0; i < range.begin; ++i) {
      const Call& call = record_.calls[i];
      if (call.kind == CallKind::allocate || call.kind == CallKind::release) allocated += call.bytes;
      if (call.kind == CallKind::set_device) device_of_thread_[call.thread] = call.number;
    }
    if (allocated > 0) result_.program.allocations.push_back({0, allocated});
    for (std::uint32_t i = range.begin; i < range.end; ++i) take(i);
    if (calls_.is_in_group())
      throw InputError("its step ends inside of a group of NCCL's calls, between ncclGroupStart and ncclGroupEnd",
                       record_.file, static_cast<int>(record_.calls[range.end - 1].line));
    result_.program.name = fmt::format("rank {}", record_.rank);
    for (const StreamKey& key : calls_.streams())
      result_.program.streams.push_back(
          {name_of(key), key.kind == StreamKey::Kind::host ? StreamKind::host : StreamKind::device});
    drop_empty_streams();
    tally_.has_threads = tally_.has_threads || threads_.size() > 1;
    return std::move(result_);
  }

 private:
  void take(std::uint32_t number) {
    const Call& call = record_.calls[number];
    if (call.kind == CallKind::set_device) device_of_thread_[call.thread] = call.number;
    if (is_part_of_step(call.kind)) threads_.insert(call.thread);
    if ((call.kind == CallKind::allocate || call.kind == CallKind::release) && call.bytes != 0)
      result_.program.allocations.push_back({static_cast<std::uint32_t>(result_.program.ops.size()), call.bytes});
    if (call.kind == CallKind::host_function || (call.kind == CallKind::copy && record_.copies[call.detail].is_of_host))
      ++tally_.of_host;
    if (call.kind == CallKind::collective && call.bytes > 0 && !has_operation(record_, call)) ++tally_.alone;
    if (has_operation(record_, call)) check_device(call);
    calls_.take(number);
  }

  void check_device(const Call& call) {
    const std::int32_t stream = call.stream >= kInGraphs ? call.stream - kInGraphs : call.stream;
    const std::int32_t device = stream >= 2 && call.stream < kOfNodes
                                    ? record_.streams[static_cast<std::size_t>(stream - 2)].device
                                    : device_of_thread_[call.thread];
    if (device_ == kNone) device_ = device;
    if (device_ == device) return;
    throw InputError(
        fmt::format(
            "gives devices {} and {} work in one process; a rank of a program has one GPU: run a process for each",
            device_, device),
        record_.file, static_cast<int>(call.line));
  }

  void add(const Call& call, const StreamOrder::Issued& issued) {
    const auto number = static_cast<std::uint32_t>(result_.program.ops.size());
    programs::StreamOp& op = result_.program.ops.emplace_back();
    op.stream = issued.stream;
    op.name = call.name;
    op.after = issued.after;
    if (calls_.streams()[issued.stream].kind == StreamKey::Kind::host) {
      op.work = programs::HostWork{host_us_};
    } else if (call.kind == CallKind::launch) {
      op.work = launched(call);
    } else if (call.kind == CallKind::product) {
      op.work = multiplied(call);
    } else if (call.kind == CallKind::library_kernel) {
      op.work = of_library(call);
    } else if (call.kind == CallKind::copy) {
      op.work = CopyWork{record_.copies[call.detail].direction, call.bytes, {}};
    } else if (call.kind == CallKind::set) {
      op.work = CopyWork{CopyDirection::set, call.bytes, {}};
    } else if (is_with_itself(record_, call)) {
      op.work = CopyWork{CopyDirection::device_to_device, call.bytes, {}};
      ++tally_.with_themselves;
    } else {
      op.work = programs::Communication{};
      const auto at = static_cast<std::uint32_t>(&call - record_.calls.data());
      result_.communications.emplace_back(number, at);
    }
  }

  KernelWork launched(const Call& call) { return as_table_says(call, record_.launches[call.detail]); }

  /// What a table says of a kernel; nothing, which is counted, if it has no entry.
  KernelWork as_table_says(const Call& call, const Launch& launch) {
    const std::string& name = words_.text(call.name);
    const auto known = table_.work_of(call.name, name, launch, record_.arguments,
                                      fmt::format("'{}' ({}:{})", name.substr(0, 80), record_.file, call.line));
    if (known) return *known;
    ++tally_.without_time[call.name];
    return {};
  }

  /// cuDNN's kernels have no launch that is seen: a table's formulas have no numbers of theirs.
  KernelWork of_library(const Call& call) {
    const LibraryKernel& kernel = record_.library_kernels[call.detail];
    if (!kernel.work.shape.is_known()) return as_table_says(call, {{1, 1, 1}, {1, 1, 1}, 0, 0, 0});
    if (words_.text(kernel.dtype) == "fp16") ++tally_.other_products[kernel.dtype];
    return kernel.work;
  }

  KernelWork multiplied(const Call& call) {
    const Product& product = record_.products[call.detail];
    const std::string& type = words_.text(product.dtype);
    if (!product.has_rate || type == "fp16") ++tally_.other_products[product.dtype];
    KernelWork work;
    if (product.has_rate) work.shape.gemm = product.shape;
    return work;
  }

  /// Streams that only had events are none of the program.
  void drop_empty_streams() {
    programs::RankProgram& program = result_.program;
    std::vector<bool> has_ops(program.streams.size());
    for (const programs::StreamOp& op : program.ops) has_ops[op.stream] = true;
    std::vector<std::uint32_t> number(program.streams.size());
    std::vector<programs::StreamInfo> kept;
    for (std::size_t i = 0; i < number.size(); ++i) {
      number[i] = static_cast<std::uint32_t>(kept.size());
      if (has_ops[i]) kept.push_back(program.streams[i]);
    }
    program.streams = std::move(kept);
    for (programs::StreamOp& op : program.ops) op.stream = number[op.stream];
  }

  const RankRecord& record_;
  const KernelTable& table_;
  const Words& words_;
  double host_us_;
  Tally& tally_;
  DeviceCalls calls_;
  StepProgram result_;
  std::map<std::int32_t, std::int32_t> device_of_thread_;
  std::set<std::int32_t> threads_;
  std::int32_t device_ = kNone;
};

bool are_near(double one, double other) {
  return std::max(one, other) - std::min(one, other) <= kLargestDifference * std::max(one, other);
}

bool are_alike(const KernelWork& one, const KernelWork& other) {
  return one.shape.gemm == other.shape.gemm && one.shape.attention == other.shape.attention &&
         one.measured_us.has_value() == other.measured_us.has_value() &&
         are_near(one.measured_us.value_or(0), other.measured_us.value_or(0)) &&
         are_near(static_cast<double>(one.shape.bytes), static_cast<double>(other.shape.bytes)) &&
         are_near(static_cast<double>(one.flops), static_cast<double>(other.flops));
}

bool are_alike(const CopyWork& one, const CopyWork& other) {
  return one.direction == other.direction && are_near(static_cast<double>(one.bytes), static_cast<double>(other.bytes));
}

}  // namespace

StepProgram step_program(const RankRecord& record, const StepRange& range, const KernelTable& table, const Words& words,
                         double host_us, Tally& tally) {
  return Builder(record, table, words, host_us, tally).build(range);
}

bool are_alike(const StepProgram& one, const StepProgram& other) {
  const programs::RankProgram &a = one.program, &b = other.program;
  if (a.streams != b.streams || a.allocations != b.allocations || a.ops.size() != b.ops.size()) return false;
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    const programs::StreamOp &x = a.ops[i], &y = b.ops[i];
    if (x.stream != y.stream || x.name != y.name || x.work.index() != y.work.index() || x.after != y.after)
      return false;
    if (const auto* kernel = std::get_if<KernelWork>(&x.work))
      if (!are_alike(*kernel, std::get<KernelWork>(y.work))) return false;
    if (const auto* copy = std::get_if<CopyWork>(&x.work))
      if (!are_alike(*copy, std::get<CopyWork>(y.work))) return false;
  }
  return true;
}

std::int64_t take_larger(StepProgram& to, const StepProgram& other) {
  std::int64_t differ = 0;
  for (std::size_t i = 0; i < to.program.ops.size(); ++i) {
    programs::StreamOp& op = to.program.ops[i];
    const programs::StreamOp& with = other.program.ops[i];
    if (op == with) continue;
    if (auto* kernel = std::get_if<KernelWork>(&op.work)) {
      const auto& more = std::get<KernelWork>(with.work);
      if (kernel->measured_us) kernel->measured_us = std::max(*kernel->measured_us, *more.measured_us);
      kernel->shape.bytes = std::max(kernel->shape.bytes, more.shape.bytes);
      kernel->flops = std::max(kernel->flops, more.flops);
      ++differ;
    } else if (auto* copy = std::get_if<CopyWork>(&op.work)) {
      copy->bytes = std::max(copy->bytes, std::get<CopyWork>(with.work).bytes);
      ++differ;
    }
  }
  return differ;
}

}  // namespace manyworlds::experiments::captured
