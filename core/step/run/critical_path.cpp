#include "core/step/run/critical_path.hpp"

#include <algorithm>
#include <map>

#include "core/base/error.hpp"

namespace manyworlds::core::step {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// Walks back from the end of the step.
class Walk {
 public:
  Walk(const CompiledStep& compiled, const Recording& recording) : compiled_(compiled), recording_(recording) {
    MANYWORLDS_CHECK(recording.ranks.size() == compiled.layout().ranks(), "{} of {} ranks are recorded",
                     recording.ranks.size(), compiled.layout().ranks());
    for (const stream::Record& record : recording.records) {
      std::vector<std::uint32_t>& span_of = span_of_.emplace_back();
      for (std::uint32_t i = 0; i < record.spans.size(); ++i) {
        if (record.spans[i].op >= span_of.size()) span_of.resize(record.spans[i].op + 1, kNone);
        span_of[record.spans[i].op] = i;
      }
    }
    for (const workload::Program& program : compiled.programs()) {
      std::map<workload::Stream, std::uint32_t> last;
      std::vector<std::uint32_t>& before = before_on_stream_.emplace_back();
      for (std::uint32_t op = 0; op < program.ops.size(); ++op) {
        const auto [known, is_first] = last.try_emplace(program.ops[op].stream, op);
        before.push_back(is_first ? kNone : known->second);
        known->second = op;
      }
    }
  }

  std::vector<CriticalSpan> path() {
    CriticalSpan at = last_one();
    std::vector<CriticalSpan> path;
    for (bool goes_on = true; goes_on;) {
      wait_for_member(at);
      path.push_back(at);
      goes_on = step_back(at);
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  const stream::Span& span(RankId rank, std::uint32_t op) const {
    const std::uint32_t record = recording_.ranks[rank.value()].record;
    return recording_.records[record].spans[span_of_[record][op]];
  }
  const workload::Program& program_of(RankId rank) const {
    return compiled_.programs()[compiled_.layout().class_of(rank)];
  }
  CriticalSpan critical(RankId rank, std::uint32_t op) const {
    const stream::Span& whole = span(rank, op);
    return {rank, op, whole.begin, whole.end, whole.slowed};
  }

  /// Returns the operation that ends with the step, of the first rank that has one.
  CriticalSpan last_one() const {
    for (const Recording::Rank& rank : recording_.ranks)
      for (const stream::Span& span : recording_.records[rank.record].spans)
        if (span.end == recording_.end) return {rank.rank, span.op, span.begin, span.end, span.slowed};
    MANYWORLDS_CHECK(false, "no operation ends with the step at {} ps", recording_.end);
    return {};
  }

  /// Lets the part of a collective begin with the latest member that came before it ended, whose operation it becomes.
  void wait_for_member(CriticalSpan& at) const {
    const workload::Op& op = program_of(at.rank).ops[at.op];
    if (op.collective() == nullptr) return;
    const auto representative = compiled_.symmetry().representative_of[at.rank];
    const InstanceId instance = compiled_.instance_entered_by(representative, at.op).instance;
    const Group& group = compiled_.layout().groups()[compiled_.group_of(instance)];
    const Time end = at.end;
    for (std::uint32_t member = 0; member < group.ranks.size(); ++member) {
      const std::uint32_t other = compiled_.operation_of({instance, member}).second;
      const Time entered = span(group.ranks[member], other).begin;
      if (entered > at.begin && entered <= end) at = {group.ranks[member], other, entered, end, 0};
    }
  }

  /// Makes `at` the operation that ended when it began; returns false at the beginning of the step.
  bool step_back(CriticalSpan& at) const {
    const workload::Program& program = program_of(at.rank);
    const workload::Op& op = program.ops[at.op];
    const auto ended_then = [&](std::uint32_t before) {
      return before != kNone && span(at.rank, before).end == at.begin;
    };
    std::uint32_t before = before_on_stream_[compiled_.layout().class_of(at.rank)][at.op];
    for (std::uint32_t wait = op.waits_begin; !ended_then(before) && wait < op.waits_end; ++wait)
      before = program.waits[wait];
    if (!ended_then(before)) {
      MANYWORLDS_CHECK(at.begin == 0, "operation {} of rank {} began at {} ps, when nothing that it waits for ended",
                       at.op, at.rank.value(), at.begin);
      return false;
    }
    at = critical(at.rank, before);
    return true;
  }

  const CompiledStep& compiled_;
  const Recording& recording_;
  std::vector<std::vector<std::uint32_t>> span_of_;           // by record and operation
  std::vector<std::vector<std::uint32_t>> before_on_stream_;  // by class and operation
};

}  // namespace

std::vector<CriticalSpan> critical_path(const CompiledStep& compiled, const Recording& recording) {
  return Walk(compiled, recording).path();
}

}  // namespace manyworlds::core::step
