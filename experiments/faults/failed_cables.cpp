#include "experiments/faults/failed_cables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/plural.hpp"

namespace manyworlds::experiments {
namespace {

using core::network::Graph;
using core::network::Link;

constexpr std::size_t kListed = 4;  // cables of one instant that are named

/// Returns the name of a cable, given by its lower link.
std::string name_of(const Graph& graph, std::uint32_t link) {
  const Link& cable = graph.links[link];
  std::uint32_t parallel = 0, number = 0;
  for (std::uint32_t other = 0; other < graph.links.size(); other += 2) {
    const Link& at = graph.links[other];
    if (std::minmax(at.from, at.to) != std::minmax(cable.from, cable.to)) continue;
    if (other == link) number = parallel;
    ++parallel;
  }
  const std::string name = graph.names[cable.from] + "-" + graph.names[cable.to];
  return parallel > 1 ? fmt::format("{}#{}", name, number) : name;
}

std::string time_text(core::Time at) {
  const auto us = static_cast<double>(at) / static_cast<double>(core::kMicrosecond);
  return us < 1e3   ? fmt::format("{:g} us", us)
         : us < 1e6 ? fmt::format("{:g} ms", us / 1e3)
                    : fmt::format("{:g} s", us / 1e6);
}

/// Returns the names of cables from `first` on that fail at the instant of that one, and goes on to the next.
std::string names_from(const std::vector<FailedCable>& cables, std::size_t& first) {
  std::string names;
  const std::size_t begin = first;
  for (; first < cables.size() && cables[first].at == cables[begin].at; ++first)
    if (first - begin < kListed) names += (first == begin ? "" : ", ") + cables[first].name;
  if (first - begin > kListed) names += fmt::format(" and {} more", first - begin - kListed);
  return names;
}

}  // namespace

std::vector<FailedCable> failed_cables(const core::network::LinkFailures& failures, const Graph& graph) {
  std::vector<FailedCable> result;
  for (const auto& cable : failures.cables)
    result.push_back({name_of(graph, cable.link & ~1u), cable.at, cable.at + failures.reconvergence_ps});
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  return result;
}

std::string failed_cables_text(const std::vector<FailedCable>& cables, core::Time end, const std::string& what,
                               std::int64_t lost, std::int64_t sent_again) {
  std::string text;
  bool any = false;
  for (std::size_t next = 0; next < cables.size();) {
    const FailedCable& first = cables[next];
    text += (text.empty() ? "" : "; ") + names_from(cables, next) + " at " + time_text(first.at);
    if (first.at >= end)
      text += ", after the end of " + what + ": without effect";
    else if (first.avoided_at >= end)
      text += ", not avoided by its end";
    else
      text += ", avoided from " + time_text(first.avoided_at);
    any |= first.at < end;
  }
  if (any && lost >= 0)
    text += fmt::format("; {} {} lost, {} sent again", lost, core::plural(lost, "packet"), sent_again);
  return text;
}

nlohmann::ordered_json failed_cables_json(const std::vector<FailedCable>& cables, core::Time end) {
  auto result = nlohmann::ordered_json::array();
  for (const FailedCable& cable : cables)
    result.push_back({{"cable", cable.name},
                      {"at_s", core::seconds(cable.at)},
                      {"avoided_at_s", core::seconds(cable.avoided_at)},
                      {"before_the_end", cable.at < end}});
  return result;
}

}  // namespace manyworlds::experiments
