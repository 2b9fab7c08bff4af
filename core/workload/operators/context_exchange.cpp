// All-gathers and all-to-alls around the attention core.
#include "core/workload/operators/context_exchange.hpp"

#include <utility>

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::memory_bound;

/// Bytes of queries, keys, values and outputs on one rank, in 16 bits.
struct AttentionBytes {
  std::int64_t queries, keys, values, outputs;
};

AttentionBytes attention_bytes(const RankShapes& shapes, std::int64_t cp) {
  const std::int64_t bytes = 2 * shapes.tokens, of_keys = 2 * own_keys(shapes, cp) * shapes.kv_heads;
  return {bytes * shapes.query_width(), of_keys * shapes.head_dim, of_keys * shapes.value_dim,
          bytes * shapes.value_width()};
}

/// Permutes and sends each tensor of `bytes` while the next is permuted; then permutes what was received.
OpList all_to_alls(std::string_view name, std::initializer_list<std::int64_t> bytes) {
  OpList ops;
  for (const std::int64_t each : bytes) {
    ops.push_back(kernel(memory_bound(name, 2 * each)));
    start(ops, name, Kind::all_to_all, each, Role::context);
  }
  join(ops);
  for (const std::int64_t each : bytes) ops.push_back(kernel(memory_bound(name, 2 * each)));
  return ops;
}

}  // namespace

std::int64_t own_keys(const RankShapes& shapes, std::int64_t cp) {
  return shapes.samples * shapes.keys / cp;
}

std::vector<Operator> gather_keys(const std::vector<Operator>& core, const RankShapes& shapes, std::int64_t cp) {
  const AttentionBytes own = attention_bytes(shapes, cp);
  const auto each = [&](std::string_view name, Kind kind) {
    OpList ops;
    for (const std::int64_t bytes : {own.keys, own.values}) start(ops, name, kind, cp * bytes, Role::context);
    join(ops);
    return ops;
  };
  Operator gathered, regather;
  gathered.name = "gather_keys";
  gathered.forward = each(gathered.name, Kind::all_gather);
  gathered.backward = each(gathered.name, Kind::reduce_scatter);
  regather.name = "regather_keys";
  regather.backward = each(regather.name, Kind::all_gather);
  std::vector<Operator> all{std::move(gathered)};
  all.insert(all.end(), core.begin(), core.end());
  all.push_back(std::move(regather));
  return all;
}

Operator attend_to_gathered_blocks(const Operator& block, const RankShapes& shapes, std::int64_t cp) {
  RankShapes sent = shapes;
  if (!shapes.stack.grouped_query_fusion) sent.kv_heads = shapes.heads;
  const AttentionBytes own = attention_bytes(sent, cp);
  const std::int64_t keys_and_values = own.keys + own.values;
  const auto move = [](OpList& ops, std::string_view name, std::int64_t bytes) {
    ops.push_back(kernel(memory_bound(name, bytes)));
  };
  const auto gather = [&](OpList& ops) {
    move(ops, "pack_keys", 2 * keys_and_values);
    start(ops, "gather_keys", Kind::all_gather, cp * keys_and_values, Role::context);
  };
  Operator result = block;
  result.name = "attention_blocks";
  result.forward.clear(), result.backward.clear();
  gather(result.forward), gather(result.backward);
  for (std::int64_t step = 0; step < cp; ++step) {
    append(result.forward, block.forward), append(result.backward, block.backward);
    if (step == 0) join(result.forward, {Role::context, 0});
    if (step > 0) {
      move(result.forward, "merge_blocks", 5 * own.outputs);  // read fp32 and 16 bits, write fp32
      join(result.backward, {Role::send_context, 0});
      move(result.backward, "sum_query_gradients", 5 * own.queries);
    }
    move(result.backward, "sum_key_gradients", (step > 0 ? 5 : 3) * keys_and_values);
    start(result.backward, "pass_key_gradients", Kind::send, 2 * keys_and_values, Role::send_context);
    if (step == 0) join(result.backward, {Role::context, 0});
  }
  move(result.forward, "cast_output", 3 * own.outputs);
  join(result.backward, {Role::send_context, 0});
  move(result.backward, "cast_gradients", 3 * (own.queries + keys_and_values));
  return result;
}

RankShapes head_parallel_shapes(const RankShapes& shapes, std::int64_t cp) {
  RankShapes head_shapes = shapes;
  head_shapes.sequence *= cp, head_shapes.tokens *= cp, head_shapes.pairs *= cp;
  head_shapes.heads /= cp, head_shapes.kv_heads /= cp;
  return head_shapes;
}

std::vector<Operator> exchange_tokens_for_heads(const std::vector<Operator>& core, const RankShapes& shapes,
                                                std::int64_t cp) {
  const AttentionBytes own = attention_bytes(shapes, cp);
  Operator out, back;
  out.name = "tokens_to_heads";
  out.forward = out.backward = all_to_alls(out.name, {own.queries, own.keys, own.values});
  back.name = "heads_to_tokens";
  back.forward = back.backward = all_to_alls(back.name, {own.outputs});
  std::vector<Operator> all{std::move(out)};
  all.insert(all.end(), core.begin(), core.end());
  all.push_back(std::move(back));
  return all;
}

Operator gather_columns(std::string_view name, const RankShapes& shapes, std::int64_t columns) {
  const std::int64_t bytes = 2 * shapes.samples * shapes.keys * columns;
  Operator result;
  result.name = name;
  block_on(result.forward, name, Kind::all_gather, bytes, Role::context);
  result.forward.push_back(kernel(memory_bound(name, 2 * bytes)));
  result.backward.push_back(kernel(memory_bound(name, 4 * bytes)));  // zeros are written; gradients added to them
  block_on(result.backward, name, Kind::reduce_scatter, bytes, Role::context);
  return result;
}

std::int64_t gathered_bytes(const Strategy& strategy, RankShapes shapes) {
  const bool by_blocks = strategy.cp_comm == ContextExchange::gathered_blocks;
  if (strategy.cp == 1 || (!by_blocks && strategy.cp_comm != ContextExchange::all_gather)) return 0;
  if (by_blocks && !strategy.stack.grouped_query_fusion) shapes.kv_heads = shapes.heads;
  const AttentionBytes own = attention_bytes(shapes, strategy.cp);
  const std::int64_t own_bytes = own.keys + own.values, all = strategy.cp * own_bytes;
  return by_blocks ? all + 2 * 2 * own_bytes : 2 * all;
}

}  // namespace manyworlds::core::workload
