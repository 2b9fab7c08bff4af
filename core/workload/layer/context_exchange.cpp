// Gathers and all-to-alls around the attention core.
#include "core/workload/layer/context_exchange.hpp"

#include <utility>

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::memory_bound;

/// Bytes in 16 bits of queries, keys, values and outputs on one rank.
struct Tensors {
  std::int64_t queries, keys, values, outputs;
};

Tensors tensors_of(const Cut& rank) {
  const std::int64_t bytes = 2 * rank.tokens;
  return {bytes * rank.query_width(), bytes * rank.kv_heads * rank.head_dim, bytes * rank.kv_heads * rank.value_dim,
          bytes * rank.value_width()};
}

/// Each of `bytes` is put in order and leaves while the next is; then what has come is put in order.
Tape all_to_alls(std::string_view name, std::initializer_list<std::int64_t> bytes) {
  Tape tape;
  for (const std::int64_t each : bytes) {
    tape.push_back(kernel(memory_bound(name, 2 * each)));
    start(tape, name, Kind::all_to_all, each, Role::context);
  }
  join(tape);
  for (const std::int64_t each : bytes) tape.push_back(kernel(memory_bound(name, 2 * each)));
  return tape;
}

}  // namespace

std::vector<Operator> gather_keys(const std::vector<Operator>& core, const Cut& rank, std::int64_t cp) {
  const Tensors own = tensors_of(rank);
  const auto each = [&](std::string_view name, Kind kind) {
    Tape tape;
    for (const std::int64_t bytes : {own.keys, own.values}) start(tape, name, kind, cp * bytes, Role::context);
    join(tape);
    return tape;
  };
  Operator gathered, again;
  gathered.name = "gather_keys";
  gathered.forward = each(gathered.name, Kind::all_gather);
  gathered.backward = each(gathered.name, Kind::reduce_scatter);
  again.name = "gather_keys_again";
  again.backward = each(again.name, Kind::all_gather);
  std::vector<Operator> all{std::move(gathered)};
  all.insert(all.end(), core.begin(), core.end());
  all.push_back(std::move(again));
  return all;
}

Cut turned_to_heads(const Cut& rank, std::int64_t cp) {
  Cut turned = rank;
  turned.sequence *= cp, turned.tokens *= cp, turned.pairs *= cp;
  turned.heads /= cp, turned.kv_heads /= cp;
  return turned;
}

std::vector<Operator> turn_to_heads(const std::vector<Operator>& core, const Cut& rank) {
  const Tensors own = tensors_of(rank);
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

std::int64_t gathered_key_bytes(const Cut& rank, std::int64_t cp) {
  const Tensors own = tensors_of(rank);
  return cp * (own.keys + own.values);
}

}  // namespace manyworlds::core::workload
