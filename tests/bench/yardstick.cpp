// The packet engine beside the plain one that is its oracle in the tests, in one process: flows of a file
// (src,dst,bytes, all at once) on a three-tier fat tree with hashed ECMP, nanoseconds of CPU per link-hop of both, and
// their ratio.
//
//     yardstick --flows FILE.csv --hosts N [--least RATIO]
//
// Exit 1 if a completion time differs, or a ratio is below the least one.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "core/network/flows/flows.hpp"
#include "core/network/transports/dcqcn.hpp"
#include "core/network/transports/static_window.hpp"
#include "experiments/import/flows.hpp"
#include "io/process/cpu_time.hpp"
#include "tests/core/network/reference_engine.hpp"
#include "tests/topologies/collectives_on_fabrics.hpp"

using namespace manyworlds;
using namespace manyworlds::core;
using namespace manyworlds::core::network;
using io::cpu_s;
using manyworlds::tests::ReferenceEngine;
using manyworlds::tests::ReferenceFlow;

namespace {

struct Problem {
  std::vector<LinkSpec> links;
  std::vector<ReferenceFlow> flows;
};

Problem read(const std::string& path, std::int64_t hosts) {
  // The k-ary fat tree: k/2 hosts to a leaf, k/2 leaves to a pod.
  const auto half = static_cast<std::int64_t>(std::lround(std::cbrt(static_cast<double>(hosts) / 2)));
  const auto graph =
      tests::fabric("fat_tree", {{"tiers", std::int64_t{3}}, {"leaf_hosts", half}, {"pod_leaves", half}}, hosts, 1);
  Router router(graph, Routing::ecmp_hash, 1);
  Problem result;
  for (std::uint32_t link = 0; link < graph->links.size(); ++link) result.links.push_back(spec_of(*graph, link));
  for (const auto& flow : experiments::import::read_flows(path, graph->gpus)) {
    const std::uint64_t number = result.flows.size();
    result.flows.push_back({router.route(flow.source, flow.destination, number), flow.bytes, 0, number});
  }
  if (result.flows.empty()) throw std::runtime_error(path + ": no flows");
  return result;
}

struct Run {
  std::vector<Time> ends;
  double ns_per_hop = 0;
};

template <class P>
Run run_reference(const Problem& problem, const Transport& transport, const typename P::Parameters& parameters,
                  bool marks) {
  const double begin = cpu_s();
  ReferenceEngine<P> engine(transport, parameters, marks, problem.links, problem.flows);
  Run result;
  result.ends = engine.run();
  result.ns_per_hop = 1e9 * (cpu_s() - begin) / static_cast<double>(engine.link_hops);
  return result;
}

Run run_engine(const Problem& problem, const Transport& transport) {
  const double begin = cpu_s();
  const auto flows = make_plain_flows(transport);
  for (const LinkSpec& spec : problem.links) flows->add_link(spec);
  flows->set_tie_order({0});
  for (std::uint32_t i = 0; i < problem.flows.size(); ++i)
    flows->start({0, i}, flows->add_route(problem.flows[i].route), problem.flows[i].bytes);
  Run result;
  result.ends.resize(problem.flows.size());
  for (std::vector<FlowId> finished; !flows->drained(); finished.clear()) {
    flows->advance(kNever, finished);
    for (const FlowId id : finished) result.ends[id.transfer] = flows->now();
  }
  result.ns_per_hop = 1e9 * (cpu_s() - begin) / static_cast<double>(flows->counters().link_hops);
  return result;
}

template <class P>
bool show(const Problem& problem, const std::string& kind, const typename P::Parameters& parameters, bool marks,
          double least) {
  Transport transport;
  transport.kind = kind;
  transport.routing = Routing::ecmp_hash;
  const Run fast = run_engine(problem, transport);
  const Run plain = run_reference<P>(problem, transport, parameters, marks);
  const double ratio = plain.ns_per_hop / fast.ns_per_hop;
  fmt::print("{:14} {:>6} flows: reference {:8.1f} ns/hop, packet engine {:6.1f} ns/hop, ratio {:5.1f}, answers {}\n",
             kind, problem.flows.size(), plain.ns_per_hop, fast.ns_per_hop, ratio,
             plain.ends == fast.ends ? "same" : "DIFFERENT");
  return plain.ends == fast.ends && ratio >= least;
}

}  // namespace

int main(int count, char** words) try {
  std::string path;
  std::int64_t hosts = 0;
  double least = 0;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i];
    if (word == "--flows") path = words[i + 1];
    if (word == "--hosts") hosts = std::atoll(words[i + 1]);
    if (word == "--least") least = std::atof(words[i + 1]);
  }
  if (path.empty() || hosts <= 0) {
    fmt::print(stderr, "usage: yardstick --flows FILE.csv --hosts N [--least RATIO]\n");
    return 2;
  }
  const Problem problem = read(path, hosts);
  const bool window = show<StaticWindow>(problem, "static_window", {Transport{}.window_bytes}, false, least);
  const bool rate = show<Dcqcn>(problem, "dcqcn", {}, true, least);
  return window && rate ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "yardstick: {}\n", error.what());
  return 1;
}
