// An execution trace of Chakra as it stands in its file (mlcommons/chakra, schema/protobuf/et_def.proto): messages,
// each with its length before it, of which the first is the metadata and every other one a node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "experiments/chakra/wire.hpp"

namespace manyworlds::experiments::chakra {

enum class NodeType : std::uint32_t { invalid, metadata, mem_load, mem_store, comp, comm_send, comm_recv, comm_coll };
inline constexpr std::uint32_t kNodeTypes = 8;

/// Collectives of the schema, in its order.
enum class CommType : std::uint32_t {
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter,
  reduce_scatter_block,
  barrier
};

/// A named value. `field` is the number that its type has in the schema: 3 double, 7 int32, 9 int64, 11 uint32, 13
/// uint64, 27 bool, 29 string, and so on; even ones are lists. It is kept as it is written.
struct Attribute {
  static constexpr std::uint32_t kDouble = 3, kFloat = 5, kInt32 = 7, kInt64 = 9, kUint32 = 11, kUint64 = 13,
                                 kSint32 = 15, kSint64 = 17, kBool = 27, kBoolList = 28, kString = 29;
  std::string name;
  std::uint32_t field = kInt64;
  std::uint64_t bits = 0;  // of numbers; a double's own
  std::string bytes;       // of texts and lists

  /// Return the value if it is an integer or a bool; if it is a number; if it is a text.
  std::optional<std::int64_t> integer() const;
  std::optional<double> real() const;
  std::optional<std::string_view> text() const;
  auto operator<=>(const Attribute&) const = default;

  static Attribute of(std::string name, std::uint32_t field, std::uint64_t bits) {
    return {std::move(name), field, bits, {}};
  }
  static Attribute of_text(std::string name, std::string text) {
    return {std::move(name), kString, 0, std::move(text)};
  }
  static Attribute of_real(std::string name, double value);
};

struct TraceNode {
  std::uint64_t id = 0;
  std::string name;
  std::uint32_t type = 0;  // NodeType, or what later schemas have
  std::vector<std::uint64_t> ctrl_deps, data_deps;
  std::uint64_t start_us = 0, duration_us = 0;
  std::string inputs, outputs;  // their messages
  std::vector<Attribute> attributes;
  bool operator==(const TraceNode&) const = default;
};

struct Trace {
  std::string version;
  std::vector<Attribute> attributes;  // of the metadata
  std::vector<TraceNode> nodes;
  bool operator==(const Trace&) const = default;
};

/// Parses a file; `name` is its name in messages. Throws InputError with the offset for a file that is cut or no trace,
/// for one whose first message is no metadata, and for fields of another type than the schema's. Fields that the schema
/// does not have are skipped.
Trace parse_trace(std::string_view bytes, const std::string& name);

/// Throws InputError of the file `name`, which says why a node of it cannot be taken.
[[noreturn]] void refuse(const TraceNode& node, const std::string& why, const std::string& name);

/// The place in its file of every node. Throws InputError of the file `name` if two have one id.
class NodePlaces {
 public:
  NodePlaces(const std::vector<TraceNode>& nodes, const std::string& name);

  /// Appends the places of the nodes with `ids` to `places`. Throws InputError for one that the file does not have.
  void append(const TraceNode& waits, const std::vector<std::uint64_t>& ids, std::vector<std::uint32_t>& places) const;

 private:
  const std::string& name_;
  std::unordered_map<std::uint64_t, std::uint32_t> place_of_id_;
};

/// Returns the file of a trace, which is parsed into the same trace.
std::string trace_bytes(const Trace& trace);

}  // namespace manyworlds::experiments::chakra
