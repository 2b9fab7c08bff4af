#include "io/pictures/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/version.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "core/collective/library/bus_bandwidth.hpp"
#include "core/sharing/key.hpp"
#include "core/step/layout/role_name.hpp"
#include "core/workload/program/step_parts.hpp"

namespace manyworlds::io {
namespace {

using core::Time;
using core::step::CompiledStep;
using core::step::Recording;
using core::stream::Record;
using core::stream::Span;
using core::workload::Op;
using core::workload::Program;

constexpr std::size_t kFlushBytes = std::size_t{1} << 20;  // bytes after which the text is passed on
constexpr std::size_t kWaitThread = 2;  // thread numbers: 1 the compute stream, 2 its waits, then the other streams

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Returns microseconds, the unit of the format, with all digits down to the picosecond.
std::string in_us(Time ps) {
  return fmt::format("{}.{:06}", ps / core::kMicrosecond, ps % core::kMicrosecond);
}

std::size_t thread_of(std::size_t stream) {
  return stream == 0 ? 1 : kWaitThread + stream;
}

class TraceWriter {
 public:
  TraceWriter(const CompiledStep& compiled, const Recording& recording,
              const std::function<void(std::string_view)>& append)
      : compiled_(compiled), recording_(recording), append_(append) {}

  void write(const TraceOptions& options) {
    begin(options);
    for (const Recording::Rank& rank : recording_.ranks) {
      const auto& requested = options.ranks;
      if (!requested.empty() && std::find(requested.begin(), requested.end(), rank.rank.value()) == requested.end())
        continue;
      name_rank(rank);
      write_idle(rank);
      write_streams(rank);
      write_memory(rank);
    }
    write_links();
    text_ += "\n]}\n";
    append_(text_);
  }

 private:
  template <typename... Values>
  void put(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  /// Begins an event: writes everything before its arguments.
  template <typename... Values>
  void event(fmt::format_string<Values...> format, Values&&... values) {
    if (text_.size() > kFlushBytes) {
      append_(text_);
      text_.clear();
    }
    text_ += std::exchange(first_, false) ? "\n{" : ",\n{";
    put(format, std::forward<Values>(values)...);
  }

  std::uint32_t process_of(const Recording::Rank& rank) const { return rank.rank.value() + 1; }  // Perfetto reserves 0

  void begin(const TraceOptions& options) {
    links_ = core::step::busiest_links(compiled_, recording_, options.links);
    const auto names = core::network::link_names(compiled_.layout().graph());
    nlohmann::ordered_json metadata{{"what", "one training step, simulated by manyworlds"},
                                    {"experiment", options.name},
                                    {"version", core::version()},
                                    {"build", core::sharing::build_fingerprint()},
                                    {"timestamps", "microseconds; their six decimals are exact"},
                                    {"step_time_ps", recording_.end},
                                    {"ranks", compiled_.layout().ranks()},
                                    {"fidelity", compiled_.transport().fidelity == core::network::Fidelity::analytic
                                                     ? "analytic: a lower bound"
                                                     : name_of(compiled_.transport().fidelity)},
                                    {"links", nlohmann::ordered_json::array()}};
    for (const core::step::LinkUtilization& timeline : links_) {
      link_names_.push_back(names[timeline.link]);
      metadata["links"].push_back({{"link", names[timeline.link]},
                                   {"bits_per_second", compiled_.layout().graph().links[timeline.link].bits_per_second},
                                   {"bytes", timeline.bytes}});
    }
    put(R"({{"displayTimeUnit":"ns","otherData":{},"traceEvents":[)",
        metadata.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }

  void name_process(std::uint32_t process, const std::string& name) {
    event(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", process, quoted(name));
    event(R"("ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", process, process);
  }
  void name_thread(std::uint32_t process, std::size_t thread, const std::string& name) {
    event(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", process, thread, quoted(name));
    event(R"("ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", process, thread,
          thread);
  }

  void name_rank(const Recording::Rank& rank) {
    const auto& layout = compiled_.layout();
    const std::uint32_t stage_ranks = layout.ranks_per_stage();
    const bool is_given = compiled_.configuration().programs != nullptr;  // then there are no stages
    const std::string represented = rank.lockstep_count == stage_ranks
                                        ? fmt::format("all {} ranks", stage_ranks)
                                        : fmt::format("{} of {} ranks", rank.lockstep_count, stage_ranks);
    const std::string stage = is_given ? "" : fmt::format("stage {}, ", layout.stage_of(rank.rank));
    name_process(process_of(rank), fmt::format("{}rank {} ({}): represents {}{}", stage, rank.rank,
                                               layout.graph().names[layout.gpu_of(rank.rank).value()], represented,
                                               is_given ? "" : " of its stage"));
  }

  /// Writes a slice as a begin and an end event. Equal instants have equal text, so adjacent slices still touch after a
  /// reader rounds them; slices with a duration would overlap by a nanosecond, and Perfetto drops those.
  template <typename... Values>
  void slice(std::uint32_t process, std::size_t thread, Time from, Time to, const std::string& name,
             std::string_view category, fmt::format_string<Values...> arguments, Values&&... values) {
    event(R"("ph":"B","pid":{},"tid":{},"ts":{},"name":{},"cat":"{}","args":{{)", process, thread, in_us(from), name,
          category);
    put(arguments, std::forward<Values>(values)...);
    text_ += "}}";
    // Some readers (speedscope) match the end of a slice by its name.
    event(R"("ph":"E","pid":{},"tid":{},"ts":{},"name":{}}})", process, thread, in_us(to), name);
  }

  void write_idle(const Recording::Rank& rank) {
    name_thread(process_of(rank), kWaitThread, "compute waits for");
    for (const core::stream::Idle& idle : recording_.records[rank.record].idle)
      slice(process_of(rank), kWaitThread, idle.begin, idle.end,
            fmt::format("\"{}\"", core::workload::name_of(idle.why)), "wait", "");
  }

  void write_streams(const Recording::Rank& rank) {
    const Program& program = compiled_.programs()[compiled_.layout().class_of(rank.rank)];
    std::vector<std::string> labels;
    for (const std::string& label : program.labels) labels.push_back(quoted(label));
    std::vector<std::vector<const Span*>> streams(core::workload::kStreams + program.own_streams.size());
    for (const Span& span : recording_.records[rank.record].spans)
      streams[static_cast<std::size_t>(program.ops[span.op].stream)].push_back(&span);
    for (std::size_t stream = 0; stream < streams.size(); ++stream) {
      if (streams[stream].empty()) continue;
      name_thread(process_of(rank), thread_of(stream), program.name_of(static_cast<core::workload::Stream>(stream)));
      for (const Span* span : streams[stream]) {
        const Op& op = program.ops[span->op];
        op.collective() ? write_collective(rank, op, *span, labels[op.label])
                        : write_kernel(rank, program, *span, labels[op.label]);
      }
    }
  }

  void write_kernel(const Recording::Rank& rank, const Program& program, const Span& span, const std::string& label) {
    const Op& op = program.ops[span.op];
    std::string pass;
    if (const core::workload::PipelinePass* slot = program.pass_of(op))
      pass = fmt::format(R"(,"micro_batch":{},"chunk":{})", slot->micro_batch, slot->chunk);
    const std::string_view category = core::workload::name_of(std::get<core::workload::KernelOp>(op.action).category);
    slice(process_of(rank), thread_of(static_cast<std::size_t>(op.stream)), span.begin, span.end, label, category,
          R"("op":{},"category":"{}"{},"slowed_ps":{})", span.op, category, pass, span.slowed);
  }

  void write_collective(const Recording::Rank& rank, const Op& op, const Span& span, const std::string& label) {
    const core::step::InstanceId instance =
        compiled_.instance_entered_by(compiled_.symmetry().representative_of[rank.rank], span.op).instance;
    const core::step::CollectiveInterval& timeline = recording_.intervals[instance];
    const core::collective::Shape& shape = compiled_.collective_op_of(instance).shape;
    std::string speed;
    if (const Time lasts = timeline.ended - timeline.last; lasts > 0)
      speed =
          fmt::format(R"(,"algbw_GBps":{:.3f},"busbw_GBps":{:.3f})", core::collective::algorithm_gb_per_s(shape, lasts),
                      core::collective::bus_gb_per_s(shape, lasts));
    const bool send = shape.kind == core::collective::Kind::send;
    slice(process_of(rank), thread_of(static_cast<std::size_t>(op.stream)), span.begin, span.end, label, "collective",
          R"("op":{},"kind":"{}","role":{},"algorithm":"{}","members":{},"bytes":{},)"
          R"("last_entered_us":{},"last_left_us":{}{})",
          span.op, core::collective::name_of(shape.kind),
          quoted(core::step::role_name(compiled_.configuration(), op.collective()->role)),
          send ? "direct" : core::collective::info_of(shape.algorithm).name, shape.members, shape.bytes,
          in_us(timeline.last), in_us(timeline.ended), speed);
  }

  void write_memory(const Recording::Rank& rank) {
    for (const core::step::MemoryAt& moment : core::step::memory_over_time(compiled_, recording_, rank)) {
      const core::memory::Footprint& held = moment.held;
      event(R"("ph":"C","pid":{},"ts":{},"name":"memory, bytes","args":{{"value":{}}}}})", process_of(rank),
            in_us(moment.at), held.total());
      const std::int64_t changing = held.activations + held.recomputed + held.working + held.logits + held.rounding;
      event(R"("ph":"C","pid":{},"ts":{},"name":"memory by part, bytes","args":{{"standing":{},"activations":{},)"
            R"("recomputed":{},"working":{},"logits":{},"rounding":{}}}}})",
            process_of(rank), in_us(moment.at), held.total() - changing, held.activations, held.recomputed,
            held.working, held.logits, held.rounding);
    }
  }

  void write_links() {
    if (links_.empty()) return;
    const std::uint32_t process = compiled_.layout().ranks() + 1;
    name_process(process, fmt::format("the {} busiest network links", links_.size()));
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const std::string name = quoted(link_names_[i] + ", bytes/s");
      const auto rate = [&](Time at, double value) {
        event(R"("ph":"C","pid":{},"ts":{},"name":{},"args":{{"value":{}}}}})", process, in_us(at), name, value);
      };
      if (links_[i].rates.front().first > 0) rate(0, 0);
      for (const auto& [at, value] : links_[i].rates) rate(at, value);
    }
  }

  const CompiledStep& compiled_;
  const Recording& recording_;
  const std::function<void(std::string_view)>& append_;
  std::vector<core::step::LinkUtilization> links_;
  std::vector<std::string> link_names_;
  std::string text_;
  bool first_ = true;
};

}  // namespace

void write_trace(const CompiledStep& compiled, const Recording& recording, const TraceOptions& options,
                 const std::function<void(std::string_view)>& append) {
  MANYWORLDS_CHECK(recording.intervals.size() == compiled.instances() && recording.end > 0,
                   "a recording of {} collectives in {} ps for a step of {}", recording.intervals.size(), recording.end,
                   compiled.instances());
  TraceWriter(compiled, recording, append).write(options);
}

}  // namespace manyworlds::io
