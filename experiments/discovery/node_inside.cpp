#include "experiments/discovery/node_inside.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/base/error.hpp"
#include "experiments/text/json.hpp"

namespace manyworlds::experiments::clusters {

double keep_fast_nics(NodeInside& node) {
  double fastest = 0;
  for (const NodeNic& nic : node.nics) fastest = std::max(fastest, nic.gbps);
  const auto slow = [&](const NodeNic& nic) { return nic.gbps > 0 && nic.gbps * 2 < fastest; };
  std::vector<std::string> names;
  for (const NodeNic& nic : node.nics)
    if (slow(nic)) names.push_back(fmt::format("{} ({} Gb/s)", nic.name, nic.gbps));
  if (!names.empty())
    node.notes.push_back(fmt::format("{} are too slow beside NICs of {} Gb/s to be for GPUs; they are left out",
                                     fmt::join(names, ", "), fastest));
  std::erase_if(node.nics, slow);
  return fastest;
}

std::string node_text(const NodeInside& node) {
  std::string text = fmt::format("  {:<11} {} GPUs", "node", node.gpus);
  if (node.compute_capability > 0) text += fmt::format(" of sm_{}", node.compute_capability);
  if (node.nvlinks > 0) text += fmt::format(", {} NVLinks each", node.nvlinks);
  std::map<double, int> rates;
  for (const NodeNic& nic : node.nics) ++rates[nic.gbps];
  for (const auto& [gbps, count] : rates)
    text +=
        gbps > 0 ? fmt::format(", {} NICs of {} Gb/s", count, gbps) : fmt::format(", {} NICs of unknown rate", count);
  text += "\n";
  std::map<std::pair<std::size_t, int>, int> shapes;  // GPUs and NICs of a PCIe switch
  std::map<std::vector<std::int64_t>, int> switches;
  for (const NodeNic& nic : node.nics) ++switches[nic.near];
  for (const auto& [gpus, nics] : switches)
    if (!gpus.empty()) ++shapes[{gpus.size(), nics}];
  for (const auto& [shape, count] : shapes)
    text +=
        fmt::format("  {:<11} {} x {} GPUs and {} NICs below one switch\n", "PCIe", count, shape.first, shape.second);
  for (const std::string& note : node.notes) text += fmt::format("  {:<11} {}\n", "note", note);
  return text;
}

bool is_netq_nodes(std::string_view text) {
  return text.find("\"GpuIDList\"") != text.npos;
}

// NetQ (NMX): a list of compute nodes, each with the GPUs and the NVLink domain that it has.
NodeInside parse_netq_nodes(std::string_view text, const std::string& name) {
  const nlohmann::json document = import::parse_json(text, name);
  NodeInside result;
  result.format = "netq-nodes";
  std::map<std::string, std::int64_t> domains;
  std::int64_t nodes = 0;
  try {
    import::JsonView(document).for_each([&](const import::JsonView& node) {
      const auto gpus = static_cast<std::int64_t>(node.at("GpuIDList").size());
    if (++nodes > 1 && gpus != result.gpus)
      throw core::InputError(
          fmt::format("node {} has {} GPUs, the one before {}; a cluster has one number", nodes, gpus, result.gpus));
    result.gpus = gpus;
    ++domains[node.at("DomainUUID").text()];
  });
}
catch (const core::InputError& error) {
  throw core::InputError(error.what(), name, 1);
}
if (result.gpus == 0) throw core::InputError("lists no GPU", name, 1);
for (const auto& [domain, count] : domains)
  result.notes.push_back(fmt::format("{} nodes are one NVLink domain ({})", count, domain));
return result;
}  // namespace manyworlds::experiments::clusters

}  // namespace manyworlds::experiments::clusters
