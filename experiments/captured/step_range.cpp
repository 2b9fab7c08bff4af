#include "experiments/captured/step_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/error.hpp"
#include "experiments/records/device_calls.hpp"

namespace manyworlds::experiments::captured {
namespace {

using core::InputError;

constexpr const char* kOtherwise = "say which part is a step, by --steps all, profiled, or the lines FROM-TO";

/// Returns whether a call gives a device a copy or a set.
bool is_copy(const RankRecord& record, const Call& call) {
  return call.kind == CallKind::set || (call.kind == CallKind::copy && !record.copies[call.detail].is_of_host);
}

/// Returns whether a call gives a device work, be it a copy or a set alone.
bool uses_device(const RankRecord& record, const Call& call) {
  return is_work(call.kind) || is_copy(record, call);
}

/// Returns, by call of a record and once more, whether the host has waited for all before it.
std::vector<bool> idle_places(const RankRecord& record) {
  std::vector<bool> idle;
  DeviceCalls calls(record);
  for (std::uint32_t i = 0; i < record.calls.size(); ++i) {
    idle.push_back(calls.is_idle(record.calls[i].thread));
    calls.take(i);
  }
  idle.push_back(true);
  return idle;
}

/// How many calls of each communicator were made before a place: what members of one communicator agree on.
class Counts {
 public:
  explicit Counts(const RankRecord& record) : record_(record), counts_(record.communicators.size()) {}

  void go_to(std::uint32_t place) {
    if (place < at_) counts_.assign(counts_.size(), 0), at_ = 0;
    for (; at_ < place; ++at_) {
      const Call& call = record_.calls[at_];
      if (call.kind == CallKind::collective && record_.communications[call.detail].count > 0)
        ++counts_[static_cast<std::size_t>(call.number)];
    }
  }
  std::int64_t of(std::size_t communicator) const { return counts_[communicator]; }

 private:
  const RankRecord& record_;
  std::vector<std::int64_t> counts_;
  std::uint32_t at_ = 0;
};

/// Communicators that two records share: the numbers that each has for them.
using Shared = std::vector<std::pair<std::size_t, std::size_t>>;

Shared shared(const std::vector<JoinedCommunicator>& communicators, std::int32_t one, std::int32_t other) {
  Shared result;
  for (const JoinedCommunicator& of : communicators) {
    std::int32_t a = kNone, b = kNone;
    for (std::size_t member = 0; member < of.records.size(); ++member) {
      if (of.records[member] == one) a = of.numbers[member];
      if (of.records[member] == other) b = of.numbers[member];
    }
    if (a != kNone && b != kNone) result.emplace_back(static_cast<std::size_t>(a), static_cast<std::size_t>(b));
  }
  return result;
}

bool agree(const Counts& one, const Counts& other, const Shared& in) {
  return std::all_of(in.begin(), in.end(),
                     [&](const auto& pair) { return one.of(pair.first) == other.of(pair.second); });
}

/// The calls of a record that repeat with a step, and the periods of these. In a record without a kernel, a product and
/// a collective its copies and sets are the work.
class Periods {
 public:
  explicit Periods(const RankRecord& record) : record_(record), idle_(idle_places(record)) {
    std::vector<std::uint64_t> forms;
    std::vector<bool> work, communication;
    const bool has_work =
        std::any_of(record.calls.begin(), record.calls.end(), [](const Call& call) { return is_work(call.kind); });
    for (std::uint32_t i = 0; i < record.calls.size(); ++i) {
      const Call& call = record.calls[i];
      if (!is_part_of_step(call.kind)) continue;
      places_.push_back(i);
      forms.push_back(call.form);
      work.push_back(has_work ? is_work(call.kind) : is_copy(record, call));
      communication.push_back(is_communication(call.kind));
      all_work_ += work.back() ? 1 : 0;
    }
    places_.push_back(static_cast<std::uint32_t>(record.calls.size()));
    found_ = find_repetition(forms, work, communication);
    if (!found_) return;
    for (std::uint32_t i = found_->begin; i < found_->end; ++i) repeated_work_ += work[i] ? 1 : 0;
  }

  bool is_found() const { return found_.has_value(); }

  /// The last whole period, of those that begin where the host has waited for all, as the first of them does.
  StepRange last() const {
    std::uint32_t first = found_->begin;
    while (first < found_->begin + found_->period && !idle_[places_[first]]) ++first;
    const bool has_idle = first < found_->begin + found_->period && first + found_->period <= found_->end;
    if (!has_idle) first = found_->begin;
    return of(first + ((found_->end - first) / found_->period - 1) * found_->period, first);
  }

  /// The last period at whose begin the collectives of two ranks agree; one that begins idle, if there is one.
  std::optional<StepRange> aligned(const Counts& with, const Shared& in) const {
    Counts counts(record_);
    std::optional<std::uint32_t> place;
    for (std::uint32_t first = found_->begin; first + found_->period <= found_->end; ++first) {
      counts.go_to(places_[first]);
      if (!agree(with, counts, in)) continue;
      if (!place || (idle_[places_[first]] && !idle_[places_[*place]])) place = first;
    }
    if (!place) return std::nullopt;
    return of(*place, found_->begin + (*place - found_->begin) % found_->period);
  }

  StepRange everything() const { return {0, static_cast<std::uint32_t>(record_.calls.size()), 0, 0, all_work_, true}; }

 private:
  /// The period that begins at `begin`, of those that begin at `first` and each a period later.
  StepRange of(std::uint32_t begin, std::uint32_t first) const {
    StepRange range;
    range.begin = places_[begin], range.end = places_[begin + found_->period];
    range.periods = (found_->end - first) / found_->period;
    range.repeated_work = repeated_work_, range.all_work = all_work_;
    range.begins_idle = idle_[range.begin];
    return range;
  }

  const RankRecord& record_;
  std::vector<bool> idle_;             // by call
  std::vector<std::uint32_t> places_;  // of the calls that repeat with a step
  std::optional<Repetition> found_;    // of these
  std::uint32_t repeated_work_ = 0, all_work_ = 0;
};

/// The calls between two lines, both included.
StepRange between(const RankRecord& record, std::uint32_t first_line, std::uint32_t last_line) {
  StepRange range;
  const auto at = [&](std::uint32_t line) {
    return static_cast<std::uint32_t>(std::partition_point(record.calls.begin(), record.calls.end(),
                                                           [&](const Call& call) { return call.line < line; }) -
                                      record.calls.begin());
  };
  range.begin = at(first_line), range.end = at(last_line + 1);
  if (std::none_of(record.calls.begin() + range.begin, record.calls.begin() + range.end,
                   [&](const Call& call) { return uses_device(record, call); }))
    throw InputError(fmt::format("gives a device no work in lines {} to {}; {}", first_line, last_line, kOtherwise),
                     record.file);
  range.begins_idle = idle_places(record)[range.begin];
  return range;
}

StepRange profiled(const RankRecord& record) {
  const auto find = [&](auto from, CallKind kind) {
    return std::find_if(from, record.calls.end(), [&](const Call& call) { return call.kind == kind; });
  };
  const auto start = find(record.calls.begin(), CallKind::start_profiler);
  const auto stop = find(start, CallKind::stop_profiler);
  if (stop == record.calls.end())
    throw InputError("has no cudaProfilerStart that a cudaProfilerStop follows; --steps last finds what repeats",
                     record.file);
  return between(record, start->line, stop->line);
}

std::string lines_of(const RankRecord& record, const StepRange& range) {
  return fmt::format("lines {} to {} of {}", record.calls[range.begin].line, record.calls[range.end - 1].line,
                     record.file);
}

void check_agreement(const std::vector<RankRecord>& records, const std::vector<StepRange>& ranges,
                     const std::vector<JoinedCommunicator>& communicators) {
  std::vector<Counts> begin, end;
  for (std::size_t i = 0; i < records.size(); ++i) {
    begin.emplace_back(records[i]).go_to(ranges[i].begin);
    end.emplace_back(records[i]).go_to(ranges[i].end);
  }
  for (const JoinedCommunicator& of : communicators) {
    std::size_t first = of.records.size();
    for (std::size_t member = 0; member < of.records.size(); ++member) {
      if (of.records[member] == kNone) continue;
      if (first == of.records.size()) first = member;
      const auto a = static_cast<std::size_t>(of.records[first]), b = static_cast<std::size_t>(of.records[member]);
      const auto x = static_cast<std::size_t>(of.numbers[first]), y = static_cast<std::size_t>(of.numbers[member]);
      if (begin[a].of(x) == begin[b].of(y) && end[a].of(x) == end[b].of(y)) continue;
      throw InputError(
          fmt::format(
              "rank {} calls collectives {} to {} of communicator '{}' in {}, and rank {} {} to {} in {}: these are "
              "not one step; {}",
              records[a].rank, begin[a].of(x) + 1, end[a].of(x), of.key, lines_of(records[a], ranges[a]),
              records[b].rank, begin[b].of(y) + 1, end[b].of(y), lines_of(records[b], ranges[b]), kOtherwise),
          records[b].file, static_cast<int>(records[b].calls[ranges[b].begin].line));
    }
  }
}

}  // namespace

StepChoice parse_step_choice(const std::string& text) {
  using By = StepChoice::By;
  if (text == "last") return {};
  if (text == "all") return {By::all, 0, 0};
  if (text == "profiled") return {By::profiler, 0, 0};
  StepChoice choice{By::lines, 0, 0};
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, choice.first_line);
  bool is_right = first.ec == std::errc() && first.ptr != end && *first.ptr == '-';
  if (is_right) {
    const auto last = std::from_chars(first.ptr + 1, end, choice.last_line);
    is_right = last.ec == std::errc() && last.ptr == end && choice.first_line <= choice.last_line &&
               choice.last_line < UINT32_MAX;
  }
  if (!is_right)
    throw InputError(fmt::format("must be last, all, profiled, or lines of each record, such as 120-480, not '{}'",
                                 text.substr(0, 80)));
  return choice;
}

std::vector<StepRange> find_steps(const std::vector<RankRecord>& records,
                                  const std::vector<JoinedCommunicator>& communicators, const StepChoice& choice) {
  using By = StepChoice::By;
  std::vector<StepRange> ranges;
  std::optional<Counts> reference;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const RankRecord& record = records[i];
    if (record.calls.empty()) throw InputError("has no call that is part of a step", record.file);
    if (std::none_of(record.calls.begin(), record.calls.end(),
                     [&](const Call& call) { return uses_device(record, call); }))
      throw InputError("gives a device no work", record.file);
    if (choice.by == By::profiler) {
      ranges.push_back(profiled(record));
    } else if (choice.by == By::lines) {
      ranges.push_back(between(record, choice.first_line, choice.last_line));
    } else if (choice.by == By::all) {
      ranges.push_back(between(record, 1, record.calls.back().line));
    } else {
      const Periods periods(record);
      ranges.push_back(periods.is_found() ? periods.last() : periods.everything());
      if (i == 0) {
        reference.emplace(record).go_to(ranges[0].begin);
      } else if (periods.is_found() && ranges[0].periods > 0) {
        const Shared in = shared(communicators, 0, static_cast<std::int32_t>(i));
        Counts own(record);
        own.go_to(ranges[i].begin);
        if (!agree(*reference, own, in))
          if (const auto range = periods.aligned(*reference, in)) ranges[i] = *range;
      }
    }
  }
  check_agreement(records, ranges, communicators);
  return ranges;
}

}  // namespace manyworlds::experiments::captured
