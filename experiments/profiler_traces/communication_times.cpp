#include "experiments/profiler_traces/communication_times.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/escape.hpp"
#include "core/base/plural.hpp"
#include "experiments/profiler_events/communication.hpp"

namespace manyworlds::experiments::profiler {
namespace {

constexpr std::size_t kMaxLines = 12;

struct Interval {
  std::int64_t start = 0, end = 0;
};

/// Returns what at least one of some intervals covers, ascending and apart from each other.
std::vector<Interval> united(std::vector<Interval> all) {
  std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
  std::vector<Interval> result;
  for (const Interval& one : all) {
    if (result.empty() || one.start > result.back().end)
      result.push_back(one);
    else
      result.back().end = std::max(result.back().end, one.end);
  }
  return result;
}

/// Returns how much of `some` none of `others` covers; both ascend, and are apart from each other.
std::int64_t uncovered(const std::vector<Interval>& some, const std::vector<Interval>& others) {
  std::int64_t sum = 0;
  auto other = others.begin();
  for (const Interval& one : some) {
    std::int64_t from = one.start;
    while (other != others.end() && other->end <= from) ++other;
    for (auto beside = other; beside != others.end() && beside->start < one.end; ++beside) {
      sum += std::max<std::int64_t>(0, beside->start - from);
      from = std::max(from, beside->end);
    }
    sum += std::max<std::int64_t>(0, one.end - from);
  }
  return sum;
}

/// Returns the name of a kernel's function: of `void a::b::combine<false>(int*)`, combine.
std::string function_of(std::string_view kernel) {
  const std::string_view name = kernel.substr(0, kernel.find_first_of("<("));
  const std::size_t qualified = name.find_last_of(": ");
  return std::string(qualified == name.npos ? name : name.substr(qualified + 1));
}

struct Counted {
  std::int64_t kernels = 0, duration = 0;  // ns
};

struct Group {
  std::map<std::string, Counted> of_kind;
  Counted all;
  std::int64_t alone = 0;  // ns
};

class Groups {
 public:
  void add(const RankTrace& trace) {
    std::map<std::int64_t, std::vector<Interval>> computing;                              // by device
    std::map<std::pair<std::string, std::int64_t>, std::vector<Interval>> communicating;  // by group and device
    for (const DeviceOp& op : trace.ops) {
      if (op.kind != DeviceKind::kernel) continue;
      const std::int64_t device = trace.streams[op.stream].device;
      if (!op.communicates()) {
        computing[device].push_back({op.start, op.end()});
        continue;
      }
      const std::string name = name_of_group(op, trace);
      Group& group = groups_[name];
      for (Counted* counted : {&group.all, &group.of_kind[kind_of(op, trace)]})
        ++counted->kernels, counted->duration += op.duration;
      communicating[{name, device}].push_back({op.start, op.end()});
    }
    for (auto& [device, intervals] : computing) intervals = united(std::move(intervals));
    for (auto& [key, intervals] : communicating)
      groups_[key.first].alone += uncovered(united(std::move(intervals)), computing[key.second]);
  }

  std::vector<std::string> lines() const {
    std::vector<const std::pair<const std::string, Group>*> order;
    for (const auto& one : groups_) order.push_back(&one);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->second.all.duration > b->second.all.duration; });
    std::vector<std::string> lines;
    for (const auto* one : order) {
      if (lines.size() == kMaxLines) {
        const std::size_t more = order.size() - lines.size();
        lines.push_back(fmt::format("communication of {} more {}, which took less", more, core::plural(more, "group")));
        break;
      }
      lines.push_back(line(one->first, one->second));
    }
    return lines;
  }

 private:
  static std::string line(const std::string& name, const Group& group) {
    std::vector<std::pair<std::string, Counted>> kinds(group.of_kind.begin(), group.of_kind.end());
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const auto& a, const auto& b) { return a.second.duration > b.second.duration; });
    std::vector<std::string> each;
    for (const auto& [kind, counted] : kinds)
      each.push_back(fmt::format("{} {} {:.3f} ms", counted.kernels, kind, in_ms(counted.duration)));
    return fmt::format("communication of {}: {:.3f} ms, of which {:.3f} ms beside no kernel that computes: {}", name,
                       in_ms(group.all.duration), in_ms(group.alone), fmt::join(each, ", "));
  }

  static double in_ms(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

  static std::string name_of_group(const DeviceOp& op, const RankTrace& trace) {
    if (op.is_expert_exchange) return "DeepEP, whose group the trace does not tell";
    if (op.communication == kNone) return "NCCL or RCCL, whose groups the trace does not tell";
    const CommunicationArguments& arguments = trace.communications[op.communication];
    const std::uint32_t name = arguments.description != kNone ? arguments.description : arguments.group;
    const std::size_t ranks = group_ranks(arguments, trace).size();
    const std::int64_t size = ranks > 0 ? static_cast<std::int64_t>(ranks) : arguments.group_size;
    const std::string text =
        name == kNone ? "a group without a name" : fmt::format("'{}'", core::line_text(trace.names[name]));
    return size > 0 ? fmt::format("{}, {} ranks", text, size) : text;
  }

  static std::string kind_of(const DeviceOp& op, const RankTrace& trace) {
    const std::uint32_t said = op.communication == kNone ? kNone : trace.communications[op.communication].collective;
    return core::line_text(said != kNone ? trace.names[said] : function_of(trace.names[op.name]));
  }

  std::map<std::string, Group> groups_;
};

}  // namespace

std::vector<std::string> communication_lines(const std::vector<RankTrace>& traces) {
  Groups groups;
  for (const RankTrace& trace : traces) groups.add(trace);
  return groups.lines();
}

}  // namespace manyworlds::experiments::profiler
