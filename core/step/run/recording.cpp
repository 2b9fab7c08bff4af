#include "core/step/run/recording.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "core/base/error.hpp"

namespace manyworlds::core::step {
namespace {

/// A collective's bytes on one of the links that are looked at, and when.
struct Stretch {
  Time begin = 0, end = 0;
  double bytes_per_second = 0;
};

/// Rates of stretches that overlap, added up anew at every change, so that what is over leaves nothing behind.
std::vector<std::pair<Time, double>> sum_of(const std::vector<Stretch>& stretches) {
  struct Change {
    Time at;
    bool begins;
    std::size_t stretch;
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    changes.push_back({stretches[i].begin, true, i});
    changes.push_back({stretches[i].end, false, i});
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.at != b.at ? a.at < b.at : a.stretch < b.stretch; });
  std::vector<std::size_t> under_way;  // ascending
  std::vector<std::pair<Time, double>> rates;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const auto place = std::lower_bound(under_way.begin(), under_way.end(), changes[i].stretch);
    changes[i].begins ? under_way.insert(place, changes[i].stretch) : under_way.erase(place);
    if (i + 1 < changes.size() && changes[i + 1].at == changes[i].at) continue;
    double sum = 0;
    for (const std::size_t stretch : under_way) sum += stretches[stretch].bytes_per_second;
    rates.emplace_back(changes[i].at, sum);
  }
  return rates;
}

struct Extent {
  Time begin = std::numeric_limits<Time>::max(), end = 0;
};

/// From the first kernel of each pass to the end of its last.
std::map<workload::Slot, Extent> passes_of(const workload::Program& program, const stream::Record& record) {
  std::map<workload::Slot, Extent> passes;
  for (const stream::Span& span : record.spans) {
    const workload::Op& op = program.ops[span.op];
    const workload::Slot* pass = op.stream == workload::Stream::compute ? program.pass_of(op) : nullptr;
    if (pass == nullptr) continue;
    Extent& extent = passes[*pass];
    extent.begin = std::min(extent.begin, span.begin);
    extent.end = std::max(extent.end, span.end);
  }
  return passes;
}

}  // namespace

std::vector<LinkCourse> busiest_links(const World& world, const Recording& recording, std::size_t most) {
  const network::Graph& graph = world.layout().graph();
  std::vector<std::int64_t> times(world.uses().size(), 0);  // instances of each use
  for (std::uint32_t instance = 0; instance < world.instances(); ++instance) ++times[world.use_number(instance)];
  std::vector<Time> busy(graph.links.size(), 0);
  for (std::size_t use = 0; use < times.size(); ++use)
    for (const auto& [link, one] : world.uses()[use].busy) busy[link] += one * times[use];

  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < busy.size(); ++link)
    if (busy[link] > 0) links.push_back(link);
  std::stable_sort(links.begin(), links.end(), [&](std::uint32_t a, std::uint32_t b) { return busy[a] > busy[b]; });
  links.resize(std::min(links.size(), most));
  std::map<std::uint32_t, std::size_t> place;
  std::vector<LinkCourse> courses;
  for (const std::uint32_t link : links) {
    place[link] = courses.size();
    courses.push_back({link, 0, {}});
  }

  std::vector<std::vector<std::pair<std::size_t, std::int64_t>>> bytes_of(times.size());  // on them, by use
  LinkLoads carried(world.transport(), graph);
  for (std::size_t use = 0; use < times.size(); ++use)
    for (const auto& [link, bytes] : carried.of(world.uses()[use]).on_network)
      if (const auto at = place.find(link); at != place.end()) bytes_of[use].emplace_back(at->second, bytes);
  std::vector<std::vector<Stretch>> stretches(courses.size());
  for (std::uint32_t instance = 0; instance < world.instances(); ++instance)
    for (const auto& [link, bytes] : bytes_of[world.use_number(instance)]) {
      const Course& course = recording.courses[instance];
      const Time begin = world.use_of(instance).dag->switches.empty() ? course.second : course.first;
      MANYWORLDS_CHECK(begin < course.ended, "collective {} has {} B to carry from {} to {}", instance, bytes, begin,
                       course.ended);
      stretches[link].push_back({begin, course.ended, static_cast<double>(bytes) / seconds(course.ended - begin)});
      courses[link].bytes += bytes;
    }
  for (std::size_t link = 0; link < courses.size(); ++link) courses[link].rates = sum_of(stretches[link]);
  return courses;
}

std::vector<MemoryAt> memory_over_time(const World& world, const Recording& recording, const Recording::Rank& rank) {
  const Configuration& of = world.configuration();
  const std::uint32_t number = world.layout().class_of(rank.rank);
  const workload::RankClass& one = world.layout().classes()[number];
  const auto passes = passes_of(world.programs()[number], recording.records[rank.record]);
  std::vector<MemoryAt> course{{0, memory::held_at_rest(of.model, of.strategy, of.gpu_of(one), one)}};
  Time over = 0;
  for (const memory::Held& held : memory::held_by_passes(of.model, of.strategy, of.gpu_of(one), one)) {
    const auto pass = passes.find(held.pass);
    const Extent when = pass == passes.end() ? Extent{over, over} : pass->second;
    const Time begin = std::max(over, when.begin);
    over = std::max(begin, when.end);
    course.push_back({begin, held.during});
    course.push_back({over, held.after});
  }
  return course;
}

}  // namespace manyworlds::core::step
