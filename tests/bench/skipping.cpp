// What the memory of clusters spares: ring all-reduces of 64 KiB per step on fabrics where no, a few or many of their
// transfers share links, alone and two at a time, GPUs in order and in any order. For each the link-hops
// transferred and simulated, CPU seconds with and without that memory, and whether both gave the same picoseconds.
//
//     skipping [--gpus 1024] [--chunk BYTES] [--full] [--only WORD]
//
// --full also runs every packet of every case, which takes minutes at 1,024 GPUs; exit 1 if an answer differs.
#include <fmt/format.h>

#include <cstring>

#include "io/process/cpu_time.hpp"
#include "tests/topologies/collectives_on_fabrics.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using io::cpu_s;

namespace {

struct Options {
  std::int64_t gpus = 1024, chunk = 64 << 10;
  bool full = false;
  std::string only;
};

/// False if all packets gave another answer.
bool show(const Options& options, const std::string& what, const std::shared_ptr<const Graph>& graph,
          core::network::Routing routing, std::size_t collisions, const std::vector<std::int64_t>& steps) {
  bool alike = true;
  for (const std::string kind : {"static_window", "dcqcn"}) {
    core::network::Transport transport;
    transport.kind = kind;
    transport.routing = routing;
    core::network::Router router(graph, routing, 1);
    const auto gpus = placed(router, options.gpus, collisions);
    const std::string name = fmt::format("{}, {} collide, {}", what, colliding(router, gpus), kind);
    if (name.find(options.only) == std::string::npos) continue;
    std::vector<core::collective::Shape> rings;
    for (const std::int64_t bytes : steps) {
      core::collective::Shape& ring = rings.emplace_back();
      ring.members = ring.per_node = static_cast<std::uint32_t>(gpus.size());
      ring.bytes = bytes * ring.members;
    }
    double begin = cpu_s();
    const Seen skipped = carry_out(graph, router, gpus, rings, transport, false);
    const double skipping_s = cpu_s() - begin;
    std::string full = "-", same = "-";
    if (options.full) {
      begin = cpu_s();
      const Seen plain = carry_out(graph, router, gpus, rings, transport, true);
      full = fmt::format("{:.2f}", cpu_s() - begin);
      const bool equal = plain.exits == skipped.exits && plain.counters.link_hops == skipped.counters.link_hops;
      same = equal ? "same" : "DIFFERENT";
      alike = alike && equal;
    }
    fmt::print("{:58} {:>10} {:>14} {:>12} {:>10.1f} {:>8.2f} {:>8} {:>10}\n", name, skipped.transfers,
               skipped.counters.link_hops, skipped.simulated,
               static_cast<double>(skipped.counters.link_hops) /
                   static_cast<double>(std::max<std::int64_t>(1, skipped.simulated)),
               skipping_s, full, same);
    std::fflush(stdout);
  }
  return alike;
}

}  // namespace

int main(int count, char** words) try {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--full") {
      options.full = true;
    } else if (word == "--gpus" && i + 1 < count) {
      options.gpus = std::atoll(words[++i]);
    } else if (word == "--chunk" && i + 1 < count) {
      options.chunk = std::atoll(words[++i]);
    } else if (word == "--only" && i + 1 < count) {
      options.only = words[++i];
    } else {
      fmt::print(stderr, "usage: skipping [--gpus N] [--chunk BYTES] [--full] [--only WORD]\n");
      return 2;
    }
  }
  using core::network::Routing;
  const auto tree =
      fabric("fat_tree", {{"tiers", std::int64_t{3}}, {"leaf_hosts", std::int64_t{8}}, {"pod_leaves", std::int64_t{8}}},
             options.gpus, 1);
  const auto rails = fabric("rail_optimized", {}, options.gpus, 8);
  fmt::print("{:58} {:>10} {:>14} {:>12} {:>10} {:>8} {:>8} {:>10}\n", "ring all-reduce", "transfers", "link-hops",
             "simulated", "ratio", "CPU s", "full", "answers");
  bool alike = true;
  alike &= show(options, "rails, mod k", rails, Routing::destination_mod_k, 0, {options.chunk});
  for (const std::size_t collide : {0u, 2u, 10u, 39u})
    if (static_cast<std::int64_t>(4 * collide) <= options.gpus)
      alike &= show(options, "fat tree, mod k", tree, Routing::destination_mod_k, collide, {options.chunk});
  alike &= show(options, "rails, mod k, two rings", rails, Routing::destination_mod_k, 0,
                {options.chunk, options.chunk / 4});
  alike &= show(options, "fat tree, mod k, two rings", tree, Routing::destination_mod_k, 0,
                {options.chunk, options.chunk / 4});
  alike &= show(options, "fat tree, mod k, any order", tree, Routing::destination_mod_k, kShuffled, {options.chunk});
  alike &= show(options, "fat tree, hashed, in order", tree, Routing::ecmp_hash, kInOrder, {options.chunk});
  alike &= show(options, "fat tree, hashed, any order", tree, Routing::ecmp_hash, kShuffled, {options.chunk});
  return alike ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "skipping: {}\n", error.what());
  return 1;
}
