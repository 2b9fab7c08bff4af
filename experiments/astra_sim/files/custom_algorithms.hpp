// Custom algorithms that ASTRA-sim takes in place of its native ones: Chakra traces of sends, receives and
// computations, one for each place of a group (*-implementation-custom, per-node-custom-implementation;
// CustomAlgorithm.cc, CollectiveImplLookup.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "experiments/chakra/read_traces.hpp"

namespace manyworlds::experiments::astra_sim {

enum class CustomStep : std::uint8_t { send, receive, compute };

struct CustomNode {
  std::uint64_t id = 0;
  CustomStep step = CustomStep::compute;
  std::uint32_t peer = 0;  // place of the group
  std::int64_t bytes = 0;
  std::uint64_t tag = 0;
  std::int64_t ns = 0;                 // of a computation
  std::vector<std::uint32_t> parents;  // nodes of the same place, by number
};

struct CustomAlgorithm {
  std::string key;                              // the file and the key that name it, in messages
  std::vector<std::string> names;               // of the files, by place; of one that is not there
  std::vector<std::vector<CustomNode>> places;  // nodes in the order of their ids; none where there are no files
};

/// Which algorithm carries out a collective, by its number: what is said of the node of the workload, else of the kind.
struct CustomAlgorithms {
  std::vector<CustomAlgorithm> all;
  std::map<core::collective::Kind, std::uint32_t> of_kind;
  std::map<std::int32_t, std::uint32_t> of_node;
  std::set<std::pair<std::uint64_t, std::int64_t>> messages;  // tags and sizes of their messages

  /// Returns the number of the algorithm from now on.
  std::uint32_t add(CustomAlgorithm algorithm);
  std::optional<std::uint32_t> find(core::collective::Kind kind, std::uint64_t node) const;
  /// Whether one of them sends as many bytes with this tag: ASTRA-sim tells messages by ranks, tag and size alone.
  bool has_message(std::uint64_t tag, std::int64_t bytes) const;
};

/// What the system file says of them.
struct CustomNames {
  std::map<core::collective::Kind, std::pair<std::string, std::string>> of_kind;  // the key, and the traces' prefix
  std::optional<std::string> per_node_file;

  bool empty() const { return of_kind.empty() && !per_node_file; }
};

/// Parses the traces of an algorithm. Throws InputError with the file and node for nodes other than sends, receives and
/// computations, for ends of transfers that say no peer, size or tag, and for circles.
CustomAlgorithm parse_custom_algorithm(const std::vector<chakra::TraceFile>& files, const std::string& key);

/// Parses the file {NODE: PREFIX, ...} of YAML that says which node of the workload has which algorithm; `name` is its
/// name in messages. Throws InputError with the line.
std::map<std::int32_t, std::string> parse_per_node_file(std::string_view text, const std::string& name);

/// Reads the traces and the file; paths are of the working directory, as ASTRA-sim's. An algorithm whose traces are not
/// there has no places, as ASTRA-sim misses them only when a collective needs them. `system` is the file's name.
CustomAlgorithms read_custom_algorithms(const CustomNames& names, const std::string& system);

}  // namespace manyworlds::experiments::astra_sim
