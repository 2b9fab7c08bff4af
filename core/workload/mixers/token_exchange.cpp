#include "core/workload/mixers/token_exchange.hpp"

#include <string_view>

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::memory_bound;

/// Reads and writes `bytes`.
void copy(OpList& ops, std::string_view name, std::int64_t bytes) {
  ops.push_back(kernel(memory_bound(name, 2 * bytes)));
}

/// The kernels after it need what it receives: Megatron-Core's all-to-alls wait for each other.
void exchange(OpList& ops, std::string_view name, std::int64_t bytes) {
  block_on(ops, name, Kind::all_to_all, bytes, Role::context);
}

}  // namespace

RankShapes all_token_shapes(const RankShapes& shapes, std::int64_t cp) {
  RankShapes all = shapes;
  all.sequence *= cp, all.tokens *= cp;
  return all;
}

Operator tokens_to_heads(std::int64_t tokens, const std::vector<SentColumns>& tensors, bool reordered) {
  Operator result;
  result.name = "tokens_to_heads";
  OpList &ahead = result.forward, &back = result.backward;
  std::int64_t own = 0, all = 0;
  for (const SentColumns& each : tensors) {
    own += 2 * tokens * each.columns;
    all += 2 * tokens * each.columns * each.copies;
  }
  if (reordered) copy(ahead, result.name, own);
  copy(back, result.name, all);
  for (const SentColumns& each : tensors) {
    const std::int64_t bytes = 2 * tokens * each.columns, sent = bytes * each.copies;
    const auto repeat = [&](OpList& ops) {  // one tensor and its copies
      if (each.copies > 1) ops.push_back(kernel(memory_bound("repeat_columns", bytes + sent)));
    };
    repeat(ahead);
    copy(ahead, result.name, sent);
    exchange(ahead, result.name, sent);
    copy(back, result.name, sent);  // out of the joined gradients
    exchange(back, result.name, sent);
    copy(back, result.name, sent);
    repeat(back);
  }
  if (tensors.size() > 1) copy(ahead, result.name, all), copy(back, result.name, own);
  copy(ahead, result.name, all);
  if (reordered) copy(back, result.name, own);
  return result;
}

Operator heads_to_tokens(std::int64_t tokens, std::int64_t columns) {
  Operator result;
  result.name = "heads_to_tokens";
  const std::int64_t bytes = 2 * tokens * columns;
  for (OpList* ops : {&result.forward, &result.backward}) {
    copy(*ops, result.name, bytes);
    exchange(*ops, result.name, bytes);
    copy(*ops, result.name, bytes);
  }
  return result;
}

}  // namespace manyworlds::core::workload
