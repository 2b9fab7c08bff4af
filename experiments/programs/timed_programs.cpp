#include "experiments/programs/timed_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.hpp"
#include "core/compute/measured.hpp"

namespace manyworlds::experiments::programs {
namespace {

using core::Time;
using core::compute::Gpu;
using core::compute::Kernel;
using core::compute::TimeBasis;
using core::workload::KernelOp;
using core::workload::KernelUse;
using core::workload::StepPart;
using core::workload::Stream;

Time in_ps(double us) {
  return static_cast<Time>(std::llround(us * 1e6));
}

/// Pairs of a query and a key, of one head: a causal mask leaves half of them.
std::int64_t pairs_of(const AttentionShape& shape) {
  const std::int64_t pairs = shape.queries * shape.keys;
  return shape.is_causal ? pairs / 2 : pairs;
}

/// Returns the kernel of a shape that the cost model knows; of bytes alone, one that moves them.
Kernel kernel_of(const KernelShape& shape, std::string_view name) {
  if (const auto& of = shape.attention) {
    Kernel kernel = core::compute::fused_attention(
        name, of->kernel_class,
        {of->queries, of->keys, pairs_of(*of), of->width, of->width, of->batch, of->key_batch, 0, of->is_causal},
        of->dtype);
    if (shape.bytes > 0) kernel.bytes = shape.bytes;
    return kernel;
  }
  if (!shape.gemm) return core::compute::memory_bound(name, shape.bytes);
  const GemmShape& gemm = *shape.gemm;
  Kernel kernel = core::compute::gemm(name, gemm.m, gemm.n, gemm.k, gemm.dtype);
  kernel.batch = gemm.batch;
  kernel.bytes *= gemm.batch;
  kernel.flops *= gemm.batch;
  if (shape.bytes > 0) kernel.bytes = shape.bytes;
  return kernel;
}

/// Returns whether the cost model has two GPUs run kernels alike, by some of each class and size.
bool run_alike(const Gpu& one, const Gpu& other) {
  std::vector<Kernel> kernels{core::compute::memory_bound("", 4 << 10), core::compute::memory_bound("", 256 << 20),
                              core::compute::batched_gemm("", 512, 512, 64, 96)};
  for (const std::int64_t size : {256, 1024, 3000, 8192}) kernels.push_back(core::compute::gemm("", size, size, size));
  return std::all_of(kernels.begin(), kernels.end(), [&](const Kernel& kernel) {
    return core::compute::modelled_time(kernel, one) == core::compute::modelled_time(kernel, other);
  });
}

/// Returns how much longer what scales so takes on one GPU than on another: as a byte, or as a large product.
double ratio_of(ScalesWith with, const Gpu& gpu, const Gpu& other) {
  if (with == ScalesWith::memory) return core::compute::ps_per_byte(gpu) / core::compute::ps_per_byte(other);
  const Kernel product = core::compute::gemm("", 8192, 8192, 8192);
  return static_cast<double>(core::compute::modelled_time(product, gpu)) /
         static_cast<double>(core::compute::modelled_time(product, other));
}

Gpu at_full_speed(Gpu gpu) {
  gpu.speed_factor = 1;
  return gpu;
}

/// Times works on a GPU one after the other, and keeps account of where the times come from.
class Timer {
 public:
  Timer(const Gpu& gpu, const Gpu* measured_on)
      : gpu_(at_full_speed(gpu)),
        speed_factor_(gpu.speed_factor),
        measured_on_(measured_on && !run_alike(gpu_, *measured_on) ? measured_on : nullptr) {}

  struct Timed {
    Time ps = 0;
    TimeBasis basis = TimeBasis::measured;
    Kernel kernel;
    bool is_known = true;
  };
  Timed of(const KernelWork& work, const std::string& name, double ranks) {
    Timed timed = at_full_speed_of(work, name);
    if (speed_factor_ != 1) {
      timed.ps = core::round_half_up(static_cast<double>(timed.ps) / speed_factor_);
      if (timed.basis == TimeBasis::measured) timed.basis = TimeBasis::interpolated;
    }
    const auto ps = ranks * static_cast<double>(timed.ps);
    if (!timed.is_known)
      unknown_[name] += ranks * work.measured_us.value_or(1);
    else if (timed.basis == TimeBasis::measured)
      sources_.measured += ps;
    else if (timed.basis == TimeBasis::interpolated)
      sources_.scaled += ps;
    else
      sources_.modelled += ps;
    return timed;
  }

  Time of(const CopyWork& work) const {
    if (work.measured_us && measured_on_ == nullptr) return in_ps(*work.measured_us);
    const auto bytes = static_cast<double>(work.bytes);
    double gb_per_s = gpu_.memory_gb_per_s * gpu_.memory_efficiency;
    if (work.direction == CopyDirection::host_to_device || work.direction == CopyDirection::device_to_host)
      gb_per_s = gpu_.host_gb_per_s;
    if (work.direction == CopyDirection::device_to_device) gb_per_s /= 2;
    if (work.direction == CopyDirection::peer) gb_per_s = gpu_.scale_up_gb_per_s;
    if (work.bytes == 0) return in_ps(*work.measured_us);
    return in_ps(bytes / gb_per_s * 1e-3);
  }

  const TimeSources& sources() const { return sources_; }
  /// Throws InputError if there were kernels whose time on this GPU nothing tells.
  void check(const std::string& what) const {
    if (unknown_.empty()) return;
    std::vector<std::pair<double, std::string>> by_time;
    for (const auto& [name, us] : unknown_) by_time.emplace_back(-us, name);
    std::sort(by_time.begin(), by_time.end());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min<std::size_t>(by_time.size(), 5); ++i)
      names.push_back(fmt::format("'{}'", by_time[i].second.substr(0, 80)));
    throw core::InputError(
        fmt::format("{} kernels have {}: {}{}; give them 'gemm', 'attention' or 'bytes', or {}", unknown_.size(),
                    has_unmeasured_ ? "no time, and no shape by which one is known"
                                    : "a time on another GPU, and no shape by which it could be scaled",
                    fmt::join(names, ", "), by_time.size() > names.size() ? ", ..." : "",
                    has_unmeasured_ ? "'us' (of a captured program by a table of kernels, docs/capture.md)"
                                    : "'scales_with', or simulate the GPU on which they were measured"),
        what);
  }

 private:
  Timed at_full_speed_of(const KernelWork& work, const std::string& name) {
    Timed timed;
    const bool has_shape = work.shape.is_known();
    if (has_shape) timed.kernel = kernel_of(work.shape, name);
    timed.kernel.name = name;
    if (work.measured_us && measured_on_ == nullptr && !work.measured_at) {
      timed.ps = in_ps(*work.measured_us);
    } else if (work.measured_us && has_shape) {
      const Kernel measured = kernel_of(work.measured_at.value_or(work.shape), name);
      const double ratio =
          static_cast<double>(core::compute::modelled_time(timed.kernel, gpu_)) /
          static_cast<double>(core::compute::modelled_time(measured, measured_on_ ? *measured_on_ : gpu_));
      timed.ps = in_ps(*work.measured_us * ratio);
      timed.basis = TimeBasis::interpolated;
    } else if (work.measured_us && work.scales_with) {
      timed.ps = in_ps(*work.measured_us * (measured_on_ ? ratio_of(*work.scales_with, gpu_, *measured_on_) : 1));
      timed.basis = TimeBasis::interpolated;
    } else if (has_shape) {
      timed.ps = core::compute::modelled_time(timed.kernel, gpu_);
      timed.basis = TimeBasis::modelled;
    } else {
      has_unmeasured_ = has_unmeasured_ || !work.measured_us;
      timed.is_known = false;
    }
    return timed;
  }

  Gpu gpu_;
  double speed_factor_;
  const Gpu* measured_on_;
  TimeSources sources_;
  std::map<std::string, double> unknown_;  // us of all ranks, or how often if it has none, by name
  bool has_unmeasured_ = false;
};

bool has_time(const StreamOp& op) {
  if (const auto* kernel = std::get_if<KernelWork>(&op.work)) return kernel->measured_us.has_value();
  const auto* copy = std::get_if<CopyWork>(&op.work);
  return copy != nullptr && copy->measured_us.has_value();
}

/// Throws InputError if there are measured times and GPUs that do not run kernels alike, of which these could be.
void check_times_are_of_all(const StreamPrograms& programs, const ClusterGpus& gpus, const std::string& what) {
  const Gpu first = at_full_speed(gpus.of_kind.front());
  if (std::all_of(gpus.of_kind.begin(), gpus.of_kind.end(),
                  [&](const Gpu& gpu) { return run_alike(at_full_speed(gpu), first); }))
    return;
  for (const RankProgram& program : programs.programs)
    if (std::any_of(program.ops.begin(), program.ops.end(), has_time))
      throw core::InputError(
          "has measured times, and on GPUs of several kinds it must be known on which; give program.measured_on", what);
}

/// Returns what the streams of a program are to a step. Named streams are the step's own of that name; where none is
/// the compute stream, that with the most kernel time is.
std::vector<Stream> streams_of(const RankProgram& program, const std::vector<Time>& kernel_ps,
                               std::vector<std::string>& own_names) {
  using core::workload::kStreamNames;
  using core::workload::kStreams;
  std::vector<Stream> streams(program.streams.size());
  std::vector<bool> known(program.streams.size());
  bool has_compute = false, has_host = false;
  const auto set = [&](std::size_t number, Stream stream) {
    streams[number] = stream, known[number] = true;
    has_compute |= stream == Stream::compute, has_host |= stream == Stream::host;
  };
  for (std::size_t number = 0; number < streams.size(); ++number) {
    const StreamInfo& info = program.streams[number];
    const auto named = std::find(kStreamNames.begin(), kStreamNames.end(), info.name);
    const auto stream = static_cast<Stream>(named - kStreamNames.begin());
    if (named != kStreamNames.end() && (stream == Stream::host) == (info.kind == StreamKind::host)) set(number, stream);
  }
  std::size_t busiest = streams.size();
  for (std::size_t number = 0; number < streams.size() && !has_compute; ++number)
    if (!known[number] && program.streams[number].kind == StreamKind::device && kernel_ps[number] > 0 &&
        (busiest == streams.size() || kernel_ps[number] > kernel_ps[busiest]))
      busiest = number;
  if (busiest < streams.size()) set(busiest, Stream::compute);
  for (std::size_t number = 0; number < streams.size(); ++number) {
    if (known[number]) continue;
    if (program.streams[number].kind == StreamKind::host && !has_host) {
      set(number, Stream::host);
      continue;
    }
    streams[number] = static_cast<Stream>(kStreams + own_names.size());
    own_names.push_back(program.streams[number].name);
  }
  return streams;
}

/// Builds one program of a step.
class ProgramTimer {
 public:
  ProgramTimer(const StreamPrograms& all, const RankProgram& program, core::workload::GivenPrograms& given,
               Timer& timer, double ranks)
      : all_(all), program_(program), given_(given), timer_(timer), ranks_(ranks) {}

  void add() {
    time_all();
    core::workload::Program& to = given_.programs.emplace_back();
    to.labels = all_.names;
    for (const core::workload::Dimension& dimension : all_.ranks.dimensions)
      to.exposed_dimensions.push_back(dimension.exposed);
    const std::vector<Stream> streams = streams_of(program_, kernel_ps_, to.own_streams);
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      const StreamOp& op = program_.ops[i];
      core::workload::Op& added = to.ops.emplace_back();
      added.stream = streams[op.stream];
      added.label = op.name;
      added.waits_begin = static_cast<std::uint32_t>(to.waits.size());
      to.waits.insert(to.waits.end(), op.after.begin(), op.after.end());
      added.waits_end = static_cast<std::uint32_t>(to.waits.size());
      if (const auto* call = std::get_if<Communication>(&op.work))
        added.action = call_of(*call, to);
      else
        added.action = KernelOp{part_of(op), times_[i]};
    }
    add_kernels();
    add_allocations();
  }

 private:
  void time_all() {
    kernel_ps_.resize(program_.streams.size());
    for (const StreamOp& op : program_.ops) {
      Time ps = 0;
      if (const auto* kernel = std::get_if<KernelWork>(&op.work)) {
        const Timer::Timed timed = timer_.of(*kernel, all_.names[op.name], ranks_);
        ps = timed.ps;
        kernel_ps_[op.stream] += ps;
        ++uses_[{op.name, ps, timed.basis}].first;
        uses_[{op.name, ps, timed.basis}].second = timed.kernel;
      } else if (const auto* copy = std::get_if<CopyWork>(&op.work)) {
        ps = timer_.of(*copy);
      } else if (const auto* host = std::get_if<HostWork>(&op.work)) {
        ps = in_ps(host->us);
      }
      times_.push_back(ps);
    }
  }

  static StepPart part_of(const StreamOp& op) {
    if (const auto* kernel = std::get_if<KernelWork>(&op.work)) return kernel->part;
    return std::holds_alternative<HostWork>(op.work) ? StepPart::host : StepPart::exposed_offload;
  }

  core::workload::CollectiveCall call_of(const Communication& work, core::workload::Program& to) const {
    core::workload::CollectiveCall call;
    call.role =
        core::workload::role_in_dimension(work.dimension, all_.ranks.dimensions[work.dimension].kind, work.receives);
    call.kind = work.kind;
    call.bytes = work.bytes;
    const auto known = std::find(to.splits.begin(), to.splits.end(), work.split);
    call.split = static_cast<std::uint32_t>(known - to.splits.begin());
    if (known == to.splits.end()) to.splits.push_back(work.split);
    return call;
  }

  void add_kernels() {
    std::vector<KernelUse>& kernels = given_.kernels.emplace_back();
    for (const auto& [what, use] : uses_) {
      const auto& [name, ps, basis] = what;
      given_.kernel_names.push_back(all_.names[name]);
      KernelUse added{use.second, ps, core::compute::CostLevel::kernel, basis, use.first};
      added.kernel.name = given_.kernel_names.back();
      kernels.push_back(added);
    }
  }

  void add_allocations() {
    std::vector<core::workload::AllocatedFrom>& allocated = given_.allocated.emplace_back();
    std::int64_t bytes = 0;
    for (const Allocation& one : program_.allocations) {
      bytes += one.bytes;
      allocated.push_back({one.op, bytes});
    }
  }

  const StreamPrograms& all_;
  const RankProgram& program_;
  core::workload::GivenPrograms& given_;
  Timer& timer_;
  double ranks_;
  std::vector<Time> times_;      // by operation
  std::vector<Time> kernel_ps_;  // by stream
  std::map<std::tuple<std::uint32_t, Time, TimeBasis>, std::pair<std::int64_t, Kernel>> uses_;
};

}  // namespace

TimedPrograms timed_on(const StreamPrograms& programs, const ClusterGpus& gpus, const Gpu* measured_on,
                       const std::string& what) {
  if (measured_on == nullptr) check_times_are_of_all(programs, gpus, what);
  const ProgramsByKind by_kind = programs_by_kind(programs, gpus);
  TimedPrograms result;
  core::workload::GivenPrograms& given = result.programs;
  auto ranks = std::make_shared<core::workload::GivenRanks>(programs.ranks);
  ranks->program_of_rank = by_kind.program_of_rank;
  given.ranks = std::move(ranks);
  given.slowed = programs.slowed;
  given.units_to_move = programs.units_to_move, given.units_to_reduce = programs.units_to_reduce;
  given.is_synchronised = programs.is_synchronised;
  given.tokens_per_step = programs.tokens_per_step;
  std::vector<Timer> timers;
  for (const Gpu& gpu : gpus.of_kind) timers.emplace_back(gpu, measured_on);
  for (std::size_t i = 0; i < by_kind.program.size(); ++i)
    ProgramTimer(programs, programs.programs[by_kind.program[i]], given, timers[by_kind.kind[i]], by_kind.ranks[i])
        .add();
  for (const Timer& timer : timers) {
    timer.check(what);
    result.sources.measured += timer.sources().measured;
    result.sources.scaled += timer.sources().scaled;
    result.sources.modelled += timer.sources().modelled;
  }
  given.set_key();
  result.copied_from = by_kind.program;
  return result;
}

TimedPrograms timed_on(const StreamPrograms& programs, const Gpu& gpu, const Gpu* measured_on,
                       const std::string& what) {
  return timed_on(programs, ClusterGpus{{gpu}, {}}, measured_on, what);
}

}  // namespace manyworlds::experiments::programs
