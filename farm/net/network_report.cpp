#include "farm/net/network_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/escape.hpp"
#include "core/collective/library/bus_bandwidth.hpp"
#include "experiments/faults/failed_cables.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using io::group_digits;

using core::Time;
using core::collective::bus_gb_per_s;
using core::network::LinkLoad;
using Json = nlohmann::ordered_json;

constexpr std::size_t kListedLinks = 5;  // number of links in a summary

double ns_per_hop(const NetworkRun& run, std::int64_t hops) {
  return hops > 0 ? run.cpu_s * 1e9 / static_cast<double>(hops) : 0;
}

double share_of(const LinkLoad& load, const NetworkRun& run) {
  return static_cast<double>(load.busy_ps) / static_cast<double>(std::max<Time>(1, run.carried_ps));
}

/// Returns the links that carried packets, the busiest first.
std::vector<std::uint32_t> by_load(const NetworkRun& run) {
  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < run.loads.size(); ++link)
    if (run.loads[link].packets > 0) links.push_back(link);
  std::stable_sort(links.begin(), links.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return run.loads[a].busy_ps > run.loads[b].busy_ps; });
  return links;
}

Json json_of(const CompletionTimes& times) {
  return {{"min", times.min}, {"mean", times.mean}, {"p50", times.p50}, {"p99", times.p99}, {"max", times.max}};
}

std::string in_us(double ps) {
  return fmt::format("{:.3f} us", ps / static_cast<double>(core::kMicrosecond));
}
std::string in_us(Time ps) {
  return in_us(static_cast<double>(ps));
}
/// Returns how many link-hops were taken from the cache, less those that were simulated for nothing: what a component
/// of flows did after the moment at which another flow joined it is discarded and simulated again.
std::int64_t spared_hops(const NetworkRun& run) {
  return run.counters.link_hops - run.computed.all();
}
std::int64_t cached_hops(const NetworkRun& run) {
  return std::max<std::int64_t>(0, spared_hops(run));
}
std::int64_t repeated_hops(const NetworkRun& run) {
  return std::max<std::int64_t>(0, -spared_hops(run));
}

std::string in_us(const CompletionTimes& times) {
  return fmt::format("  min {}  mean {}  p50 {}  p99 {}  max {}\n", in_us(times.min), in_us(times.mean),
                     in_us(times.p50), in_us(times.p99), in_us(times.max));
}

}  // namespace

std::string NetworkReport::json() const {
  Json object{{shape != nullptr ? "members" : "flows", run.ends.size()},
              {"completion_ps", json_of(completion_times_of(run))},
              {"end_ps", run.end()},
              {"fidelity", analytic() ? "analytic" : "packet"},
              {"cpu_s", run.cpu_s}};
  if (!run.acknowledged.empty()) object["acknowledged_ps"] = json_of(acknowledgement_times_of(run));
  if (!analytic())
    object.update({{"ecn_marks", run.counters.ecn_marks},
                   {"pauses", run.counters.pauses},
                   {"drops", run.counters.drops},
                   {"trims", run.counters.trims},
                   {"retransmissions", run.counters.retransmissions},
                   {"link_hops", run.counters.link_hops},
                   {"link_hops_simulated", run.computed.simulated},
                   {"link_hops_simulated_again", repeated_hops(run)},
                   {"link_hops_skipped_cached", cached_hops(run)},
                   {"link_hops_skipped_periods", run.computed.periods},
                   {"link_hops_skipped_rate", run.computed.rate},
                   {"ns_per_link_hop", ns_per_hop(run, run.counters.link_hops)},
                   {"ns_per_link_hop_simulated", ns_per_hop(run, run.computed.simulated)}});
  if (const auto cables = experiments::failed_cables(failures, graph); !cables.empty()) {
    object["failed_cables"] = experiments::failed_cables_json(cables, run.end());
    object["packets_lost"] = run.counters.lost;
  }
  if (shape != nullptr) object["collective"] = shape->text(), object["bus_gb_per_s"] = bus_gb_per_s(*shape, run.end());
  if (shape != nullptr) object["collectives_calibrated"] = calibrated;
  if (!tuner.empty()) object["collectives_tuner"] = tuner;
  const std::vector<std::string> names = link_names(graph);
  Json links = Json::array();
  for (const std::uint32_t link : by_load(run)) {
    const LinkLoad& load = run.loads[link];
    links.push_back({{"link", names[link]},
                     {"packets", load.packets},
                     {"bytes", load.bytes},
                     {"busy_ps", load.busy_ps},
                     {"busy_share", share_of(load, run)}});
  }
  object["links"] = std::move(links);
  return object.dump(1) + "\n";
}

std::string NetworkReport::text() const {
  std::string text = shape != nullptr ? shape->text() + ", completion of its members"
                                      : fmt::format("{} flows, completion times", run.ends.size());
  text += analytic() ? ", at least (alone on their links)\n" : "\n";
  text += in_us(completion_times_of(run));
  if (!run.acknowledged.empty())
    text += "until the sender has the last acknowledgement\n" + in_us(acknowledgement_times_of(run));
  if (shape != nullptr) text += fmt::format("bus bandwidth {:.3f} GB/s\n", bus_gb_per_s(*shape, run.end()));
  if (shape != nullptr && calibrated != "no") text += fmt::format("library calibrated: {}\n", calibrated);
  if (!tuner.empty()) text += fmt::format("chosen by {}\n", tuner);
  const std::vector<std::string> names = link_names(graph);
  const std::vector<std::uint32_t> links = by_load(run);
  text += fmt::format("{} links used; the busiest, by the share of the time in which they send:\n", links.size());
  for (std::size_t i = 0; i < std::min(kListedLinks, links.size()); ++i)
    text += fmt::format("  {:5.1f} %  {}\n", 100 * share_of(run.loads[links[i]], run), names[links[i]]);
  text += fmt::format("{} packets marked, {} pauses, {} drops", run.counters.ecn_marks, run.counters.pauses,
                      run.counters.drops);
  if (run.counters.trims + run.counters.retransmissions > 0)
    text += fmt::format(", {} trimmed, {} sent again", run.counters.trims, run.counters.retransmissions);
  text += "\n";
  if (const auto cables = experiments::failed_cables(failures, graph); !cables.empty())
    text += "failed: " +
            experiments::failed_cables_text(cables, run.end(), shape != nullptr ? "the collective" : "the last flow",
                                            run.counters.lost, run.counters.retransmissions) +
            "\n";
  text += fmt::format("link-hops: {} of {} simulated", group_digits(static_cast<double>(run.computed.simulated)),
                      group_digits(static_cast<double>(run.counters.link_hops)));
  if (repeated_hops(run) > 0)
    text += fmt::format(" ({} of them again, as flows met)", group_digits(static_cast<double>(repeated_hops(run))));
  if (run.computed.simulated < run.counters.link_hops) text += "; the rest reused";
  text += fmt::format("; {:.3f} s of CPU, {:.1f} ns for a simulated one\n", run.cpu_s,
                      ns_per_hop(run, run.computed.simulated));
  return text;
}

std::string NetworkReport::links_csv() const {
  const std::vector<std::string> names = link_names(graph);
  std::string text = "link,packets,bytes,busy_ps,busy_share\n";
  for (std::size_t link = 0; link < run.loads.size(); ++link)
    if (const LinkLoad& load = run.loads[link]; load.packets > 0)
      text += fmt::format("{},{},{},{},{:.6f}\n", core::csv_field(names[link]), load.packets, load.bytes, load.busy_ps,
                          share_of(load, run));
  return text;
}

std::string flows_csv(const NetworkRun& run, const std::vector<experiments::import::Flow>& flows) {
  const bool acknowledged = !run.acknowledged.empty();
  std::string text = fmt::format("src,dst,bytes,start_ps,end_ps{}\n", acknowledged ? ",acknowledged_ps" : "");
  for (std::size_t i = 0; i < flows.size(); ++i) {
    text += fmt::format("{},{},{},{},{}", flows[i].source, flows[i].destination, flows[i].bytes, flows[i].start_ps,
                        run.ends[i]);
    if (acknowledged) text += fmt::format(",{}", run.acknowledged[i]);
    text += '\n';
  }
  return text;
}

std::string members_csv(const NetworkRun& run) {
  std::string text = "gpu,end_ps\n";
  for (std::size_t i = 0; i < run.ends.size(); ++i) text += fmt::format("{},{}\n", i, run.ends[i]);
  return text;
}

std::string AstraSimReport::json() const {
  Json object{{"model", "astra-sim"},
              {"collective", shape.text()},
              {"hops", path.hops},
              {"congestion_unaware_ps", times.unaware_ps},
              {"congestion_aware_ps", times.aware_ps}};
  if (packets != nullptr) object["packet_ps"] = packets->end();
  return object.dump(1) + "\n";
}

std::string AstraSimReport::text() const {
  std::string text = shape.text() + ", as ASTRA-sim's analytical backends have it\n";
  text +=
      fmt::format("congestion-unaware  {}\ncongestion-aware    {}\n", in_us(times.unaware_ps), in_us(times.aware_ps));
  if (packets != nullptr) text += fmt::format("packet by packet    {}\n", in_us(packets->end()));
  return text;
}

}  // namespace manyworlds::farm
