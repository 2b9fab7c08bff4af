// All-gathers and all-to-alls around the attention core.
#include "core/workload/layer/context_exchange.hpp"

#include <utility>

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::memory_bound;

/// Bytes of queries, keys, values and outputs on one rank, in 16 bits.
struct AttentionBytes {
  std::int64_t queries, keys, values, outputs;
};

AttentionBytes attention_bytes(const RankShapes& shapes) {
  const std::int64_t bytes = 2 * shapes.tokens;
  return {bytes * shapes.query_width(), bytes * shapes.kv_heads * shapes.head_dim,
          bytes * shapes.kv_heads * shapes.value_dim, bytes * shapes.value_width()};
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

std::vector<Operator> gather_keys(const std::vector<Operator>& core, const RankShapes& shapes, std::int64_t cp) {
  const AttentionBytes own = attention_bytes(shapes);
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

RankShapes head_parallel_shapes(const RankShapes& shapes, std::int64_t cp) {
  RankShapes head_shapes = shapes;
  head_shapes.sequence *= cp, head_shapes.tokens *= cp, head_shapes.pairs *= cp;
  head_shapes.heads /= cp, head_shapes.kv_heads /= cp;
  return head_shapes;
}

std::vector<Operator> exchange_tokens_for_heads(const std::vector<Operator>& core, const RankShapes& shapes) {
  const AttentionBytes own = attention_bytes(shapes);
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

std::int64_t gathered_key_bytes(const RankShapes& shapes, std::int64_t cp) {
  const AttentionBytes own = attention_bytes(shapes);
  return cp * (own.keys + own.values);
}

}  // namespace manyworlds::core::workload
