// An event as it stands in a trace, before it is known what of it is kept.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace manyworlds::experiments::profiler {

/// A time as it is written: microseconds with a fraction, or nanoseconds if it is too large for any of these.
struct WrittenTime {
  std::int64_t value = 0;  // ns, or us to the left of which nothing fits: see in_ns()
  bool is_known = false, is_ns = false;
};

/// Returns the time of a number's text, exactly; unknown if it is none or beyond all clocks.
WrittenTime written_time(std::string_view text);

/// What a member of an event, or of its `args`, is.
enum class Member : std::uint8_t {
  unknown,
  args,
  // Of the event.
  phase,
  category,
  name,
  process,
  thread,
  start,
  duration,
  // Of `args`.
  correlation,
  external,
  stream,
  device,
  bytes,
  awaited_stream,
  awaited_record,
  collective,
  dtype,
  in_elements,
  out_elements,
  in_split,
  out_split,
  group_size,
  group,
  description,
  group_ranks,
  first_rank,
  rank_stride,
  sequence,
  source,
  destination,
  root,
  inputs,  // lists, kept as they are written
  function
};

Member event_member(std::string_view name);
Member argument_member(std::string_view name);

struct TraceEvent {
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

  std::string phase, category, name, process, thread;
  WrittenTime start, duration;
  std::int64_t correlation = kUnknown, external = kUnknown, stream = kUnknown, device = kUnknown, bytes = kUnknown;
  std::int64_t awaited_stream = kUnknown, awaited_record = kUnknown;
  std::string collective, dtype, group, description, group_ranks, in_split, out_split;
  std::int64_t in_elements = kUnknown, out_elements = kUnknown, group_size = kUnknown, sequence = kUnknown;
  std::int64_t first_rank = kUnknown, rank_stride = kUnknown;  // of a group whose ranks are evenly apart
  std::int64_t source = kUnknown, destination = kUnknown, root = kUnknown;
  std::int64_t function = kUnknown;  // of an operator: the number of its call
  std::string inputs;                // of an operator: members of a JSON object

  /// Sets a member from its text, or from the text of a number.
  void set(Member member, std::string_view text);
  /// Adds an element to a member that is a list.
  void add(Member member, std::string_view text);
  void clear();
};

}  // namespace manyworlds::experiments::profiler
