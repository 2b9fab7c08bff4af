// ASTRA-sim's system.json: how collectives are divided and by which algorithm each goes in each dimension of the
// network, and the roofline of compute nodes (astra-sim at 518bd51, Sys::initialize_sys, CollectiveImplLookup.cc).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "experiments/astra_sim/files/custom_algorithms.hpp"

namespace manyworlds::experiments::astra_sim {

enum class AlgorithmKind : std::uint8_t { ring, direct, halving_doubling, double_binary_tree };

/// What a collective does in one dimension.
struct Algorithm {
  AlgorithmKind kind = AlgorithmKind::ring;
  bool of_all = false;                 // oneRing, oneDirect, ...: all dimensions are walked as one
  std::optional<std::int64_t> window;  // of direct: how many messages of a rank are under way at once; nothing: all
  std::string name;                    // as the file has it
};

/// How an all-reduce crosses several dimensions: by itself in each, or scattered on the way up and gathered on the way
/// back (localBWAware).
enum class Crossing : std::uint8_t { baseline, local_bandwidth_aware };

struct System {
  std::string name;  // of the file, in messages
  std::int64_t splits = 0, active_chunks = 1, endpoint_delay_ns = 10;
  std::optional<Crossing> crossing;
  double memory_gb_per_s = 0, peak_tflops = 0;  // of 10^9; 0: not said
  bool has_roofline = false;
  std::map<core::collective::Kind, std::vector<Algorithm>> algorithms;
  CustomNames custom;                        // in place of these
  std::vector<std::string> collective_keys;  // those of the file that say how collectives go
  std::vector<std::string> silent_keys;      // those that change no time, each with the reason
  std::vector<std::string> refused;          // those of what is not modelled, each with the reason
};

/// Parses the file; `name` is its name in messages. Throws InputError with the key for one that ASTRA-sim does not
/// read, and for a value that is none of its.
System parse_system_file(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::astra_sim
