#include "experiments/phases/pool_clusters.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/plural.hpp"

namespace manyworlds::experiments::phases {
namespace {

constexpr const char *kCluster = "cluster", *kNodes = "cluster.nodes", *kPerNode = "cluster.gpus_per_node";
constexpr const char *kTensor = "strategy.tp", *kPipeline = "strategy.pp", *kContext = "strategy.cp";

}  // namespace

std::string counted(std::int64_t count, const char* what) {
  return fmt::format("{} {}", count, core::plural(static_cast<std::uint64_t>(count), what));
}

void fail_at(const Phase& phase, const import::Node& at, const std::string& what) {
  at.fail(fmt::format("phase '{}': {}", phase.name, what));
}

std::int64_t gpus_of(const Settings& settings) {
  std::int64_t gpus = 0;
  for (const char* nodes : {"cluster", "cluster.second", "cluster.third"}) {
    const std::int64_t own = integer_of(settings, std::string(nodes) + ".nodes", 0);
    gpus += own * integer_of(settings, std::string(nodes) + ".gpus_per_node", integer_of(settings, kPerNode, 1));
  }
  return gpus;
}

DerivedSettings part_of_cluster(const PhasesFile& file, const Phase& phase, const Settings& settings,
                                std::int64_t gpus) {
  const Pool& pool = file.pools[phase.pool];
  const std::int64_t per_node = integer_of(settings, kPerNode, 1);
  const std::string origin = fmt::format("pool '{}' of {}", pool.name, counted(gpus, "GPU"));
  const auto refuse_part = [&](const std::string& what) {
    throw core::InputError(fmt::format("{}: {}", origin, what), file.file, pool.line);
  };
  if (settings.has_below("cluster.second") || !settings.text("cluster.node_list").empty())
    refuse_part("the cluster has nodes of several kinds, or is a list of hosts, of which no part can be taken");
  DerivedSettings part(phase.place);
  if (gpus % per_node == 0)
    part.set(kNodes, gpus / per_node, origin);
  else if (gpus < per_node && per_node % gpus == 0)
    part.set(kNodes, 1, origin).set(kPerNode, gpus, origin);
  else
    refuse_part(fmt::format("must be whole nodes of {} GPUs, or a part that divides one", per_node));
  return part;
}

DerivedSettings cluster_of_pool(const PhasesFile& file, const Phase& phase, const WrittenSettings& written,
                                std::int64_t gpus) {
  const std::int64_t own = gpus_of(written.settings());
  if (own == gpus) return DerivedSettings(phase.place);
  for (const char* key : {kNodes, kPerNode, kCluster})
    if (written.change_says(key))
      fail_at(phase, written.place_of({key}, phase.place),
              fmt::format("its cluster has {} GPUs, and pool '{}' has {}", own, file.pools[phase.pool].name, gpus));
  return part_of_cluster(file, phase, written.settings(), gpus);
}

std::int64_t replicas_on(const PhasesFile& file, const Phase& phase, const WrittenSettings& written,
                         std::int64_t gpus) {
  const Settings& settings = written.settings();
  const std::int64_t tp = integer_of(settings, kTensor, 1), pp = integer_of(settings, kPipeline, 1),
                     cp = integer_of(settings, kContext, 1);
  if (gpus % (tp * pp * cp) != 0)
    fail_at(phase, written.place_of({kTensor, kPipeline, kContext}, phase.place),
            fmt::format("its strategy of tp {} x pp {} x cp {} must divide the {} of pool '{}'", tp, pp, cp,
                        counted(gpus, "GPU"), file.pools[phase.pool].name));
  return gpus / (tp * pp * cp);
}

}  // namespace manyworlds::experiments::phases
