#include "farm/plan/sweep_task_spec.hpp"

#include "core/sharing/bytes.hpp"

namespace manyworlds::farm {

namespace {

using core::collective::BlockStep;
using core::collective::Shape;
using core::collective::ThreadBlock;
using core::sharing::ByteReader;
using core::sharing::ByteWriter;
using core::sharing::Key;

constexpr std::size_t kKeyBytes = 5 * sizeof(std::uint64_t);

void put(ByteWriter& to, const Key& key) {
  for (const auto word : key.digest) to.put(word);
  for (const auto word : key.check) to.put(word);
  to.put(key.length);
}

Key key(ByteReader& from) {
  Key result;
  for (auto& word : result.digest) word = from.get<std::uint64_t>();
  for (auto& word : result.check) word = from.get<std::uint64_t>();
  result.length = from.get<std::uint64_t>();
  return result;
}

void put(ByteWriter& to, const core::collective::SharedAlgorithm& given) {
  to.put(static_cast<bool>(given));
  if (!given) return;
  to.text(given->name).put(given->kind).put(given->members).put(given->chunks).put(given->loop_bytes).put(given->slots);
  to.put(given->protocol).put(static_cast<std::uint64_t>(given->blocks.size()));
  for (const ThreadBlock& block : given->blocks) {
    to.put(block.member).put(block.send_to).put(block.receive_from).put(block.channel);
    to.put(static_cast<std::uint64_t>(block.steps.size()));
    for (const BlockStep& step : block.steps) {
      to.put(step.receives).put(step.sends).put(step.keeps_slot).put(step.chunks);
      to.put(step.wait_block).put(step.wait_step).put(step.is_waited_for);
    }
  }
}

void put(ByteWriter& to, const Shape& shape) {
  to.put(shape.kind).put(shape.algorithm).put(shape.members).put(shape.bytes).put(shape.per_node);
  to.put(shape.channels).put(shape.chunk_bytes).put(shape.protocol).put(shape.rail_switches);
  to.put(shape.calibrated.launch_ps).put(shape.calibrated.intra_node_ps).put(shape.calibrated.inter_node_ps);
  to.put(shape.calibrated.line_bytes).put(shape.calibrated.payload_bytes);
  to.put(shape.calibrated.intra_node_rate_ppm).put(shape.calibrated.inter_node_rate_ppm).put(shape.node_bytes);
  to.put(shape.at_once).put(shape.node_mesh).put(shape.queue_pairs).put(shape.message_bytes);
  to.put(shape.split.by_source).put(static_cast<std::uint64_t>(shape.split.bytes.size()));
  for (const std::int64_t bytes : shape.split.bytes) to.put(bytes);
  put(to, shape.given);
}

template <class T>
void get(ByteReader& from, T& value) {
  value = from.get<T>();
}
void get(ByteReader& from, bool& value) {
  value = from.get<std::uint8_t>() != 0;
}

core::collective::SharedAlgorithm given(ByteReader& from) {
  constexpr std::size_t kBlockBytes = 4 * sizeof(std::uint32_t) + sizeof(std::uint64_t);
  constexpr std::size_t kStepBytes = 3 * sizeof(std::uint32_t) + 4;
  if (from.get<std::uint8_t>() == 0) return {};
  core::collective::GivenAlgorithm result;
  result.name = from.text();
  get(from, result.kind), get(from, result.members), get(from, result.chunks), get(from, result.loop_bytes);
  get(from, result.slots), get(from, result.protocol);
  result.blocks.resize(from.count(kBlockBytes));
  for (ThreadBlock& block : result.blocks) {
    get(from, block.member), get(from, block.send_to), get(from, block.receive_from), get(from, block.channel);
    block.steps.resize(from.count(kStepBytes));
    for (BlockStep& step : block.steps) {
      get(from, step.receives), get(from, step.sends), get(from, step.keeps_slot), get(from, step.chunks);
      get(from, step.wait_block), get(from, step.wait_step), get(from, step.is_waited_for);
    }
  }
  return {std::make_shared<const core::collective::GivenAlgorithm>(std::move(result))};
}

Shape shape(ByteReader& from) {
  Shape result;
  get(from, result.kind), get(from, result.algorithm), get(from, result.members), get(from, result.bytes);
  get(from, result.per_node), get(from, result.channels), get(from, result.chunk_bytes), get(from, result.protocol);
  get(from, result.rail_switches);
  core::collective::ProtocolCosts& costs = result.calibrated;
  get(from, costs.launch_ps), get(from, costs.intra_node_ps), get(from, costs.inter_node_ps);
  get(from, costs.line_bytes), get(from, costs.payload_bytes);
  get(from, costs.intra_node_rate_ppm), get(from, costs.inter_node_rate_ppm);
  get(from, result.node_bytes), get(from, result.at_once), get(from, result.node_mesh);
  get(from, result.queue_pairs), get(from, result.message_bytes);
  get(from, result.split.by_source);
  result.split.bytes.resize(from.count(sizeof(std::int64_t)));
  for (std::int64_t& bytes : result.split.bytes) get(from, bytes);
  result.given = given(from);
  return result;
}

}  // namespace

std::string encode(const SweepSharedSettings& common) {
  return ByteWriter().put(common.share).text(common.settings).take();
}

SweepSharedSettings decode_common(const std::string& bytes) {
  ByteReader from(bytes);
  SweepSharedSettings common;
  common.share = from.get<std::uint8_t>() != 0;
  common.settings = from.text();
  from.end();
  return common;
}

std::string encode(const SweepTaskSpec& spec) {
  ByteWriter to;
  to.put(spec.kind).text(spec.settings);
  put(to, spec.key);
  put(to, spec.shape);
  to.put(spec.group.value()).put(static_cast<std::uint64_t>(spec.inputs.size()));
  for (const Key& input : spec.inputs) put(to, input);
  return to.take();
}

SweepTaskSpec decode_task_spec(const std::string& bytes) {
  ByteReader from(bytes);
  SweepTaskSpec spec;
  spec.kind = from.get<SweepTaskSpec::Kind>();
  MANYWORLDS_CHECK(spec.kind <= SweepTaskSpec::Kind::bound, "task specification of kind {}",
                   static_cast<int>(spec.kind));
  spec.settings = from.text();
  spec.key = key(from);
  spec.shape = shape(from);
  spec.group = core::step::GroupId(from.get<std::uint32_t>());
  spec.inputs.resize(from.count(kKeyBytes));
  for (Key& input : spec.inputs) input = key(from);
  from.end();
  return spec;
}

}  // namespace manyworlds::farm
