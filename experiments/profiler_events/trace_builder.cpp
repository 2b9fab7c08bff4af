#include "experiments/profiler_events/trace_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "experiments/profiler_events/communication.hpp"

namespace manyworlds::experiments::profiler {
namespace {

using core::InputError;
using nlohmann::json;

constexpr std::int64_t kMaxDuration = 1'000'000'000'000'000;  // ns; of eleven days
constexpr std::int64_t kMaxBase = 4'000'000'000'000'000'000;
constexpr std::size_t kMaxCategories = 20;

/// Devices of which Kineto writes events that are not read, by how their categories begin.
struct NamedDevice {
  std::string_view prefix, name;
};
constexpr std::array kOtherDevices{
    NamedDevice{"mtia_", "an accelerator of Meta's (MTIA)"}, NamedDevice{"xpu_", "a GPU of Intel's (XPU)"},
    NamedDevice{"hpu_", "a Gaudi of Intel's (HPU)"}, NamedDevice{"glow_", "an accelerator of Glow's"},
    NamedDevice{"privateuse1_", "a device of another backend (PrivateUse1)"}};

std::int64_t known_or(std::int64_t value, std::int64_t other) {
  return value == TraceEvent::kUnknown ? other : value;
}

/// Returns a whole number, as such or as text; nothing if it is none.
std::optional<std::int64_t> whole(const json& object, const char* member) {
  const auto found = object.find(member);
  if (found == object.end()) return std::nullopt;
  if (found->is_number_integer() && found->get<std::int64_t>() >= 0) return found->get<std::int64_t>();
  if (!found->is_string()) return std::nullopt;
  const WrittenTime number = written_time(found->get_ref<const std::string&>());
  return number.is_known && !number.is_ns && number.value >= 0 ? std::optional(number.value / 1000) : std::nullopt;
}

}  // namespace

std::uint32_t TraceBuilder::Numbers::operator()(const std::string& text) {
  const auto [known, is_new] = numbers_.emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(text);
  return known->second;
}

void TraceBuilder::add(const TraceEvent& event) {
  ++trace_.events;
  const Category category = category_of(event.category);
  if (event.phase != "X") {
    const bool is_op = category == Category::kernel || category == Category::copy || category == Category::set;
    begun_ops_ += is_op && event.phase == "B" ? 1 : 0;
    return;
  }
  if (category == Category::other) {
    if (categories_.size() < kMaxCategories) categories_.insert(core::line_text(event.category));
    return;
  }
  if (category == Category::sync) return add_sync(event);
  const std::int64_t scale = event.start.is_ns ? 1000 : 1;
  const std::int64_t start = event.start.value, duration = event.duration.value / scale;
  const bool makes_sense = event.start.is_known && event.duration.is_known && start >= -kMaxDuration &&
                           start <= kMaxBase && duration >= 0 && duration <= kMaxDuration;
  if (!makes_sense) {
    if (trace_.strange_times++ == 0)
      trace_.strange =
          fmt::format("{} '{}'", core::line_text(event.category), core::line_text(event.name.substr(0, 80)));
    return;
  }
  switch (category) {
    case Category::kernel:
    case Category::copy:
    case Category::set:
      return add_op(event, category, start, duration);
    case Category::call:
      return add_call(event, start, duration);
    default:
      categories_.insert(core::line_text(event.category));
      return add_span(event, start, duration);
  }
}

void TraceBuilder::add_op(const TraceEvent& event, Category category, std::int64_t start, std::int64_t duration) {
  DeviceOp op;
  op.start = start, op.duration = duration;
  op.correlation = known_or(event.correlation, 0);
  op.external = known_or(event.external, 0);
  op.bytes = std::max<std::int64_t>(known_or(event.bytes, 0), 0);
  op.name = names_(event.name);
  const std::int64_t of_thread = written_time(event.thread).value / 1000;
  op.stream = stream_of(known_or(event.device, 0), known_or(event.stream, of_thread));
  if (category != Category::kernel) op.kind = category == Category::copy ? DeviceKind::copy : DeviceKind::set;
  if (op.kind == DeviceKind::copy) {
    op.direction = copy_direction(event.name);
    op.is_pageable = event.name.find("Pageable") != std::string::npos;
  }
  if (op.kind == DeviceKind::set) op.direction = programs::CopyDirection::set;
  op.is_collective = op.kind == DeviceKind::kernel && is_collective_kernel(event.name);
  op.is_expert_exchange = op.kind == DeviceKind::kernel && is_expert_exchange_kernel(event.name);
  if (op.is_collective && !event.collective.empty()) op.communication = communication_of(event);
  trace_.ops.push_back(op);
}

void TraceBuilder::add_call(const TraceEvent& event, std::int64_t start, std::int64_t duration) {
  auto known = call_kinds_.find(event.name);
  if (known == call_kinds_.end()) known = call_kinds_.emplace(event.name, call_kind(event.name)).first;
  if (!known->second) return;
  Call call;
  call.start = start, call.duration = duration;
  call.correlation = known_or(event.correlation, 0);
  call.bytes = std::max<std::int64_t>(known_or(event.bytes, 0), 0);
  call.thread = threads_(event.thread);
  call.name = names_(event.name);
  call.kind = *known->second;
  if (call.kind == CallKind::launch && processes_.size() < 2) processes_.insert(event.process);
  trace_.calls.push_back(call);
}

void TraceBuilder::add_sync(const TraceEvent& event) {
  if (event.correlation == TraceEvent::kUnknown) return;
  SyncRecord sync;
  const std::int64_t device = known_or(event.device, 0);
  if (event.stream != TraceEvent::kUnknown && event.stream >= 0) sync.stream = stream_of(device, event.stream);
  if (event.awaited_stream != TraceEvent::kUnknown && event.awaited_stream >= 0)
    sync.awaited = stream_of(device, event.awaited_stream);
  if (event.awaited_record != TraceEvent::kUnknown) sync.record = event.awaited_record;
  trace_.syncs.emplace_back(event.correlation, sync);
}

void TraceBuilder::add_span(const TraceEvent& event, std::int64_t start, std::int64_t duration) {
  const std::string_view name = event.name;
  std::vector<Span>* to = nullptr;
  Span span{start, start + duration, 0, 0};
  if (const auto number = step_number(name)) {
    to = &trace_.steps;
    span.number = *number;
  } else if (name.starts_with("Optimizer.step")) {
    to = &trace_.optimizers;
  } else if (name.starts_with("autograd::engine::evaluate_function")) {
    to = &trace_.backwards;
  } else if (name == "record_param_comms" && !event.collective.empty() && event.external != TraceEvent::kUnknown) {
    communication_of_operator_.emplace(event.external, communication_of(event));
  } else if (name.starts_with("aten::") && event.external != TraceEvent::kUnknown) {
    add_operator(event);
  }
  if (to == nullptr) return;
  span.thread = threads_(event.thread);
  to->push_back(span);
}

void TraceBuilder::add_operator(const TraceEvent& event) {
  if (host_ == nullptr || event.function == TraceEvent::kUnknown) {
    if (!event.inputs.empty()) shapes_.add(event.external, event.name, event.inputs);
    return;
  }
  const OperatorInputs::Operator* called = host_->find(event.function);
  if (called == nullptr) return;
  ++linked_;
  if (called->name != event.name)
    throw InputError(
        fmt::format(
            "was recorded in another run than the execution trace of its host: call {} is {} here, and {} there",
            event.function, event.name.substr(0, 80), called->name),
        trace_.file);
  shapes_.add(event.external, event.name, called->inputs);
}

std::uint32_t TraceBuilder::communication_of(const TraceEvent& event) {
  const auto text = [&](const std::string& one) { return one.empty() ? kNone : names_(one); };
  CommunicationArguments to;
  to.collective = text(event.collective), to.dtype = text(event.dtype);
  to.group = text(event.group), to.description = text(event.description), to.ranks = text(event.group_ranks);
  to.in_split = text(event.in_split), to.out_split = text(event.out_split);
  to.in = known_or(event.in_elements, -1), to.out = known_or(event.out_elements, -1);
  to.first_rank = known_or(event.first_rank, -1), to.rank_stride = known_or(event.rank_stride, -1);
  to.group_size = known_or(event.group_size, -1), to.sequence = known_or(event.sequence, -1);
  to.source = known_or(event.source, -1), to.destination = known_or(event.destination, -1);
  to.root = known_or(event.root, -1);
  trace_.communications.push_back(to);
  return static_cast<std::uint32_t>(trace_.communications.size() - 1);
}

std::uint32_t TraceBuilder::stream_of(std::int64_t device, std::int64_t id) {
  const auto [known, is_new] = streams_.emplace(std::pair(device, id), static_cast<std::uint32_t>(streams_.size()));
  if (is_new) trace_.streams.push_back({device, id});
  return known->second;
}

void TraceBuilder::head(const std::string& member, const json& value) {
  if (member == "distributedInfo" && value.is_object()) distributed(value);
  if (member == "deviceProperties") devices_ = value;
  if (member != "baseTimeNanoseconds") return;
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  const WrittenTime base = written_time(text);
  if (!base.is_known || base.value < 0)
    throw InputError(fmt::format("'baseTimeNanoseconds' must be a time in nanoseconds, not {}", text.substr(0, 40)),
                     trace_.file);
  clock_base_ = base.is_ns ? base.value : base.value / 1000;
}

void TraceBuilder::distributed(const json& info) {
  trace_.rank = whole(info, "rank");
  trace_.world = whole(info, "world_size");
  const auto groups = info.find("pg_config");
  if (groups == info.end() || !groups->is_array()) return;
  for (const json& group : *groups) {
    if (!group.is_object()) continue;
    const auto name = group.find("pg_name"), ranks = group.find("ranks");
    if (name == group.end() || ranks == group.end() || !name->is_string()) continue;
    const std::string text = ranks->is_string() ? ranks->get<std::string>() : ranks->dump();
    const std::vector<std::uint32_t> members = ranks_of_text(text, -1);
    if (!members.empty()) trace_.groups[name->get<std::string>()] = members;
  }
}

std::string TraceBuilder::device_name() const {
  if (!devices_.is_array()) return {};
  std::vector<std::int64_t> ops(trace_.streams.size());
  for (const DeviceOp& op : trace_.ops) ++ops[op.stream];
  const std::int64_t device =
      trace_.streams[static_cast<std::size_t>(std::max_element(ops.begin(), ops.end()) - ops.begin())].device;
  std::set<std::string> all;
  for (const json& one : devices_) {
    if (!one.is_object() || !one.contains("name") || !one["name"].is_string()) continue;
    if (whole(one, "id") == device) return one["name"].get<std::string>();
    all.insert(one["name"].get<std::string>());
  }
  return all.size() == 1 ? *all.begin() : std::string();
}

void TraceBuilder::link_communications() {
  for (DeviceOp& op : trace_.ops) {
    if (!op.is_collective || op.communication != kNone) continue;
    const auto known = communication_of_operator_.find(op.external);
    if (known != communication_of_operator_.end()) op.communication = known->second;
  }
}

void TraceBuilder::move_to_zero() {
  std::int64_t first = trace_.ops.front().start;
  for (const DeviceOp& op : trace_.ops) first = std::min(first, op.start);
  for (const Call& call : trace_.calls) first = std::min(first, call.start);
  for (DeviceOp& op : trace_.ops) op.start -= first;
  for (Call& call : trace_.calls) call.start -= first;
  for (std::vector<Span>* spans : {&trace_.steps, &trace_.optimizers, &trace_.backwards})
    for (Span& span : *spans) span.start -= first, span.end -= first;
  trace_.base = clock_base_ + first;
}

void TraceBuilder::fail(const std::string& what) const {
  throw InputError(what, trace_.file);
}

bool TraceBuilder::has_category(std::string_view prefix) const {
  return std::any_of(categories_.begin(), categories_.end(),
                     [&](const std::string& one) { return one.starts_with(prefix); });
}

void TraceBuilder::check_device(std::string_view unknown) const {
  for (const NamedDevice& one : kOtherDevices)
    if (has_category(one.prefix))
      fail(
          fmt::format("was recorded on {} (categories {}); {} is not known here: traces of NVIDIA's and AMD's GPUs are "
                      "read",
                      one.name, fmt::join(categories_, ", "), unknown));
}

void TraceBuilder::fail_without_ops() const {
  if (begun_ops_ > 0)
    fail(
        fmt::format("has {} operations of a device as pairs of events ('ph' B and E), not as complete ones (X), as "
                    "PyTorch's profiler writes them",
                    begun_ops_));
  check_device("what its events mean");
  if (categories_ == std::set<std::string>{""})
    fail(
        "has timed events without categories ('cat'), so that it is none of PyTorch's profiler (Kineto): JAX and XLA, "
        "TensorFlow, Ascend's profiler and PyTorch before 1.8.1 write such traces, which are not read");
  const std::string has = categories_.empty() ? ", and no timed event of the host either"
                                              : fmt::format(", but categories {}", fmt::join(categories_, ", "));
  fail(
      fmt::format("has no operations of a device (categories kernel, gpu_memcpy, gpu_memset){}; profile with "
                  "ProfilerActivity.CUDA on a rank with a GPU",
                  has));
}

void TraceBuilder::check_calls() const {
  if (processes_.size() > 1)
    fail(
        fmt::format("has launches of several processes ({} and {}), whose correlations are not told apart: give the "
                    "trace of each rank as a file of its own",
                    *processes_.begin(), *processes_.rbegin()));
  if (!trace_.calls.empty()) return;
  check_device("which of its calls launch or wait");
}

RankTrace TraceBuilder::finish() {
  if (trace_.ops.empty()) fail_without_ops();
  check_calls();
  if (host_ != nullptr && linked_ == 0)
    fail(
        "has no operator whose call ('Record function id') is one of the execution trace of its host ('rf_id'): let "
        "both be recorded in one run, by a PyTorch whose profiler writes these numbers");
  link_communications();
  shapes_.give_to(trace_);
  trace_.device_name = device_name();
  move_to_zero();
  const auto by_correlation = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(trace_.syncs.begin(), trace_.syncs.end(), by_correlation);
  const auto again = std::unique(trace_.syncs.begin(), trace_.syncs.end(),
                                 [](const auto& a, const auto& b) { return a.first == b.first; });
  trace_.syncs.erase(again, trace_.syncs.end());
  const auto by_start = [](const auto& a, const auto& b) { return a.start < b.start; };
  std::stable_sort(trace_.ops.begin(), trace_.ops.end(), by_start);
  std::stable_sort(trace_.calls.begin(), trace_.calls.end(), by_start);
  for (std::vector<Span>* spans : {&trace_.steps, &trace_.optimizers, &trace_.backwards})
    std::stable_sort(spans->begin(), spans->end(), by_start);
  return std::move(trace_);
}

}  // namespace manyworlds::experiments::profiler
