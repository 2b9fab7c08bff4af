// Collectives are joined and cut into buckets.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "experiments/edits/make_edit.hpp"
#include "experiments/edits/rewriting.hpp"

namespace manyworlds::experiments::edits {
namespace {

using core::collective::Kind;
using programs::Communication;
using programs::RankProgram;
using programs::StreamOp;

constexpr std::int64_t kMaxBuckets = 100'000;

/// Collectives that become one. What is reduced is ready with its last part, so that they become one where the last
/// stands; what is gathered is needed by its first part, so that they become one where the first stands.
struct Open {
  std::vector<std::uint32_t> ops;
  std::int64_t bytes = 0;
};

class Buckets {
 public:
  Buckets(const programs::StreamPrograms& all, const RankProgram& program, std::int64_t bytes)
      : all_(all), program_(program), changed_(program), rewriting_(changed_), most_bytes_(bytes) {}

  RankProgram of(const std::vector<std::uint32_t>& ops) {
    auto next = ops.begin();
    for (std::uint32_t i = 0; i < program_.ops.size(); ++i) {
      const StreamOp& op = program_.ops[i];
      const bool is_selected = next != ops.end() && *next == i;
      if (is_selected) ++next;
      close_what_this_waits_for(op);
      const auto open = open_.find(op.stream);
      if (open != open_.end() && (!is_selected || !fits(open->second, i))) close(op.stream);
      if (is_selected) add(i);
    }
    while (!open_.empty()) close(open_.begin()->first);
    return rewriting_.finish();
  }

 private:
  const Communication& call(std::uint32_t op) const { return std::get<Communication>(program_.ops[op].work); }
  bool gathers(std::uint32_t op) const { return call(op).kind == Kind::all_gather; }

  void close_what_this_waits_for(const StreamOp& op) {
    for (auto open = open_.begin(); open != open_.end();) {
      const std::uint32_t stream = open->first;
      const std::vector<std::uint32_t>& in = (open++)->second.ops;
      const bool waits = std::any_of(op.after.begin(), op.after.end(), [&](std::uint32_t before) {
        return std::binary_search(in.begin(), in.end(), before);
      });
      if (waits && !gathers(in.front())) close(stream);
    }
  }

  /// Returns whether an operation may join those that are open on its stream.
  bool fits(const Open& open, std::uint32_t op) const {
    const Communication &first = call(open.ops.front()), &other = call(op);
    const std::vector<std::uint32_t>& after = program_.ops[op].after;
    return first.kind == other.kind && first.dimension == other.dimension && open.bytes < most_bytes_ &&
           open.bytes + other.bytes <= most_bytes_ &&
           (!gathers(op) || after.empty() || after.back() < open.ops.front());
  }

  void add(std::uint32_t op) {
    const Communication& work = call(op);
    if ((work.kind != Kind::all_reduce && work.kind != Kind::reduce_scatter && work.kind != Kind::all_gather) ||
        !work.split.bytes.empty())
      throw core::InputError(fmt::format("'{}' of program '{}' is no all_reduce, reduce_scatter or all_gather",
                                         all_.names[program_.ops[op].name], program_.name));
    if (work.bytes > most_bytes_) return cut(op);
    Open& open = open_[program_.ops[op].stream];
    open.ops.push_back(op);
    open.bytes += work.bytes;
  }

  void close(std::uint32_t stream) {
    const Open open = open_.at(stream);
    open_.erase(stream);
    const std::uint32_t into = gathers(open.ops.front()) ? open.ops.front() : open.ops.back();
    std::get<Communication>(changed_.ops[into].work).bytes = open.bytes;
    if (open.ops.size() > 1) rewriting_.join(open.ops, into);
  }

  /// Makes several of one that is too large: equal ones, but for what does not divide.
  void cut(std::uint32_t op) {
    const std::int64_t bytes = call(op).bytes, parts = (bytes + most_bytes_ - 1) / most_bytes_;
    if (parts > kMaxBuckets)
      throw core::InputError(fmt::format("'{}' of program '{}' would become {} collectives; at most {} are made",
                                         all_.names[program_.ops[op].name], program_.name, parts, kMaxBuckets));
    for (std::int64_t part = 0; part < parts; ++part) {
      StreamOp one = program_.ops[op];
      std::get<Communication>(one.work).bytes = bytes * (part + 1) / parts - bytes * part / parts;
      if (part + 1 < parts)
        rewriting_.add_before(op, std::move(one));
      else
        changed_.ops[op].work = one.work;
    }
  }

  const programs::StreamPrograms& all_;
  const RankProgram& program_;
  RankProgram changed_;
  Rewriting rewriting_;
  std::int64_t most_bytes_;
  std::map<std::uint32_t, Open> open_;  // by stream
};

}  // namespace

RankProgram in_buckets(const programs::StreamPrograms& all, const RankProgram& program,
                       const std::vector<std::uint32_t>& ops, std::int64_t bytes) {
  return Buckets(all, program, bytes).of(ops);
}

}  // namespace manyworlds::experiments::edits
