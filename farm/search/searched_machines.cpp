// The machines that a search is for.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "experiments/catalog/cluster_files.hpp"
#include "experiments/clusters/node_list.hpp"
#include "farm/search/catalog_values.hpp"
#include "farm/search/search_space.hpp"

namespace manyworlds::farm {
namespace {

constexpr std::int64_t kMaxServer = 16;  // GPUs; a node of more is a rack

const experiments::Catalog::Entries::value_type& cluster_of(const SearchOptions& options,
                                                            const experiments::Catalog& catalog) {
  if (!options.cluster.empty()) return catalog.find_named("clusters", options.cluster, source_node("--cluster"));
  const std::string& gpu = catalog.find_named("gpus", options.gpu, source_node("--gpu")).first;
  for (const auto& cluster : catalog.entries("clusters"))
    if (text_value(cluster.second, "gpu") == gpu) return cluster;
  throw core::InputError(fmt::format("no cluster of the catalog has {}; name one with --cluster", gpu), "--gpu");
}

/// Returns the one number that --set gives a key; nothing if it gives none, or values to search.
std::optional<std::int64_t> set_number(const SearchOptions& options, const std::string& key) {
  std::optional<std::int64_t> found;
  for (const std::string& one : options.set) {
    if (!one.starts_with(key + "=")) continue;
    found = core::number_in<std::int64_t>(std::string_view(one).substr(key.size() + 1));
    if (found && *found < 1) found.reset();
  }
  return found;
}

/// Returns GPUs of which nothing is known but how many there are, and how many in a node.
ClusterSpec nameless_machines(const SearchOptions& options) {
  if (!options.gpus) throw core::InputError("needs --gpus N, as it reads no cluster", "--symbolic");
  ClusterSpec result;
  result.gpu = "nameless-gpus";
  result.is_nameless = true;
  result.gpus_per_node = std::min(*options.gpus_per_node, *options.gpus);
  if (*options.gpus % result.gpus_per_node != 0)
    throw core::InputError(fmt::format("{} GPUs are no whole nodes of {}", *options.gpus, result.gpus_per_node),
                           "--gpus-per-node");
  result.nodes = *options.gpus / result.gpus_per_node;
  return result;
}

}  // namespace

bool is_set(const SearchOptions& options, const std::string& key) {
  return std::any_of(options.set.begin(), options.set.end(),
                     [&](const std::string& one) { return one.starts_with(key + "="); });
}

ClusterSpec machines_of(const SearchOptions& options, const experiments::Catalog& catalog) {
  if (options.gpus_per_node) return nameless_machines(options);
  const auto& [name, cluster] = cluster_of(options, catalog);
  ClusterSpec result{name,
                     text_value(cluster, "gpu"),
                     integer_value(cluster, "nodes", 1),
                     integer_value(cluster, "gpus_per_node", 8),
                     text_value(cluster, "fabric"),
                     options.node_list};
  if (experiments::is_cluster_file(options.cluster)) result.cluster = options.cluster;
  const std::string nodes_key = "cluster.nodes", size_key = "cluster.gpus_per_node";
  result.nodes = options.nodes.value_or(set_number(options, nodes_key).value_or(result.nodes));
  result.gpus_per_node = set_number(options, size_key).value_or(result.gpus_per_node);
  if (!options.node_list.empty()) {
    if (options.nodes || options.gpus)
      throw core::InputError("says how many nodes; leave --gpus and --nodes out", "--node-list");
    result.nodes = static_cast<std::int64_t>(experiments::clusters::expand_node_list(options.node_list).size());
  }
  if (!options.gpus) return result;
  if (options.nodes) throw core::InputError("says the same as --nodes; keep one", "--gpus");
  if (is_set(options, nodes_key)) throw core::InputError("says the same as --set cluster.nodes; keep one", "--gpus");
  const bool given_size = is_set(options, size_key);
  if (given_size && !set_number(options, size_key))
    throw core::InputError("needs one number in --set cluster.gpus_per_node; give --nodes to search several", "--gpus");
  if (!given_size && *options.gpus < result.gpus_per_node) result.gpus_per_node = *options.gpus;
  for (std::int64_t used = result.gpus_per_node; !given_size && used > kMaxServer && 2 * used > result.gpus_per_node;
       --used)
    if (*options.gpus % used == 0) {
      result.unused = result.gpus_per_node - used, result.gpus_per_node = used;
      break;
    }
  if (*options.gpus % result.gpus_per_node != 0)
    throw core::InputError(
        fmt::format("{} GPUs are no whole nodes of {}, which {} has; {} would be", *options.gpus, result.gpus_per_node,
                    given_size ? "--set" : name, (*options.gpus / result.gpus_per_node + 1) * result.gpus_per_node),
        "--gpus");
  result.nodes = *options.gpus / result.gpus_per_node;
  return result;
}

std::string unused_text(const ClusterSpec& machines) {
  if (machines.unused == 0) return "";
  return fmt::format("cluster.gpus_per_node={} (of the {} of each rack of {}, so that all racks have as many)",
                     machines.gpus_per_node, machines.gpus_per_node + machines.unused, machines.cluster);
}

std::string cluster_text(const ClusterSpec& machines) {
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  const std::string& name = machines.cluster;
  // Nothing depends on these values, which rules ask for: every format is supported, and any model fits.
  if (machines.is_nameless)
    return fmt::format(
        "{{nodes: {}, gpus_per_node: {}, nic_gbps: 1, gpu: {{matrix_tflops: 1, memory_gib: 1000000, memory_gb_per_s: "
        "1, "
        "compute_units: 1, scale_up_gb_per_s: 1, scale_up_domain: {}, precisions: {}}}}}",
        machines.nodes, machines.gpus_per_node, machines.gpus_per_node, "bf16+fp16+fp8+mxfp8+nvfp4");
  return fmt::format("{{like: {}, nodes: {}, gpus_per_node: {}{}}}",
                     experiments::is_cluster_file(name) ? quoted(name) : name, machines.nodes, machines.gpus_per_node,
                     machines.node_list.empty() ? "" : ", node_list: " + quoted(machines.node_list));
}

}  // namespace manyworlds::farm
