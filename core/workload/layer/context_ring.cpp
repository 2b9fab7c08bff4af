// Blocks of attention, and the exchanges between them.
#include "core/workload/layer/context_ring.hpp"

namespace manyworlds::core::workload {
namespace {

constexpr std::string_view kName = "attention_ring";

void exchange(Tape& tape, std::int64_t bytes) {
  start(tape, kName, collective::Kind::send, bytes, Role::send_context);
}

}  // namespace

Cut block_of_ring(const Cut& rank, std::int64_t cp) {
  Cut block = rank;
  block.keys /= cp;
  block.pairs /= cp;
  return block;
}

Operator round_the_ring(const std::vector<Operator>& block, const Cut& rank, std::int64_t cp) {
  Operator made;
  made.name = kName;
  const std::int64_t keys_and_values = 2 * rank.tokens * rank.kv_heads * (rank.head_dim + rank.value_dim);
  for (const Operator& each : block) {
    made.kept_bytes += each.kept_bytes;  // a rank keeps its own block; others come round again
    made.input_bytes += each.input_bytes;
    made.core_bytes += cp * each.core_bytes;
  }
  for (std::int64_t turn = 0; turn < cp; ++turn) {
    const bool last = turn + 1 == cp;
    if (!last) exchange(made.forward, keys_and_values);
    for (const Operator& each : block) append(made.forward, each.forward);
    if (!last) join(made.forward);
    if (!last) exchange(made.backward, (turn == 0 ? 1 : 2) * keys_and_values);
    for (auto each = block.rbegin(); each != block.rend(); ++each) append(made.backward, each->backward);
    if (!last) join(made.backward);
  }
  exchange(made.backward, keys_and_values);  // gradients of a block that has been everywhere
  join(made.backward);
  return made;
}

}  // namespace manyworlds::core::workload
