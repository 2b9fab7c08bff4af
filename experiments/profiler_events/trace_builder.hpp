// Puts a rank's trace together from its events and the head of its file.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "experiments/profiler_events/event_kinds.hpp"
#include "experiments/profiler_events/operator_inputs.hpp"
#include "experiments/profiler_events/operator_shapes.hpp"
#include "experiments/profiler_events/rank_trace.hpp"
#include "experiments/profiler_events/trace_event.hpp"

namespace manyworlds::experiments::profiler {

class TraceBuilder {
 public:
  /// `host` tells the inputs of operators for which the trace has none; null: nothing does. It must outlive this.
  explicit TraceBuilder(const std::string& file, const OperatorInputs* host = nullptr) : host_(host) {
    trace_.file = file;
  }
  TraceBuilder(const TraceBuilder&) = delete;
  TraceBuilder& operator=(const TraceBuilder&) = delete;

  void add(const TraceEvent& event);
  /// Takes a member of the document beside its events.
  void head(const std::string& member, const nlohmann::json& value);
  /// Orders what was read. Throws core::InputError if there is no operation of a device, if calls are of several
  /// processes, or of a device whose calls are not known.
  RankTrace finish();

 private:
  /// Numbers texts by first occurrence.
  class Numbers {
   public:
    explicit Numbers(std::vector<std::string>& texts) : texts_(texts) {}
    std::uint32_t operator()(const std::string& text);

   private:
    std::vector<std::string>& texts_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
  };

  void add_op(const TraceEvent& event, Category category, std::int64_t start, std::int64_t duration);
  void add_call(const TraceEvent& event, std::int64_t start, std::int64_t duration);
  void add_sync(const TraceEvent& event);
  void add_operator(const TraceEvent& event);
  void add_span(const TraceEvent& event, std::int64_t start, std::int64_t duration);
  std::uint32_t communication_of(const TraceEvent& event);
  std::uint32_t stream_of(std::int64_t device, std::int64_t id);
  void distributed(const nlohmann::json& info);
  void link_communications();
  void move_to_zero();
  std::string device_name() const;
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_without_ops() const;
  void check_calls() const;
  /// Throws InputError if the events are of a device of which this is not known.
  void check_device(std::string_view unknown) const;
  bool has_category(std::string_view prefix) const;

  const OperatorInputs* host_;
  RankTrace trace_;
  Numbers names_{trace_.names}, threads_{trace_.threads};
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> streams_;
  std::unordered_map<std::int64_t, std::uint32_t> communication_of_operator_;
  OperatorShapes shapes_;
  std::unordered_map<std::string, std::optional<CallKind>> call_kinds_;  // by name
  std::set<std::string> categories_;                                     // of timed events
  std::set<std::string> processes_;                                      // of launches: two at most
  std::int64_t begun_ops_ = 0;                                           // operations that are no complete events
  std::int64_t linked_ = 0;                                              // operators that the host's trace has too
  nlohmann::json devices_;
  std::int64_t clock_base_ = 0;
};

}  // namespace manyworlds::experiments::profiler
