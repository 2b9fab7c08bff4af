#include "experiments/clusters/survey.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace manyworlds::experiments::clusters {
namespace {

using Neighbours = std::vector<std::vector<std::uint32_t>>;

Neighbours neighbours_of(const Fabric& fabric) {
  Neighbours result(fabric.switches.size());
  for (const Cable& cable : fabric.cables) {
    result[cable.a].push_back(cable.b);
    result[cable.b].push_back(cable.a);
  }
  return result;
}

/// Returns the distance of each switch from the nearest one with hosts, breadth first; unreachable ones are one tier
/// above all others. Switches to which only a few hosts are cabled beside many cables to leaves are leaves too.
std::vector<std::size_t> distances(const Fabric& fabric) {
  constexpr std::size_t kFar = SIZE_MAX;
  std::vector<std::size_t> tier(fabric.switches.size(), kFar);
  std::vector<std::uint32_t> queue;
  for (const Host& host : fabric.hosts)
    for (const Nic& nic : host.nics)
      if (tier[nic.attached_to] == kFar) tier[nic.attached_to] = 0, queue.push_back(nic.attached_to);
  const Neighbours neighbours = neighbours_of(fabric);
  std::size_t last = 0;
  for (std::size_t next = 0; next < queue.size(); ++next)
    for (const std::uint32_t other : neighbours[queue[next]])
      if (tier[other] == kFar) {
        tier[other] = last = tier[queue[next]] + 1;
        queue.push_back(other);
      }
  for (std::size_t& one : tier)
    if (one == kFar) one = last + 1;
  return tier;
}

void count_cables(const Fabric& fabric, const std::vector<std::size_t>& tier_of, Survey& survey) {
  std::vector<std::int64_t> up(fabric.switches.size(), 0);
  for (const Host& host : fabric.hosts)
    for (const Nic& nic : host.nics) {
      ++survey.tiers[tier_of[nic.attached_to]].cables_down;
      survey.tiers[tier_of[nic.attached_to]].gbps_down += nic.gbps;
    }
  for (const Cable& cable : fabric.cables) {
    const bool a_below = tier_of[cable.a] <= tier_of[cable.b];
    const std::uint32_t lower = a_below ? cable.a : cable.b, upper = a_below ? cable.b : cable.a;
    if (tier_of[lower] == tier_of[upper]) {
      ++survey.tiers[tier_of[lower]].inside;
      continue;
    }
    ++up[lower];
    ++survey.tiers[tier_of[lower]].cables_up, survey.tiers[tier_of[lower]].gbps_up += cable.gbps;
    ++survey.tiers[tier_of[upper]].cables_down, survey.tiers[tier_of[upper]].gbps_down += cable.gbps;
  }
  for (Tier& tier : survey.tiers) {
    std::vector<std::int64_t> counts;
    for (const std::uint32_t one : tier.switches) counts.push_back(up[one]);
    tier.usual_up = usual_value(counts);
    tier.unlike = std::count_if(counts.begin(), counts.end(), [&](std::int64_t n) { return n < tier.usual_up; });
  }
}

/// Counts the missing cables between two tiers: of pairs, where most pairs have as many; otherwise of each switch, by
/// what most have.
void add_missing(const Fabric& fabric, const std::vector<std::size_t>& tier_of, std::size_t low, Survey& survey) {
  const Tier &lower = survey.tiers[low], &upper = survey.tiers[low + 1];
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> pairs;
  std::map<std::uint32_t, std::int64_t> up;
  for (const Cable& cable : fabric.cables) {
    const auto [a, b] = tier_of[cable.a] < tier_of[cable.b] ? std::pair(cable.a, cable.b) : std::pair(cable.b, cable.a);
    if (tier_of[a] == low && tier_of[b] == low + 1) ++pairs[{a, b}], ++up[a];
  }
  const std::size_t all = lower.switches.size() * upper.switches.size();
  std::vector<std::int64_t> counts;
  for (const auto& [pair, count] : pairs) counts.push_back(count);
  const std::int64_t usual = usual_value(counts);
  const auto places = [&](const std::string& where, std::int64_t count, std::int64_t of) {
    if (count >= of) return;
    survey.missing.count += of - count;
    survey.missing.places.push_back(fmt::format("{}: {} of {}", where, count, of));
  };
  const std::string from = tier_name(low), to = tier_name(low + 1);
  if (pairs.size() * 4 >= all * 3) {
    survey.missing.rule += fmt::format("{}each of the {} has {} cables to each of the {}",
                                       survey.missing.rule.empty() ? "" : "; ", from, usual, to);
    for (const std::uint32_t a : lower.switches)
      for (const std::uint32_t b : upper.switches)
        places(fmt::format("{} to {}", fabric.switches[a].name, fabric.switches[b].name),
               pairs.count({a, b}) > 0 ? pairs.at({a, b}) : 0, usual);
    return;
  }
  survey.missing.rule += fmt::format("{}each of the {} has {} cables to the {}",
                                     survey.missing.rule.empty() ? "" : "; ", from, lower.usual_up, to);
  for (const std::uint32_t a : lower.switches) places(fabric.switches[a].name, up[a], lower.usual_up);
}

/// Finds rails: the k-th NIC of most hosts on a leaf is on that leaf for all of them.
void find_rails(const Fabric& fabric, Survey& survey) {
  std::map<std::uint32_t, std::map<std::int64_t, std::int64_t>> indices;  // by leaf: how many NICs of each number
  for (const Host& host : fabric.hosts) {
    if (!is_complete(fabric, host)) continue;
    for (std::size_t i = 0; i < host.nics.size(); ++i)
      ++indices[host.nics[i].attached_to][static_cast<std::int64_t>(i)];
  }
  std::map<std::uint32_t, std::int64_t> rail_of;
  std::int64_t on_rail = 0, all = 0;
  std::set<std::int64_t> rails;
  for (const auto& [leaf, counts] : indices) {
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    rail_of[leaf] = most->first;
    rails.insert(most->first);
    on_rail += most->second;
    for (const auto& [index, count] : counts) all += count;
  }
  const bool by_rail = fabric.nics_per_host > 1 && static_cast<std::int64_t>(rails.size()) == fabric.nics_per_host &&
                       on_rail * 10 >= all * 9;
  if (!by_rail) {
    survey.rail_rule = "NICs of a host share leaves, or are alone: the fabric has no rails";
    return;
  }
  survey.rails = fabric.nics_per_host;
  survey.rail_rule =
      fmt::format("NICs of a host in the order of their names are rail 0 to {}; so cabled are {} of {} NICs",
                  survey.rails - 1, on_rail, all);
  for (const Host& host : fabric.hosts) {
    if (!is_complete(fabric, host)) continue;
    std::vector<std::string> wrong;
    for (std::size_t i = 0; i < host.nics.size(); ++i)
      if (const std::int64_t rail = rail_of.at(host.nics[i].attached_to); rail != static_cast<std::int64_t>(i))
        wrong.push_back(fmt::format("{} on {}, of rail {}",
                                    host.nics[i].name.empty() ? fmt::format("NIC {}", i) : host.nics[i].name,
                                    fabric.switches[host.nics[i].attached_to].name, rail));
    if (!wrong.empty()) survey.crossed.push_back(fmt::format("{}: {}", host.name, fmt::join(wrong, "; ")));
  }
}

void add_rates(const Fabric& fabric, Survey& survey) {
  std::map<double, std::int64_t> nics, cables;
  for (const Host& host : fabric.hosts)
    for (const Nic& nic : host.nics) ++nics[nic.gbps];
  for (const Cable& cable : fabric.cables) ++cables[cable.gbps];
  const auto add = [&](const auto& counts, const char* what) {
    for (const auto& [gbps, count] : counts)
      survey.rates.push_back(gbps > 0 ? fmt::format("{} {} of {} Gb/s", count, what, gbps)
                                      : fmt::format("{} {} of unknown rate", count, what));
  };
  add(nics, "NICs");
  add(cables, "cables between switches");
}

std::string some_of(const std::vector<std::string>& all, std::size_t shown) {
  const std::vector<std::string> first(all.begin(),
                                       all.begin() + static_cast<std::ptrdiff_t>(std::min(shown, all.size())));
  return fmt::format("{}{}", fmt::join(first, ", "),
                     all.size() > shown ? fmt::format(", and {} more (--all)", all.size() - shown) : "");
}

std::string row(const std::string& name, const std::string& text) {
  return fmt::format("  {:<11} {}\n", name, text);
}

std::string tier_text(const Tier& tier, bool has_hosts, bool is_top) {
  std::string text =
      fmt::format("{} switches, {} cables {}", tier.switches.size(), tier.cables_down, has_hosts ? "to hosts" : "down");
  if (!is_top) text += fmt::format(", {} up", tier.cables_up);
  if (tier.inside > 0) text += fmt::format(", {} among themselves", tier.inside);
  if (!is_top && tier.gbps_up > 0 && tier.gbps_down > 0)
    text += fmt::format("; {:.0f} Gb/s down over {:.0f} up: oversubscription {:.2f}", tier.gbps_down, tier.gbps_up,
                        tier.gbps_down / tier.gbps_up);
  if (tier.unlike > 0) text += fmt::format("; {} have fewer than the usual {} up", tier.unlike, tier.usual_up);
  return text;
}

}  // namespace

std::string tier_name(std::size_t tier) {
  constexpr std::array<const char*, 3> kNames{"leaves", "spines", "cores"};
  return tier < kNames.size() ? kNames[tier] : fmt::format("tier {}", tier + 1);
}

Survey survey_of(const Fabric& fabric) {
  Survey survey;
  for (const Host& host : fabric.hosts) {
    survey.nics += static_cast<std::int64_t>(host.nics.size());
    if (is_complete(fabric, host))
      ++survey.complete_hosts;
    else
      survey.incomplete.push_back(fmt::format("{} ({} NICs)", host.name, host.nics.size()));
  }
  const std::vector<std::size_t> tier_of = distances(fabric);
  for (std::uint32_t i = 0; i < tier_of.size(); ++i) {
    if (tier_of[i] >= survey.tiers.size()) survey.tiers.resize(tier_of[i] + 1);
    survey.tiers[tier_of[i]].switches.push_back(i);
  }
  count_cables(fabric, tier_of, survey);
  for (std::size_t low = 0; low + 1 < survey.tiers.size(); ++low) add_missing(fabric, tier_of, low, survey);
  find_rails(fabric, survey);
  add_rates(fabric, survey);
  return survey;
}

std::string survey_text(const Fabric& fabric, const Survey& survey, std::size_t shown) {
  std::string text = row("hosts", fmt::format("{}, {} with all {} NICs", fabric.hosts.size(), survey.complete_hosts,
                                              fabric.nics_per_host));
  if (!survey.incomplete.empty())
    text += row("incomplete",
                fmt::format("{} hosts, not used: {}", survey.incomplete.size(), some_of(survey.incomplete, shown)));
  std::string nics = fmt::format("{} on hosts", survey.nics);
  if (fabric.unnamed_nics > 0) nics += fmt::format(", {} of no known host", fabric.unnamed_nics);
  if (fabric.switch_internal > 0) nics += fmt::format(", {} inside switches (they reduce)", fabric.switch_internal);
  text += row("NICs", nics);
  for (std::size_t tier = 0; tier < survey.tiers.size(); ++tier)
    text += row(tier_name(tier), tier_text(survey.tiers[tier], tier == 0, tier + 1 == survey.tiers.size()));
  text += row("rates", fmt::format("{}", fmt::join(survey.rates, ", ")));
  text += row("rails", survey.rails > 0 ? fmt::format("{}: {}", survey.rails, survey.rail_rule) : survey.rail_rule);
  if (!survey.crossed.empty())
    text += row("crossed", fmt::format("{} hosts: {}", survey.crossed.size(), some_of(survey.crossed, shown)));
  std::int64_t down_ports = 0;
  for (const Switch& one : fabric.switches) down_ports += one.down_ports;
  if (survey.missing.count > 0)
    text += row("missing", fmt::format("{} cables, if {}: {}", survey.missing.count, survey.missing.rule,
                                       some_of(survey.missing.places, shown)));
  else if (!survey.missing.rule.empty())
    text += row("missing", fmt::format("no cable: {}", survey.missing.rule));
  if (down_ports > 0) text += row("down", fmt::format("{} ports without a cable that is up", down_ports));
  for (const std::string& note : fabric.notes) text += row("note", note);
  return text;
}

}  // namespace manyworlds::experiments::clusters
