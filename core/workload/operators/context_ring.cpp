// Ring attention as one operator: blocks of attention, and the exchanges between them.
#include "core/workload/operators/context_ring.hpp"

#include "core/workload/operators/context_exchange.hpp"

namespace manyworlds::core::workload {
namespace {

constexpr std::string_view kName = "attention_ring";

void start_exchange(OpList& ops, std::int64_t bytes) {
  start(ops, kName, collective::Kind::send, bytes, Role::send_context);
}

}  // namespace

RankShapes ring_block_shapes(const RankShapes& shapes, std::int64_t cp) {
  RankShapes block = shapes;
  block.keys /= cp;
  block.pairs /= cp;
  block.cut_by_mask = false;  // all but a rank's own block read half of its queries or keys, whole (Transformer Engine)
  return block;
}

Operator ring_attention(const std::vector<Operator>& block, const RankShapes& shapes, std::int64_t cp) {
  Operator result;
  result.name = kName;
  const std::int64_t keys_and_values =
      2 * own_keys(shapes, cp) * shapes.kv_heads * (shapes.head_dim + shapes.value_dim);
  for (const Operator& each : block) {
    result.saved_bytes += each.saved_bytes;  // a rank saves only its own block; the others come around again
    result.module_output_bytes += each.module_output_bytes;
    result.attention_core_bytes += cp * each.attention_core_bytes;
  }
  for (std::int64_t step = 0; step < cp; ++step) {
    const bool last = step + 1 == cp;
    if (!last) start_exchange(result.forward, keys_and_values);
    for (const Operator& each : block) append(result.forward, each.forward);
    if (!last) join(result.forward);
    if (!last) start_exchange(result.backward, (step == 0 ? 1 : 2) * keys_and_values);
    for (auto each = block.rbegin(); each != block.rend(); ++each) append(result.backward, each->backward);
    if (!last) join(result.backward);
  }
  start_exchange(result.backward, keys_and_values);  // gradients of a block that has visited every rank
  join(result.backward);
  return result;
}

}  // namespace manyworlds::core::workload
