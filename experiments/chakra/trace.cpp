#include "experiments/chakra/trace.hpp"

#include <fmt/format.h>

#include <bit>

#include "core/base/error.hpp"
#include "experiments/graphs/rank_graph.hpp"

namespace manyworlds::experiments::chakra {
namespace {

constexpr std::size_t kMaxAttributes = 10'000;  // of a node
constexpr std::size_t kMaxNodes = 50'000'000;

void expect(const WireReader& reader, const WireField& field, WireType type, const char* what) {
  if (field.type != type)
    reader.fail(fmt::format("field {} of {} in another type than the schema's", field.number, what));
}

/// The wire type of an attribute's value: odd fields from 3 are single ones, even ones lists.
WireType type_of(std::uint32_t field) {
  if (field % 2 == 0 || field >= Attribute::kString) return WireType::bytes;
  if (field == Attribute::kDouble || field == 21 || field == 25) return WireType::fixed64;
  if (field == Attribute::kFloat || field == 19 || field == 23) return WireType::fixed32;
  return WireType::varint;
}

Attribute attribute_of(WireReader reader) {
  Attribute attribute;
  while (!reader.done()) {
    const WireField field = reader.field();
    if (field.number == 1) {
      expect(reader, field, WireType::bytes, "an attribute");
      attribute.name = field.bytes;
    } else if (field.number >= 3 && field.number <= 32) {
      expect(reader, field, type_of(field.number), "an attribute");
      attribute.field = field.number;
      attribute.bits = field.value;
      attribute.bytes = field.bytes;
    }
  }
  return attribute;
}

void add_ids(const WireReader& reader, const WireField& field, const std::string& name,
             std::vector<std::uint64_t>& to) {
  if (field.type == WireType::varint) {
    to.push_back(field.value);
    return;
  }
  expect(reader, field, WireType::bytes, "a node");
  for (WireReader ids(field.bytes, name, field.offset); !ids.done();) to.push_back(ids.varint());
}

TraceNode node_of(WireReader reader, const std::string& name) {
  TraceNode node;
  const auto number = [&](const WireField& field) {
    expect(reader, field, WireType::varint, "a node");
    return field.value;
  };
  const auto bytes = [&](const WireField& field) {
    expect(reader, field, WireType::bytes, "a node");
    return field.bytes;
  };
  while (!reader.done()) {
    const WireField field = reader.field();
    switch (field.number) {
      case 1:
        node.id = number(field);
        break;
      case 2:
        node.name = bytes(field);
        break;
      case 3:
        node.type = static_cast<std::uint32_t>(number(field));
        break;
      case 4:
        add_ids(reader, field, name, node.ctrl_deps);
        break;
      case 5:
        add_ids(reader, field, name, node.data_deps);
        break;
      case 6:
        node.start_us = number(field);
        break;
      case 7:
        node.duration_us = number(field);
        break;
      case 8:
        node.inputs = bytes(field);
        break;
      case 9:
        node.outputs = bytes(field);
        break;
      case 10:
        if (node.attributes.size() == kMaxAttributes) reader.fail("a node of more than 10,000 attributes");
        node.attributes.push_back(attribute_of(WireReader(bytes(field), name, field.offset)));
        break;
      default:
        break;
    }
  }
  return node;
}

void read_metadata(WireReader reader, const std::string& name, Trace& to) {
  while (!reader.done()) {
    const WireField field = reader.field();
    if (field.number > 2) continue;
    if (field.type != WireType::bytes)
      reader.fail("no metadata in its first message, as a trace of Chakra has it (GlobalMetadata)");
    if (field.number == 1)
      to.version = field.bytes;
    else
      to.attributes.push_back(attribute_of(WireReader(field.bytes, name, field.offset)));
  }
}

std::string bytes_of(const Attribute& attribute) {
  WireWriter writer;
  writer.bytes(1, attribute.name);
  const WireType type = type_of(attribute.field);
  if (type == WireType::bytes)
    writer.bytes(attribute.field, attribute.bytes);
  else if (type == WireType::varint)
    writer.number(attribute.field, attribute.bits);
  else
    writer.fixed(attribute.field, type, attribute.bits);
  return writer.written();
}

void write_ids(WireWriter& writer, std::uint32_t field, const std::vector<std::uint64_t>& ids) {
  if (ids.empty()) return;
  WireWriter packed;
  for (const std::uint64_t id : ids) packed.varint(id);
  writer.bytes(field, packed.written());
}

std::string bytes_of(const TraceNode& node) {
  WireWriter writer;
  if (node.id > 0) writer.number(1, node.id);
  if (!node.name.empty()) writer.bytes(2, node.name);
  if (node.type > 0) writer.number(3, node.type);
  write_ids(writer, 4, node.ctrl_deps);
  write_ids(writer, 5, node.data_deps);
  if (node.start_us > 0) writer.number(6, node.start_us);
  if (node.duration_us > 0) writer.number(7, node.duration_us);
  if (!node.inputs.empty()) writer.bytes(8, node.inputs);
  if (!node.outputs.empty()) writer.bytes(9, node.outputs);
  for (const Attribute& attribute : node.attributes) writer.bytes(10, bytes_of(attribute));
  return writer.written();
}

}  // namespace

std::optional<std::int64_t> Attribute::integer() const {
  if (type_of(field) == WireType::bytes || field == kDouble || field == kFloat) return std::nullopt;
  if (field == kSint32 || field == kSint64)
    return static_cast<std::int64_t>(bits >> 1) ^ -static_cast<std::int64_t>(bits & 1);
  if (field == kInt32 || field == 23) return static_cast<std::int32_t>(bits);
  return static_cast<std::int64_t>(bits);
}

std::optional<double> Attribute::real() const {
  if (field == kDouble) return std::bit_cast<double>(bits);
  if (field == kFloat) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (const std::optional<std::int64_t> whole = integer()) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<std::string_view> Attribute::text() const {
  if (field != kString) return std::nullopt;
  return std::string_view(bytes);
}

Attribute Attribute::of_real(std::string name, double value) {
  return {std::move(name), kDouble, std::bit_cast<std::uint64_t>(value), {}};
}

Trace parse_trace(std::string_view bytes, const std::string& name) {
  Trace trace;
  WireReader reader(bytes, name);
  if (reader.done()) throw core::InputError("is empty; a trace of Chakra begins with its metadata", name);
  const auto message = [&] {
    const std::string_view inside = reader.sized();
    return WireReader(inside, name, reader.offset() - inside.size());
  };
  read_metadata(message(), name, trace);
  while (!reader.done()) {
    if (trace.nodes.size() == kMaxNodes) reader.fail("more than 50,000,000 nodes");
    trace.nodes.push_back(node_of(message(), name));
  }
  return trace;
}

void refuse(const TraceNode& node, const std::string& why, const std::string& name) {
  throw core::InputError(fmt::format("{} {}", graphs::node_text(node.id, node.name), why), name);
}

NodePlaces::NodePlaces(const std::vector<TraceNode>& nodes, const std::string& name) : name_(name) {
  place_of_id_.reserve(nodes.size());
  for (const TraceNode& node : nodes)
    if (!place_of_id_.emplace(node.id, static_cast<std::uint32_t>(place_of_id_.size())).second)
      throw core::InputError(fmt::format("has two nodes with id {}", node.id), name);
}

void NodePlaces::append(const TraceNode& waits, const std::vector<std::uint64_t>& ids,
                        std::vector<std::uint32_t>& places) const {
  for (const std::uint64_t id : ids) {
    const auto found = place_of_id_.find(id);
    if (found == place_of_id_.end())
      refuse(waits, fmt::format("waits for node {}, which the trace does not have", id), name_);
    places.push_back(found->second);
  }
}

std::string trace_bytes(const Trace& trace) {
  WireWriter metadata, file;
  if (!trace.version.empty()) metadata.bytes(1, trace.version);
  for (const Attribute& attribute : trace.attributes) metadata.bytes(2, bytes_of(attribute));
  file.sized(metadata.written());
  for (const TraceNode& node : trace.nodes) file.sized(bytes_of(node));
  return file.written();
}

}  // namespace manyworlds::experiments::chakra
