// What is kept of one rank's trace: the operations of its device, the calls of its host that launched them or waited,
// and the spans of its steps and passes. Times are in nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::profiler {

inline constexpr std::uint32_t kNone = UINT32_MAX;

enum class DeviceKind : std::uint8_t { kernel, copy, set };

struct DeviceOp {
  std::int64_t start = 0, duration = 0;
  std::int64_t correlation = 0;         // of the call that launched it; 0: not known
  std::int64_t external = 0;            // of the operator of the framework
  std::int64_t bytes = 0;               // of copies and sets; 0: not known
  std::uint32_t name = 0;               // index in RankTrace::names
  std::uint32_t stream = 0;             // index in RankTrace::streams
  std::uint32_t communication = kNone;  // index in RankTrace::communications
  std::uint32_t shape = kNone;  // index in RankTrace::shapes; of all kernels of an operator that of the operator
  DeviceKind kind = DeviceKind::kernel;
  programs::CopyDirection direction = programs::CopyDirection::device_to_device;
  bool is_collective = false;       // a kernel of NCCL or RCCL
  bool is_expert_exchange = false;  // a kernel of DeepEP's that sends tokens to experts, or fetches them
  bool is_pageable = false;         // a copy from or to pageable memory
  std::int64_t end() const { return start + duration; }
  bool communicates() const { return is_collective || is_expert_exchange; }
};

enum class CallKind : std::uint8_t { launch, blocking_copy, record, wait, sync_stream, sync_event, sync_device };

struct Call {
  std::int64_t start = 0, duration = 0;
  std::int64_t correlation = 0;
  std::int64_t bytes = 0;    // of a copy, where the call says it
  std::uint32_t thread = 0;  // index in RankTrace::threads
  std::uint32_t name = 0;
  CallKind kind = CallKind::launch;
  std::int64_t end() const { return start + duration; }
};

/// What an event of category cuda_sync says of the call of the same correlation.
struct SyncRecord {
  std::uint32_t stream = kNone;   // index in RankTrace::streams: that which waits, or which the host waits for
  std::uint32_t awaited = kNone;  // the stream on which the event was recorded
  std::optional<std::int64_t>
      record;  // correlation of the call that recorded it; below 0: it never was; nothing: not said
};

/// What a kernel of NCCL says of its collective. Texts are indices in RankTrace::names; numbers below 0 are not known.
struct CommunicationArguments {
  std::uint32_t collective = kNone, dtype = kNone, group = kNone, description = kNone, ranks = kNone;
  std::uint32_t in_split = kNone, out_split = kNone;
  std::int64_t in = -1, out = -1;  // elements
  std::int64_t group_size = -1, first_rank = -1, rank_stride = -1, sequence = -1, source = -1, destination = -1,
               root = -1;
};

struct DeviceStream {
  std::int64_t device = 0, id = 0;
};

/// A time on a thread of the host: of a step, an optimizer, or an operator of the backward pass.
struct Span {
  std::int64_t start = 0, end = 0;
  std::int64_t number = 0;  // of a step
  std::uint32_t thread = 0;
};

struct RankTrace {
  std::string file;
  std::optional<std::int64_t> rank, world;
  std::string device_name;
  std::int64_t base = 0;   // of all times, which are after it: on the clock of the rank
  std::int64_t begin = 0;  // of what is kept
  std::vector<std::string> names;
  std::vector<DeviceStream> streams;
  std::vector<std::string> threads;
  std::vector<DeviceOp> ops;
  std::vector<Call> calls;                                 // those that launch or wait
  std::vector<std::pair<std::int64_t, SyncRecord>> syncs;  // ascending by correlation, each once
  std::vector<CommunicationArguments> communications;
  std::vector<programs::KernelShape> shapes;
  std::map<std::string, std::vector<std::uint32_t>> groups;  // ranks, by name, as the trace's head has them
  std::vector<Span> steps, optimizers, backwards;
  std::int64_t events = 0, strange_times = 0;  // all in the file; those left out as their times make no sense
  std::string strange;                         // the first of the latter, as messages name it
  std::int64_t mended_values = 0;              // that stand where JSON has none (NaN, inf, N/A): taken as not known
  std::int64_t mended_characters = 0;          // of texts, that JSON does not have there: replaced
};

}  // namespace manyworlds::experiments::profiler
