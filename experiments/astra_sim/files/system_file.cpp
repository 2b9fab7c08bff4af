#include "experiments/astra_sim/files/system_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/base/error.hpp"
#include "experiments/astra_sim/files/json_keys.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

using core::collective::Kind;

constexpr std::int64_t kMaxNs = 1'000'000'000, kMaxSplits = 1 << 20;

struct CollectiveKey {
  Kind kind;
  const char* native;
  const char* custom;
};
constexpr std::array<CollectiveKey, 4> kCollectives{
    {{Kind::all_reduce, "all-reduce-implementation", "all-reduce-implementation-custom"},
     {Kind::all_gather, "all-gather-implementation", "all-gather-implementation-custom"},
     {Kind::reduce_scatter, "reduce-scatter-implementation", "reduce-scatter-implementation-custom"},
     {Kind::all_to_all, "all-to-all-implementation", "all-to-all-implementation-custom"}}};

/// Keys of which ASTRA-sim's times do not depend, as far as they are modelled here.
struct SilentKey {
  const char* key;
  const char* why;
};
constexpr std::array<SilentKey, 10> kSilent{
    {{"scheduling-policy", "orders collectives of a rank, of which ASTRA-sim runs one at a time"},
     {"local-reduction-delay", "is of the shared bus"},
     {"L", "is of the shared bus"},
     {"o", "is of the shared bus"},
     {"g", "is of the shared bus"},
     {"G", "is of the shared bus"},
     {"boost-mode", "is not read by ASTRA-sim"},
     {"trace-enabled", "is about its log"},
     {"track-local-mem", "is about its log"},
     {"local-mem-trace-filename", "is about its log"}}};

Algorithm algorithm_of(const JsonKeys& keys, const char* key, const std::string& name) {
  Algorithm algorithm;
  algorithm.name = name;
  std::string_view rest = name;
  if (rest.starts_with("one")) {
    algorithm.of_all = true;
    rest.remove_prefix(3);
  }
  const auto is = [&](const char* plain, const char* of_all) { return rest == (algorithm.of_all ? of_all : plain); };
  const std::string_view direct = algorithm.of_all ? "Direct" : "direct";
  if (is("ring", "Ring")) return algorithm;
  if (is("halvingDoubling", "HalvingDoubling")) {
    algorithm.kind = AlgorithmKind::halving_doubling;
    return algorithm;
  }
  if (name == "doubleBinaryTree") {
    algorithm.kind = AlgorithmKind::double_binary_tree;
    return algorithm;
  }
  std::int64_t window = 0;
  if (rest.starts_with(direct)) {
    rest.remove_prefix(direct.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), window);
    algorithm.kind = AlgorithmKind::direct;
    if (rest.empty()) return algorithm;
    if (error == std::errc() && end == rest.data() + rest.size() && window > 0 && rest.size() <= 5) {
      algorithm.window = window;
      return algorithm;
    }
  }
  keys.fail(key,
            "a list of ring, direct, direct4 (a window), halvingDoubling, doubleBinaryTree, oneRing, oneDirect or "
            "oneHalvingDoubling");
}

void read_collectives(const JsonKeys& keys, System& system) {
  for (const CollectiveKey& one : kCollectives) {
    for (const std::string& name : keys.texts(one.native))
      system.algorithms[one.kind].push_back(algorithm_of(keys, one.native, name));
    if (keys.has(one.native)) system.collective_keys.emplace_back(one.native);
    if (!keys.has(one.custom)) continue;
    const std::vector<std::string> prefixes = keys.texts(one.custom);
    if (prefixes.size() != 1) keys.fail(one.custom, "a list of one prefix of traces, which are of all dimensions");
    system.custom.of_kind[one.kind] = {one.custom, prefixes.front()};
    system.collective_keys.emplace_back(one.custom);
  }
  system.custom.per_node_file = keys.text("per-node-custom-implementation");
  if (system.custom.per_node_file) system.collective_keys.emplace_back("per-node-custom-implementation");
  if (const auto crossing = keys.text("collective-optimization")) {
    if (crossing != "baseline" && crossing != "localBWAware")
      keys.fail("collective-optimization", "baseline or localBWAware");
    system.crossing = crossing == "baseline" ? Crossing::baseline : Crossing::local_bandwidth_aware;
    system.collective_keys.emplace_back("collective-optimization");
  }
  for (const char* key : {"preferred-dataset-splits", "active-chunks-per-dimension", "endpoint-delay"})
    if (keys.has(key)) system.collective_keys.emplace_back(key);
  system.splits = keys.whole("preferred-dataset-splits", 0, 1, kMaxSplits);
  system.active_chunks = keys.whole("active-chunks-per-dimension", 1, 1, kMaxSplits);
  system.endpoint_delay_ns = keys.whole("endpoint-delay", 10, 0, kMaxNs);
}

void check_silent(const JsonKeys& keys) {
  if (const auto policy = keys.text("scheduling-policy");
      policy && policy != "LIFO" && policy != "FIFO" && policy != "EXPLICIT")
    keys.fail("scheduling-policy", "LIFO, FIFO or EXPLICIT");
  keys.text("local-mem-trace-filename");
  for (const char* key : {"boost-mode", "trace-enabled", "track-local-mem"})
    if (!keys.is_truth(key)) keys.flag(key);
  keys.whole("local-reduction-delay", 0, 0, kMaxNs);
}

std::vector<std::string> known_keys() {
  std::vector<std::string> known{"collective-optimization",
                                 "preferred-dataset-splits",
                                 "active-chunks-per-dimension",
                                 "endpoint-delay",
                                 "peak-perf",
                                 "local-mem-bw",
                                 "roofline-enabled",
                                 "model-shared-bus",
                                 "replay-only",
                                 "per-node-custom-implementation"};
  for (const CollectiveKey& one : kCollectives) known.insert(known.end(), {one.native, one.custom});
  for (const SilentKey& one : kSilent) known.emplace_back(one.key);
  return known;
}

}  // namespace

System parse_system_file(std::string_view text, const std::string& name) {
  if (import::trimmed(text, " \t\r\n").find_first_of("{[") != 0)
    throw core::InputError(
        "must be ASTRA-sim's system file, an object of JSON; its network file is for --astra-network", name);
  const JsonKeys keys(text, name);
  keys.check(known_keys(), "ASTRA-sim's system file");
  System system;
  system.name = name;
  read_collectives(keys, system);
  check_silent(keys);
  for (const SilentKey& one : kSilent)
    if (keys.has(one.key)) system.silent_keys.push_back(fmt::format("{} {}", one.key, one.why));
  // ASTRA-sim compares the last two with the number 0, which no truth value equals: false switches them on.
  for (const char* key : {"roofline-enabled", "replay-only"})
    if (keys.is_truth(key)) keys.fail(key, "0 or 1, as ASTRA-sim takes both true and false for 1");
  if (keys.flag("model-shared-bus")) system.refused.emplace_back("model-shared-bus: the bus is not modelled");
  if (keys.flag("replay-only")) system.refused.emplace_back("replay-only: collectives with durations are not modelled");
  system.memory_gb_per_s = keys.number("local-mem-bw", 0, 1e9);
  system.peak_tflops = keys.number("peak-perf", 0, 1e9);
  system.has_roofline = keys.flag("roofline-enabled");
  if (system.has_roofline && !keys.has("peak-perf")) keys.fail("peak-perf", "TFLOP/s, as roofline-enabled is 1");
  if (system.has_roofline && !keys.has("local-mem-bw")) keys.fail("local-mem-bw", "GB/s, as roofline-enabled is 1");
  return system;
}

}  // namespace manyworlds::experiments::astra_sim
