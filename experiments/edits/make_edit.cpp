#include "experiments/edits/make_edit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "experiments/edits/rewriting.hpp"
#include "experiments/edits/select.hpp"
#include "experiments/programs/names.hpp"
#include "experiments/programs/program_file.hpp"

namespace manyworlds::experiments::edits {
namespace {

using core::InputError;
using programs::Communication;
using programs::CopyWork;
using programs::HostWork;
using programs::KernelShape;
using programs::KernelWork;
using programs::RankProgram;
using programs::StreamOp;
using programs::StreamPrograms;

constexpr double kMaxBytes = static_cast<double>(std::int64_t{1} << 50), kMaxExtent = 1e12;

std::int64_t whole(double value, double most, const char* what) {
  const double rounded = std::round(value);
  if (!(rounded >= 1) || rounded > most)
    throw InputError(fmt::format("{} would be {:.6g}; it must be from 1 to {:.6g}", what, value, most));
  return static_cast<std::int64_t>(rounded);
}

std::int64_t scaled_bytes(std::int64_t bytes, double factor) {
  return bytes == 0 ? 0 : whole(static_cast<double>(bytes) * factor, kMaxBytes, "bytes");
}

/// Changes the shape of a kernel; its measured time is that of the shape that it had at first.
void set_shape(KernelWork& work, const KernelShape& shape) {
  if (shape == work.shape) return;
  if (work.measured_us && !work.measured_at && work.shape.is_known()) work.measured_at = work.shape;
  work.shape = shape;
  if (work.measured_at == shape) work.measured_at.reset();
}

/// Does one action with one operation after the other.
class Change {
 public:
  Change(StreamPrograms& all, RankProgram& program) : all_(all), program_(program) {}

  void operator()(const Scale& scale, StreamOp& op) const {
    std::visit([&](auto& work) { apply(scale, work, op); }, op.work);
  }

  void operator()(const Set& set, StreamOp& op) const {
    if (auto* host = std::get_if<HostWork>(&op.work)) {
      if (!set.us || set.bytes || set.has_shape()) refuse(op, "is of the host, and has 'us' alone");
      host->us = *set.us;
    } else if (auto* copy = std::get_if<CopyWork>(&op.work)) {
      if (set.has_shape()) refuse(op, "is a copy, and has 'us' and 'bytes' alone");
      if (set.us) copy->measured_us = set.us;
      if (set.bytes) copy->bytes = *set.bytes;
    } else if (auto* call = std::get_if<Communication>(&op.work)) {
      if (!set.bytes || set.us || set.has_shape()) refuse(op, "is communication, and has 'bytes' alone");
      if (!call->split.bytes.empty()) refuse(op, "tells its members apart; scale its bytes instead");
      call->bytes = *set.bytes;
    } else {
      apply(set, std::get<KernelWork>(op.work), op);
    }
  }

  void operator()(const Batch& batch, StreamOp& op) const {
    auto* work = std::get_if<KernelWork>(&op.work);
    if (work == nullptr) refuse(op, "is no kernel; scale its bytes instead");
    KernelShape shape = work->shape;
    shape.bytes = scaled_bytes(shape.bytes, batch.factor);
    if (shape.gemm) {
      std::int64_t* extents[]{&shape.gemm->m, &shape.gemm->n, &shape.gemm->k, &shape.gemm->batch};
      const auto found =
          std::find_if(std::begin(extents), std::end(extents), [&](auto* extent) { return *extent == batch.tokens; });
      if (found == std::end(extents))
        refuse(op, fmt::format("multiplies {} x {} x {}, {} times, and none of these is {} tokens; leave it out, or "
                               "set its 'gemm'",
                               shape.gemm->m, shape.gemm->n, shape.gemm->k, shape.gemm->batch, batch.tokens));
      **found = whole(static_cast<double>(**found) * batch.factor, kMaxExtent, "the extent of a product");
    }
    if (auto& attention = shape.attention) {
      for (std::int64_t* samples : {&attention->batch, &attention->key_batch})
        *samples = whole(static_cast<double>(*samples) * batch.factor, kMaxExtent, "the batch of attention");
    }
    if (!shape.is_known()) {
      work->measured_us = need_time(work->measured_us, op) * batch.factor;
    } else {
      set_shape(*work, shape);
    }
    work->flops = scaled_bytes(work->flops, batch.factor);
  }

 private:
  [[noreturn]] void refuse(const StreamOp& op, const std::string& why) const {
    throw InputError(fmt::format("'{}' of program '{}' {}", all_.names[op.name], program_.name, why));
  }
  double need_time(const std::optional<double>& us, const StreamOp& op) const {
    if (!us) refuse(op, "has no measured time that could be scaled; scale its bytes, or set its 'us'");
    return *us;
  }

  void apply(const Scale& scale, KernelWork& work, const StreamOp& op) const {
    if (scale.time) work.measured_us = need_time(work.measured_us, op) * *scale.time;
    KernelShape shape = work.shape;
    if (scale.bytes && shape.bytes == 0) refuse(op, "has no bytes that could be scaled");
    if (scale.bytes) shape.bytes = scaled_bytes(shape.bytes, *scale.bytes);
    if (scale.has_extents()) scale_extents(scale, shape, work, op);
    set_shape(work, shape);
  }
  void scale_extents(const Scale& scale, KernelShape& shape, KernelWork& work, const StreamOp& op) const {
    double all = 1;
    const auto take = [&](const std::optional<double>& factor, std::initializer_list<std::int64_t*> extents) {
      if (!factor) return;
      all *= *factor;
      for (std::int64_t* extent : extents)
        *extent = whole(static_cast<double>(*extent) * *factor, kMaxExtent, "an extent");
    };
    if (shape.gemm) {
      take(scale.m, {&shape.gemm->m}), take(scale.n, {&shape.gemm->n}), take(scale.k, {&shape.gemm->k});
      take(scale.batch, {&shape.gemm->batch});
    } else if (shape.attention && !scale.m && !scale.n && !scale.k) {
      take(scale.batch, {&shape.attention->batch, &shape.attention->key_batch});
    } else {
      refuse(op, shape.attention ? "is attention, and has 'batch' alone (samples times heads)"
                                 : "is no matrix product and no attention; scale its time or bytes instead");
    }
    work.flops = scaled_bytes(work.flops, all);
  }
  void no_extents(const Scale& scale, const StreamOp& op) const {
    if (scale.has_extents()) refuse(op, "is no kernel; scale its time or bytes instead");
  }
  void apply(const Scale& scale, CopyWork& work, const StreamOp& op) const {
    no_extents(scale, op);
    const double time = scale.time.value_or(1) * scale.bytes.value_or(1);
    if (scale.time || work.measured_us) work.measured_us = need_time(work.measured_us, op) * time;
    if (scale.bytes) work.bytes = scaled_bytes(work.bytes, *scale.bytes);
  }
  void apply(const Scale& scale, HostWork& work, const StreamOp& op) const {
    no_extents(scale, op);
    if (scale.bytes) refuse(op, "is of the host, and has no bytes");
    work.us *= *scale.time;
  }
  void apply(const Scale& scale, Communication& work, const StreamOp& op) const {
    no_extents(scale, op);
    if (scale.time) refuse(op, "is simulated, and its time comes out; scale its bytes, or the links of the cluster");
    if (work.split.bytes.empty()) {
      work.bytes = scaled_bytes(work.bytes, *scale.bytes);
      return;
    }
    const bool is_rooted = work.kind != core::collective::Kind::all_to_all;  // the root's bytes are all there are
    std::int64_t sum = 0;
    for (std::int64_t& bytes : work.split.bytes) sum += bytes = scaled_bytes(bytes, *scale.bytes);
    work.bytes = is_rooted ? scaled_bytes(work.bytes, *scale.bytes) : sum;
  }

  void apply(const Set& set, KernelWork& work, const StreamOp& op) const {
    if (set.scales_with) work.scales_with = set.scales_with;
    KernelShape shape = work.shape;
    if (set.gemm) shape.gemm = set.gemm, shape.attention.reset();
    if (set.attention) shape = {{}, set.attention, 0};
    if (set.bytes) shape.bytes = *set.bytes;
    if (set.dtype) {
      if (!shape.gemm && !shape.attention) refuse(op, "is no matrix product and no attention, and has no 'dtype'");
      (shape.gemm ? shape.gemm->dtype : shape.attention->dtype) = *set.dtype;
    }
    if (set.us) {  // the time of the new shape
      work.measured_us = set.us;
      work.measured_at.reset();
      work.shape = shape;
      return;
    }
    if (work.measured_us && !work.shape.is_known() && shape.is_known())
      refuse(op, "has a measured time and no shape, so that nobody knows the time of another one; set its 'us' too");
    set_shape(work, shape);
  }

  StreamPrograms& all_;
  RankProgram& program_;
};

/// Returns the number of a stream, which is added if there is none of that name.
std::uint32_t stream_of(RankProgram& program, const std::string& name, programs::StreamKind kind) {
  const auto found = std::find_if(program.streams.begin(), program.streams.end(),
                                  [&](const programs::StreamInfo& stream) { return stream.name == name; });
  if (found == program.streams.end()) {
    program.streams.push_back({name, kind});
    return static_cast<std::uint32_t>(program.streams.size() - 1);
  }
  if (found->kind != kind)
    throw InputError(fmt::format("stream '{}' is {}", name,
                                 kind == programs::StreamKind::host ? "no stream of the host" : "of the host"));
  return static_cast<std::uint32_t>(found - program.streams.begin());
}

/// Returns the first of `ops`, ascending, that comes after `op`; nothing if none does.
const std::uint32_t* first_after(const std::vector<std::uint32_t>& ops, std::uint32_t op) {
  const auto found = std::upper_bound(ops.begin(), ops.end(), op);
  return found == ops.end() ? nullptr : &*found;
}

void move(StreamPrograms& all, std::size_t number, const std::vector<std::uint32_t>& ops, const Move& move) {
  RankProgram& program = all.programs[number];
  std::vector<std::uint32_t> waiting;
  if (move.before) waiting = selected(all, number, *move.before);
  std::vector<std::uint32_t> last(program.streams.size(), UINT32_MAX);
  std::vector<std::uint32_t> old_stream;
  for (const StreamOp& op : program.ops) old_stream.push_back(op.stream);
  auto next = ops.begin();
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const std::uint32_t before = last[old_stream[i]];
    last[old_stream[i]] = i;
    if (next == ops.end() || *next != i) continue;
    ++next;
    const bool is_host = std::holds_alternative<HostWork>(program.ops[i].work);
    const auto kind = is_host ? programs::StreamKind::host : programs::StreamKind::device;
    program.ops[i].stream = stream_of(program, move.stream, kind);
    const auto wait = [&](std::uint32_t op, std::uint32_t for_op) {
      std::vector<std::uint32_t>& after = program.ops[op].after;
      after.insert(std::upper_bound(after.begin(), after.end(), for_op), for_op);
      after.erase(std::unique(after.begin(), after.end()), after.end());
    };
    if (before != UINT32_MAX) wait(i, before);
    if (const std::uint32_t* first = first_after(waiting, i)) wait(*first, i);
  }
}

RankProgram inserted(StreamPrograms& all, std::size_t number, const std::vector<std::uint32_t>& ops,
                     const Insert& insert) {
  std::vector<std::uint32_t> waiting;
  if (insert.before) waiting = selected(all, number, *insert.before);
  RankProgram& program = all.programs[number];
  const auto stream = insert.operation.find("stream");
  if (stream != insert.operation.end() && stream->is_string())
    stream_of(program, stream->get<std::string>(),
              insert.operation.contains("host") ? programs::StreamKind::host : programs::StreamKind::device);
  const StreamOp added = programs::operation_of(insert.operation, all, program);
  Rewriting rewriting(program);
  for (const std::uint32_t op : ops) {
    if (insert.is_before)
      rewriting.add_before(op, added);
    else
      rewriting.add_after(op, added);
    if (const std::uint32_t* first = first_after(waiting, op)) rewriting.wait_for_added(*first);
  }
  return rewriting.finish();
}

}  // namespace

void make_edit(StreamPrograms& all, std::size_t number, const std::vector<std::uint32_t>& ops, const Action& action) {
  RankProgram& program = all.programs[number];
  if (std::holds_alternative<Drop>(action)) {
    Rewriting rewriting(program);
    for (const std::uint32_t op : ops) rewriting.drop(op);
    program = rewriting.finish();
  } else if (const auto* fuse = std::get_if<Fuse>(&action)) {
    program = fused(all, program, ops, *fuse);
  } else if (const auto* to = std::get_if<Move>(&action)) {
    move(all, number, ops, *to);
  } else if (const auto* insert = std::get_if<Insert>(&action)) {
    program = inserted(all, number, ops, *insert);
  } else if (const auto* bucket = std::get_if<Bucket>(&action)) {
    program = in_buckets(all, program, ops, bucket->bytes);
  } else if (std::holds_alternative<Hold>(action)) {
    program = held(all, program, ops);
  } else {
    const Change change(all, program);
    for (const std::uint32_t op : ops) {
      if (const auto* scale = std::get_if<Scale>(&action)) change(*scale, program.ops[op]);
      if (const auto* set = std::get_if<Set>(&action)) change(*set, program.ops[op]);
      if (const auto* batch = std::get_if<Batch>(&action)) change(*batch, program.ops[op]);
    }
  }
}

}  // namespace manyworlds::experiments::edits
