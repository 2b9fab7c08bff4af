// Kernel by kernel: what is computed, and the tensors that are read and written.
#include "core/workload/mixers/scan_kernels.hpp"

#include <string_view>

#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::KernelClass;

/// What the kernels of Mamba-2's scan move, in bytes, and compute.
struct StateSpaceWork {
  std::int64_t inputs;    // x, and as large its output and the gradients of both
  std::int64_t keys;      // B, and as large C
  std::int64_t steps;     // a step size or a decay of every token and head, in fp32
  std::int64_t products;  // C B of every pair in a chunk, in fp32
  std::int64_t states;    // in 16 bits
  // FLOPs: of inputs and B to states, or of states and C to outputs; inside chunks, where the mask leaves half of the
  // pairs; of C and B.
  std::int64_t to_states, inside, of_products;

  explicit StateSpaceWork(const StateSpaceSizes& s)
      : inputs(2 * s.tokens * s.heads * s.head_dim),
        keys(2 * s.tokens * s.groups * s.state),
        steps(4 * s.tokens * s.heads),
        products(4 * s.tokens * s.chunk * s.groups),
        states(2 * s.states()),
        to_states(2 * s.tokens * s.heads * s.head_dim * s.state),
        inside(s.tokens * s.heads * s.head_dim * s.chunk),
        of_products(2 * s.tokens * s.groups * s.chunk * s.state) {}
};

void add_state_space(OpList& ops, std::string_view name, std::int64_t flops, std::int64_t bytes) {
  ops.push_back(kernel(compute::chunked_scan(name, KernelClass::state_space, bytes, flops)));
}

/// Steps and decays, states of single chunks, states before chunks, products of C and B: what the backward pass
/// computes again, with states in fp32 and a copy of the step sizes.
void add_states(OpList& ops, const StateSpaceWork& w, bool again) {
  add_state_space(ops, "mixer_steps", 0, 2 * w.steps + w.steps / 2 + (again ? w.steps : 0));
  add_state_space(ops, "mixer_chunk_states", w.to_states, w.inputs + w.keys + 2 * w.steps + 2 * w.states);
  add_state_space(ops, "mixer_pass_states", 0, (again ? 4 : 3) * w.states);
  add_state_space(ops, "mixer_chunk_products", w.of_products, 2 * w.keys + w.products);
}

}  // namespace

OpList state_space_forward(const StateSpaceSizes& sizes) {
  const StateSpaceWork w(sizes);
  OpList ops;
  add_states(ops, w, false);
  add_state_space(ops, "mixer_chunk_scan", w.to_states + w.inside,
                  2 * w.inputs + w.products + w.keys + 2 * w.steps + w.states);
  return ops;
}

OpList state_space_backward(const StateSpaceSizes& sizes) {
  const StateSpaceWork w(sizes);
  OpList ops;
  const auto add = [&](std::string_view name, std::int64_t flops, std::int64_t bytes) {
    add_state_space(ops, name, flops, bytes);
  };
  add_states(ops, w, true);
  add("mixer_state_gradient", w.to_states, w.inputs + w.keys + w.steps + 2 * w.states);
  add("mixer_pass_state_gradients", 0, 6 * w.states);  // two in fp32 are read, two written in 16 bits
  add("mixer_input_gradient", w.to_states + w.inside, 3 * w.inputs + w.products + w.keys + 3 * w.steps + w.states);
  add("mixer_b_gradient", w.to_states, w.inputs + 3 * w.keys + 2 * w.steps + w.states);  // written in fp32, as is that
  add("mixer_c_gradient", w.to_states, w.inputs + 3 * w.keys + w.steps + w.states);      // of C
  add("mixer_product_gradient", w.inside, 2 * w.inputs + w.products + 2 * w.steps);
  for (const char* name : {"mixer_b_of_products", "mixer_c_of_products"})  // added to those, in fp32
    add(name, w.of_products, w.products + 4 * w.keys);
  add("mixer_decay_gradient", w.inside, 2 * w.inputs + w.products + 3 * w.steps);
  add("mixer_steps_gradient", 0, 5 * w.steps);
  return ops;
}

namespace {

/// What the kernels of the delta rule move, in bytes, and compute.
struct DeltaRuleWork {
  std::int64_t keys;      // queries or keys, of key heads
  std::int64_t wide;      // corrected keys, or gradients of keys, of all value heads
  std::int64_t values;    // values, and as large outputs
  std::int64_t decays;    // one number of every token and value head, in fp32
  std::int64_t matrices;  // one of chunk x chunk for each chunk and value head
  std::int64_t states;
  // FLOPs of one product: of a chunk's pairs with keys, with values, of keys with a state, of two matrices.
  std::int64_t pairs_by_keys, pairs_by_values, keys_by_states, pairs_by_pairs;

  explicit DeltaRuleWork(const DeltaRuleSizes& s)
      : keys(2 * s.tokens * s.key_heads * s.key_dim),
        wide(2 * s.tokens * s.value_heads * s.key_dim),
        values(2 * s.tokens * s.value_heads * s.value_dim),
        decays(4 * s.tokens * s.value_heads),
        matrices(2 * s.tokens * s.value_heads * s.chunk),
        states(2 * s.states()),
        pairs_by_keys(2 * s.chunks_of_heads() * s.chunk * s.chunk * s.key_dim),
        pairs_by_values(2 * s.chunks_of_heads() * s.chunk * s.chunk * s.value_dim),
        keys_by_states(2 * s.states() * s.chunk),
        pairs_by_pairs(2 * s.chunks_of_heads() * s.chunk * s.chunk * s.chunk) {}
};

void add_delta_rule(OpList& ops, std::string_view name, std::int64_t flops, std::int64_t bytes,
                    std::int64_t serial_chunks = 0) {
  ops.push_back(kernel(compute::chunked_scan(name, KernelClass::delta_rule, bytes, flops, serial_chunks)));
}

/// Keys and values corrected by the inverse of each chunk's matrix; then the states, chunk after chunk.
void add_corrected(OpList& ops, const DeltaRuleWork& w, std::int64_t serial_chunks) {
  add_delta_rule(ops, "mixer_corrections", w.pairs_by_keys + w.pairs_by_values,
                 w.keys + w.values + w.matrices + w.wide + w.values + w.decays + w.decays / 2);
  add_delta_rule(ops, "mixer_states", 2 * w.keys_by_states, w.keys + w.wide + 2 * w.values + w.states + w.decays,
                 serial_chunks);
}

}  // namespace

OpList delta_rule_forward(const DeltaRuleSizes& sizes) {
  const DeltaRuleWork w(sizes);
  OpList ops;
  add_delta_rule(ops, "mixer_decays", 0, 2 * w.decays);
  add_delta_rule(ops, "mixer_key_products", w.pairs_by_keys, w.keys + 2 * w.matrices + w.decays + w.decays / 2);
  // Blocks of the triangle are inverted and multiplied: a third of a product of two matrices, for each chunk.
  const std::int64_t inverse = sizes.chunks_of_heads() * (2 * sizes.chunk * sizes.chunk * sizes.chunk / 3);
  add_delta_rule(ops, "mixer_inverse", inverse, 3 * w.matrices);
  add_corrected(ops, w, sizes.serial_chunks);
  add_delta_rule(ops, "mixer_output", w.keys_by_states + w.pairs_by_keys + w.pairs_by_values,
                 2 * w.keys + 2 * w.values + w.states + w.decays);
  return ops;
}

OpList delta_rule_backward(const DeltaRuleSizes& sizes) {
  const DeltaRuleWork w(sizes);
  OpList ops;
  add_corrected(ops, w, sizes.serial_chunks);
  add_delta_rule(ops, "mixer_value_gradient", w.pairs_by_keys + w.pairs_by_values,
                 2 * w.keys + 2 * w.values + w.decays);
  add_delta_rule(ops, "mixer_state_gradient", 3 * w.keys_by_states,
                 2 * w.keys + w.wide + 3 * w.values + w.states + w.decays, sizes.serial_chunks);
  add_delta_rule(ops, "mixer_input_gradient", 3 * w.keys_by_states + w.pairs_by_values + 3 * w.pairs_by_keys,
                 2 * w.keys + 4 * w.wide + 3 * w.values + 2 * w.states + 2 * w.decays);
  add_delta_rule(ops, "mixer_correction_gradient", 5 * w.pairs_by_keys + 2 * w.pairs_by_values + 2 * w.pairs_by_pairs,
                 w.keys + w.matrices + 2 * w.wide + 3 * w.values + 3 * w.decays + w.decays / 2);
  // Gradients of keys from both kernels, summed over the value heads of a key head, and those of decays.
  const std::int64_t by_key_heads = sizes.key_heads == sizes.value_heads ? 0 : 2 * w.wide + 2 * w.keys;
  add_delta_rule(ops, "mixer_sum_gradients", 0, 3 * w.wide + by_key_heads + 3 * w.decays);
  return ops;
}

}  // namespace manyworlds::core::workload
