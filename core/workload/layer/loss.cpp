#include "core/workload/layer/loss.hpp"

#include "core/base/error.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::memory_bound;

/// Loss by PyTorch's kernels, one by one: a cast to fp32, a log-softmax, its gradient from one of zeros, and a cast
/// back; over a sharded vocabulary maximum, difference, exponential, sum and difference, and as many backward
/// (torch.distributed.tensor.parallel, loss.py). Bytes of a logit; rows that a kernel reads again come from caches.
Operator cross_entropy_by_parts(const RankShapes& shapes) {
  const bool sharded = shapes.tensor_parallel > 1;
  Operator result = sharded ? chain("cross_entropy", shapes.logits(), {6, 4}, {4, 8, 8, 12, 6}, 4 * shapes.logits())
                            : chain("cross_entropy", shapes.logits(), {6, 8}, {4, 12, 6}, 4 * shapes.logits());
  if (!sharded) return result;
  block_on(result.forward, "loss_maximum", Kind::all_reduce, 4 * shapes.tokens);
  for (const std::int64_t bytes : {8, 8, 4})
    result.forward.push_back(kernel(memory_bound("loss_exponentials", bytes * shapes.logits())));
  block_on(result.forward, "loss_sum", Kind::all_reduce, 4 * shapes.tokens);
  result.forward.push_back(kernel(memory_bound("loss", 8 * shapes.logits())));
  return result;
}

/// The part of tokens that one chunk has, with hidden states that are whole on every rank.
RankShapes chunk_shapes(const RankShapes& shapes) {
  const std::int64_t chunks = shapes.stack.loss_chunks;
  MANYWORLDS_CHECK(shapes.tokens % chunks == 0, "{} tokens in {} chunks", shapes.tokens, chunks);
  RankShapes chunk = shapes;
  chunk.tokens /= chunks;
  return chunk;
}

/// The vocabulary layer on a chunk, without collectives: what its input and that input's gradient need of them happens
/// once for all chunks.
Operator vocabulary_of_chunk(RankShapes chunk) {
  chunk.tensor_parallel = 1;
  chunk.sequence_parallel = false;
  return column_parallel(chunk, {"vocabulary", chunk.hidden, chunk.vocabulary, false});
}

/// Gathers hidden states, or scatters the sum of their gradients, of which tensors that do not begin with the sequence
/// need a copy.
void exchange_hidden_states(OpList& ops, const RankShapes& shapes, Kind kind) {
  const bool copies = shapes.sequence_parallel && !shapes.stack.sequence_first;
  const auto copy = [&] {
    if (copies) ops.push_back(kernel(memory_bound("copy_sequence", 2 * shapes.hidden_bytes())));
  };
  if (kind == Kind::reduce_scatter) copy();
  block_on(ops, "vocabulary", kind, shapes.hidden_bytes());
  if (kind == Kind::all_gather) copy();
}

}  // namespace

Operator cross_entropy(const RankShapes& shapes) {
  if (!shapes.stack.cross_entropy_fusion) return cross_entropy_by_parts(shapes);
  // Over a sharded vocabulary, pass one casts to fp32 (saved, counted as logits) and finds the maximum, pass two
  // exponentiates and sums; each ends in an all-reduce over the tokens.
  Operator result;
  result.name = "cross_entropy";
  result.saved_bytes = 4 * shapes.logits();
  result.forward.push_back(kernel(memory_bound("loss_maximum", 6 * shapes.logits())));
  if (shapes.tensor_parallel > 1) block_on(result.forward, "loss_maximum", Kind::all_reduce, 4 * shapes.tokens);
  result.forward.push_back(kernel(memory_bound("loss_exponentials", 8 * shapes.logits())));
  if (shapes.tensor_parallel > 1) block_on(result.forward, "loss_sum", Kind::all_reduce, 8 * shapes.tokens);
  result.forward.push_back(kernel(memory_bound("loss", 12 * shapes.tokens)));
  result.backward.push_back(kernel(memory_bound("loss_gradient", 6 * shapes.logits())));
  return result;
}

Operator loss_in_chunks(const RankShapes& shapes, const Model& model) {
  const RankShapes chunk = chunk_shapes(shapes);
  const Operator vocabulary = vocabulary_of_chunk(chunk), loss = cross_entropy(chunk);
  const bool trains = !is_inference(model), has_shards = shapes.tensor_parallel > 1;
  const auto add_gradient_kernel = [](OpList& ops, std::int64_t bytes) {
    ops.push_back(kernel(memory_bound("hidden_gradient", bytes)));
  };
  const std::int64_t elements = shapes.tokens * shapes.hidden, of_chunk = chunk.tokens * shapes.hidden;
  Operator result;
  result.name = "vocabulary_in_chunks";
  if (shapes.sequence_parallel) exchange_hidden_states(result.forward, shapes, Kind::all_gather);
  if (trains) add_gradient_kernel(result.forward, 4 * elements);  // zeros in fp32
  for (std::int64_t i = 0; i < shapes.stack.loss_chunks; ++i) {
    append(result.forward, vocabulary.forward);
    append(result.forward, loss.forward);
    if (!trains) continue;
    append(result.forward, loss.backward);
    for (const WorkItem& work : vocabulary.backward)
      if (!work.computes_weight_gradient() || !is_frozen(model)) result.forward.push_back(work);
    add_gradient_kernel(result.forward, 6 * of_chunk);  // to fp32
    add_gradient_kernel(result.forward, 8 * of_chunk);  // to its place
  }
  if (!trains) return result;
  add_gradient_kernel(result.forward, 6 * elements);  // to 16 bits
  result.saved_bytes = kChunkedGradientBytes * elements;
  if (has_shards)
    exchange_hidden_states(result.backward, shapes, shapes.sequence_parallel ? Kind::reduce_scatter : Kind::all_reduce);
  return result;
}

}  // namespace manyworlds::core::workload
