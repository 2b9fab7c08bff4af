#include "core/step/run/recording.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "core/base/error.hpp"

namespace manyworlds::core::step {
namespace {

/// The traffic of one collective on one of the selected links.
struct Transmission {
  Time begin = 0, end = 0;
  double bytes_per_second = 0;
};

/// Returns the sum of the rates after every change. Each sum is computed anew from the active transmissions, so that
/// ended ones leave no rounding error behind.
std::vector<std::pair<Time, double>> summed_rates(const std::vector<Transmission>& transmissions) {
  struct Change {
    Time at;
    bool begins;
    std::size_t transmission;
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < transmissions.size(); ++i) {
    changes.push_back({transmissions[i].begin, true, i});
    changes.push_back({transmissions[i].end, false, i});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.at != b.at ? a.at < b.at : a.transmission < b.transmission;
  });
  std::vector<std::size_t> under_way;  // active transmissions, ascending
  std::vector<std::pair<Time, double>> rates;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const auto position = std::lower_bound(under_way.begin(), under_way.end(), changes[i].transmission);
    changes[i].begins ? under_way.insert(position, changes[i].transmission) : under_way.erase(position);
    if (i + 1 < changes.size() && changes[i + 1].at == changes[i].at) continue;
    double sum = 0;
    for (const std::size_t transmission : under_way) sum += transmissions[transmission].bytes_per_second;
    rates.emplace_back(changes[i].at, sum);
  }
  return rates;
}

struct TimeRange {
  Time begin = std::numeric_limits<Time>::max(), end = 0;
};

/// Returns for each pass the interval from the start of its first kernel to the end of its last.
std::map<workload::PipelinePass, TimeRange> passes_of(const workload::Program& program, const stream::Record& record) {
  std::map<workload::PipelinePass, TimeRange> passes;
  for (const stream::Span& span : record.spans) {
    const workload::Op& op = program.ops[span.op];
    const workload::PipelinePass* pass = op.stream == workload::Stream::compute ? program.pass_of(op) : nullptr;
    if (pass == nullptr) continue;
    TimeRange& extent = passes[*pass];
    extent.begin = std::min(extent.begin, span.begin);
    extent.end = std::max(extent.end, span.end);
  }
  return passes;
}

}  // namespace

std::vector<LinkUtilization> busiest_links(const CompiledStep& compiled, const Recording& recording,
                                           std::size_t max_links) {
  const network::Graph& graph = compiled.layout().graph();
  IdVector<CollectiveOpId, std::int64_t> times(compiled.collective_ops().size(), 0);  // number of its instances
  for (const InstanceId instance : compiled.instance_ids()) ++times[compiled.collective_op_id(instance)];
  std::vector<Time> busy(compiled.link_numbers(), 0);
  for (const CollectiveOpId collective_op : times.ids())
    for (const auto& [link, one] : compiled.collective_ops()[collective_op].busy)
      busy[link] += one * times[collective_op];

  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < busy.size(); ++link)
    if (busy[link] > 0) links.push_back(link);
  std::stable_sort(links.begin(), links.end(), [&](std::uint32_t a, std::uint32_t b) { return busy[a] > busy[b]; });
  links.resize(std::min(links.size(), max_links));
  std::map<std::uint32_t, std::size_t> position;
  std::vector<LinkUtilization> intervals;
  for (const std::uint32_t link : links) {
    position[link] = intervals.size();
    intervals.push_back({compiled.pools() ? compiled.pools()->link_of(link) : link, 0, {}});
  }

  // By operation: (index of a selected link, bytes of one instance on it).
  IdVector<CollectiveOpId, std::vector<std::pair<std::size_t, std::int64_t>>> bytes_on_links(times.size());
  LinkLoads link_loads(compiled.transport(), graph, compiled.pools());
  for (const CollectiveOpId collective_op : times.ids())
    for (const auto& [link, bytes] : link_loads.of(compiled.collective_ops()[collective_op]).network_bytes)
      if (const auto at = position.find(link); at != position.end())
        bytes_on_links[collective_op].emplace_back(at->second, bytes);
  std::vector<std::vector<Transmission>> transmissions(intervals.size());
  for (const InstanceId instance : compiled.instance_ids())
    for (const auto& [link, bytes] : bytes_on_links[compiled.collective_op_id(instance)]) {
      const CollectiveInterval& course = recording.intervals[instance];
      const Time begin = compiled.collective_op_of(instance).dag->switches.empty() ? course.second : course.first;
      MANYWORLDS_CHECK(begin < course.ended, "collective {} has {} B to carry from {} to {}", instance, bytes, begin,
                       course.ended);
      transmissions[link].push_back({begin, course.ended, static_cast<double>(bytes) / seconds(course.ended - begin)});
      intervals[link].bytes += bytes;
    }
  for (std::size_t link = 0; link < intervals.size(); ++link) intervals[link].rates = summed_rates(transmissions[link]);
  return intervals;
}

namespace {

/// Returns what a given program has allocated over time: from when the operation starts at whose issue it is allocated.
std::vector<MemoryAt> allocated_over_time(const std::vector<workload::AllocatedFrom>& allocated,
                                          const stream::Record& record) {
  std::map<std::uint32_t, Time> began;
  for (const stream::Span& span : record.spans) began[span.op] = span.begin;
  std::vector<MemoryAt> course;
  Time over = 0;
  for (const workload::AllocatedFrom& one : allocated) {
    const auto at = began.find(one.op);
    if (at != began.end()) over = std::max(over, at->second);
    course.push_back({over, {}});
    course.back().held.program = one.bytes;
  }
  return course;
}

}  // namespace

std::vector<MemoryAt> memory_over_time(const CompiledStep& compiled, const Recording& recording,
                                       const Recording::Rank& rank) {
  const Configuration& configuration = compiled.configuration();
  const std::uint32_t number = compiled.layout().class_of(rank.rank);
  if (configuration.programs)
    return allocated_over_time(configuration.programs->allocated.at(number), recording.records[rank.record]);
  const workload::RankClass& one = compiled.layout().classes()[number];
  const auto passes = passes_of(compiled.programs()[number], recording.records[rank.record]);
  std::vector<MemoryAt> course{
      {0, memory::static_footprint(configuration.model, configuration.strategy, configuration.gpu_of(one), one)}};
  Time over = 0;
  for (const memory::PassFootprint& held :
       memory::footprints_by_pass(configuration.model, configuration.strategy, configuration.gpu_of(one), one)) {
    const auto pass = passes.find(held.pass);
    const TimeRange when = pass == passes.end() ? TimeRange{over, over} : pass->second;
    const Time begin = std::max(over, when.begin);
    over = std::max(begin, when.end);
    course.push_back({begin, held.during});
    course.push_back({over, held.after});
  }
  return course;
}

}  // namespace manyworlds::core::step
