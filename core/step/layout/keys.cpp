#include "core/step/layout/keys.hpp"

#include "core/network/transports/registry.hpp"

namespace manyworlds::core::step {

void write_transport(sharing::KeyWriter& writer, const network::Transport& transport) {
  writer.integer(static_cast<std::int64_t>(transport.fidelity));
  if (transport.fidelity != network::Fidelity::packet) {  // no other option has an effect then
    writer.integer(transport.payload_bytes).integer(transport.header_bytes);
    return;
  }
  writer.text(transport.kind);
  OptionSet values = network::options_of(transport);
  values["window_bytes"] = transport.window_bytes;  // used by scale-up transfers of every transport kind
  // Routing and its seed are resolved into routes before any key is computed, unless packets choose theirs.
  if (!network::spreads(transport)) values.erase("routing"), values.erase("seed");
  // But for the way back of acknowledgements that are packets.
  const bool hashed_as_ever = network::path_choice_of(transport).is_hashed_as_ever();
  if (hashed_as_ever || transport.acks == network::Acks::coalesced)
    values.erase("ecmp_hash_seeds"), values.erase("ecmp_weights");
  if (transport.rate_tolerance_ppm > 0) values["rate_tolerance_ppm"] = transport.rate_tolerance_ppm;
  write_options(writer, values);
}

void write_options(sharing::KeyWriter& writer, const OptionSet& values) {
  for (const auto& [name, value] : values) {
    writer.text(name);
    if (const auto* boolean = std::get_if<bool>(&value)) writer.integer(*boolean);
    if (const auto* integer = std::get_if<std::int64_t>(&value)) writer.integer(*integer);
    if (const auto* real = std::get_if<double>(&value)) writer.real(*real);
    if (const auto* text = std::get_if<std::string>(&value)) writer.text(*text);
  }
}

namespace {

void write_given_algorithm(sharing::KeyWriter& writer, const collective::GivenAlgorithm& given) {
  writer.text("given").text(given.name).integer(given.chunks).integer(given.loop_bytes).integer(given.slots);
  writer.integer(static_cast<std::int64_t>(given.protocol)).integer(std::ssize(given.blocks));
  for (const collective::ThreadBlock& block : given.blocks) {
    writer.integer(block.member).integer(block.send_to).integer(block.receive_from).integer(block.channel);
    writer.integer(std::ssize(block.steps));
    for (const collective::BlockStep& step : block.steps) {
      writer.integer(step.receives).integer(step.sends).integer(step.keeps_slot).integer(step.chunks);
      writer.integer(step.wait_block).integer(step.wait_step).integer(step.is_waited_for);
    }
  }
}

}  // namespace

void write_shape(sharing::KeyWriter& writer, const collective::Shape& shape) {
  writer.integer(static_cast<std::int64_t>(shape.kind)).integer(static_cast<std::int64_t>(shape.algorithm));
  writer.integer(shape.members).integer(shape.bytes).integer(shape.per_node);
  writer.integer(shape.channels).integer(shape.chunk_bytes).integer(static_cast<std::int64_t>(shape.protocol));
  writer.integer(shape.rail_switches).integer(shape.node_bytes);
  if (shape.at_once) writer.text("at once");
  if (shape.node_mesh) writer.text("mesh");
  if (shape.queue_pairs > 1) writer.text("queue pairs").integer(shape.queue_pairs).integer(shape.message_bytes);
  if (shape.given) write_given_algorithm(writer, *shape.given);
  if (!shape.split.even()) {
    writer.text(shape.split.by_source ? "by source" : "by destination");
    for (const std::int64_t bytes : shape.split.bytes) writer.integer(bytes);
  }
  const collective::ProtocolCosts& costs = shape.calibrated;
  for (const std::int64_t cost :
       {costs.launch_ps, Time{costs.intra_node_ps}, Time{costs.inter_node_ps}, costs.line_bytes, costs.payload_bytes,
        costs.intra_node_rate_ppm, costs.inter_node_rate_ppm})
    writer.integer(cost);
}

sharing::Key transport_key(const network::Transport& transport) {
  sharing::KeyWriter writer("transport");
  write_transport(writer, transport);
  return writer.finish();
}

sharing::Key collective_key(const collective::Shape& shape, const sharing::Key& route_signature,
                            const sharing::Key& transport) {
  sharing::KeyWriter writer("collective");
  writer.key(transport);
  write_shape(writer, shape);
  return writer.key(route_signature).finish();
}

}  // namespace manyworlds::core::step
