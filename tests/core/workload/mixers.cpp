// Mixers: the kernels of their scans against loops over tokens and lists of the tensors that the sources read and
// write, and what their parts have besides.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/mixers/scan_kernels.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

using I = std::int64_t;

/// A kernel of a scan as its source has it: its name here, its FLOPs, and the tensors that it reads and writes.
struct SourceKernel {
  std::string name;
  I flops = 0;
  std::vector<std::string> tensors;
};

/// Bytes of tensors by their names in the source.
using Tensors = std::map<std::string, I>;

void check_kernels(const OpList& ops, const std::vector<SourceKernel>& source, const Tensors& tensors,
                   compute::KernelClass kernel_class) {
  REQUIRE(ops.size() == source.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const compute::Kernel& kernel = ops[i].kernel()->shape;
    CAPTURE(source[i].name);
    I bytes = 0;
    for (const std::string& tensor : source[i].tensors) bytes += tensors.at(tensor);
    CHECK(kernel.name == source[i].name);
    CHECK(kernel.flops == source[i].flops);
    CHECK(kernel.bytes == bytes);
    CHECK(kernel.kernel_class == kernel_class);
    CHECK(ops[i].kernel()->launches == 1);
  }
}

/// Sizes without common factors; the last chunk of a sample has four tokens of eight.
StateSpaceSizes uneven_scan() {
  StateSpaceSizes sizes;
  sizes.tokens = 2 * 20, sizes.chunk = 8, sizes.chunks = 2 * 3;
  sizes.heads = 6, sizes.groups = 3, sizes.head_dim = 5, sizes.state = 7;
  return sizes;
}

/// FLOPs of Mamba-2's scan, counted one by one.
struct ScanFlops {
  I to_states = 0;  // of B of a token and its inputs, or of C and a state
  I inside = 0;     // of a token with those of its chunk, half of which it may not see
  I products = 0;   // of C of a token and B of another
};

ScanFlops counted_scan(const StateSpaceSizes& s) {
  ScanFlops count;
  for (I token = 0; token < s.tokens; ++token) {
    for (I head = 0; head < s.heads; ++head)
      for (I of_head = 0; of_head < s.head_dim; ++of_head) {
        for (I i = 0; i < s.state; ++i) count.to_states += 2;
        for (I other = 0; other < s.chunk; ++other) count.inside += 1;
      }
    for (I group = 0; group < s.groups; ++group)
      for (I other = 0; other < s.chunk; ++other)
        for (I i = 0; i < s.state; ++i) count.products += 2;
  }
  return count;
}

Tensors scan_tensors(const StateSpaceSizes& s) {
  const I x = s.tokens * s.heads * s.head_dim, b = s.tokens * s.groups * s.state, step = s.tokens * s.heads;
  const I states = s.chunks * s.heads * s.head_dim * s.state, cb = s.tokens * s.chunk * s.groups;
  Tensors all{{"x", 2 * x}, {"out", 2 * x}, {"dout", 2 * x}, {"dx", 2 * x}};
  for (const char* name : {"B", "C", "dB", "dC"}) all[name] = 2 * b;
  for (const char* name : {"dB fp32", "dC fp32"}) all[name] = 4 * b;
  for (const char* name : {"dt in", "dt copy", "ddt in"}) all[name] = 2 * step;
  for (const char* name : {"dt", "dA", "ddt", "ddA", "ddA next", "ddA previous"}) all[name] = 4 * step;
  for (const char* name : {"CB", "dCB"}) all[name] = 4 * cb;
  for (const char* name : {"states", "dstates"}) all[name] = 2 * states;
  for (const char* name : {"states fp32", "passed fp32", "dstates fp32"}) all[name] = 4 * states;
  return all;
}

}  // namespace

TEST_CASE("the kernels of Mamba-2's scan have the FLOPs of its loops and the bytes of its tensors") {
  // mamba_ssm @e9594ce, ops/triton/ssd_combined.py, _mamba_chunk_scan_combined_fwd() and _bwd().
  const StateSpaceSizes sizes = uneven_scan();
  const ScanFlops count = counted_scan(sizes);
  const Tensors tensors = scan_tensors(sizes);
  check_kernels(state_space_forward(sizes),
                {{"mixer_steps", 0, {"dt in", "dt", "dA"}},
                 {"mixer_chunk_states", count.to_states, {"x", "B", "dt", "dA", "states fp32"}},
                 {"mixer_pass_states", 0, {"states fp32", "states"}},
                 {"mixer_chunk_products", count.products, {"B", "C", "CB"}},
                 {"mixer_chunk_scan", count.to_states + count.inside, {"CB", "x", "dt", "dA", "C", "states", "out"}}},
                tensors, compute::KernelClass::state_space);
  check_kernels(state_space_backward(sizes),
                {{"mixer_steps", 0, {"dt in", "dt copy", "dt copy", "dt", "dA"}},
                 {"mixer_chunk_states", count.to_states, {"x", "B", "dt", "dA", "states fp32"}},
                 {"mixer_pass_states", 0, {"states fp32", "passed fp32"}},
                 {"mixer_chunk_products", count.products, {"B", "C", "CB"}},
                 {"mixer_state_gradient", count.to_states, {"dout", "C", "dA", "dstates fp32"}},
                 {"mixer_pass_state_gradients", 0, {"passed fp32", "dstates fp32", "states", "dstates"}},
                 {"mixer_input_gradient",
                  count.to_states + count.inside,
                  {"x", "dout", "CB", "B", "dt", "dA", "dstates", "dx", "ddt"}},
                 {"mixer_b_gradient", count.to_states, {"x", "B", "dt", "dA", "dstates", "dB fp32"}},
                 {"mixer_c_gradient", count.to_states, {"dout", "C", "dA", "states", "dC fp32"}},
                 {"mixer_product_gradient", count.inside, {"x", "dout", "dt", "dA", "dCB"}},
                 {"mixer_b_of_products", count.products, {"C", "dCB", "dB fp32", "dB"}},
                 {"mixer_c_of_products", count.products, {"B", "dCB", "dC fp32", "dC"}},
                 {"mixer_decay_gradient", count.inside, {"x", "dt", "dA", "dout", "CB", "ddA"}},
                 {"mixer_steps_gradient", 0, {"ddA", "ddA next", "ddA previous", "ddt", "dt in", "ddt in"}}},
                tensors, compute::KernelClass::state_space);
}

namespace {

DeltaRuleSizes uneven_rule() {
  DeltaRuleSizes sizes;
  sizes.tokens = 2 * 20, sizes.chunk = 8, sizes.chunks = 2 * 3, sizes.serial_chunks = 3;
  sizes.key_heads = 2, sizes.value_heads = 6, sizes.key_dim = 5, sizes.value_dim = 7;
  return sizes;
}

/// FLOPs of products of matrices in every chunk of every value head, counted one by one.
class ChunkProducts {
 public:
  explicit ChunkProducts(const DeltaRuleSizes& sizes) : sizes_(sizes) {}
  I operator()(I rows, I inner, I columns) const {
    I count = 0;
    for (I chunk = 0; chunk < sizes_.chunks; ++chunk)
      for (I head = 0; head < sizes_.value_heads; ++head)
        for (I row = 0; row < rows; ++row)
          for (I column = 0; column < columns; ++column) count += 2 * inner;
    return count;
  }

 private:
  DeltaRuleSizes sizes_;
};

Tensors rule_tensors(const DeltaRuleSizes& s) {
  const I step = s.tokens * s.value_heads, keys = s.tokens * s.key_heads * s.key_dim, wide = step * s.key_dim;
  const I values = step * s.value_dim, states = s.chunks * s.value_heads * s.key_dim * s.value_dim;
  Tensors all{{"A fp32", 4 * step * s.chunk}, {"A", 2 * step * s.chunk}, {"beta", 2 * step}};
  for (const char* name : {"q", "k", "dq", "dk"}) all[name] = 2 * keys;
  for (const char* name : {"w", "dw", "dq wide", "dk wide", "dk2 wide", "dk sum"}) all[name] = 2 * wide;
  for (const char* name : {"v", "u", "v new", "o", "do", "dv", "du"}) all[name] = 2 * values;
  for (const char* name : {"g in", "g", "dg", "dg2", "dg sum", "dbeta"}) all[name] = 4 * step;
  for (const char* name : {"h", "dh"}) all[name] = 2 * states;
  return all;
}

/// recompute_w_u_fwd and chunk_gated_delta_rule_fwd_h, which both passes run.
std::vector<SourceKernel> corrected(const DeltaRuleSizes& s) {
  const ChunkProducts product(s);
  const I c = s.chunk, k = s.key_dim, v = s.value_dim;
  return {{"mixer_corrections", product(c, c, k) + product(c, c, v), {"k", "v", "beta", "g", "A", "w", "u"}},
          {"mixer_states", product(c, k, v) + product(k, c, v), {"k", "w", "u", "g", "h", "v new"}}};
}

}  // namespace

TEST_CASE("the kernels of the gated delta rule have the FLOPs of its products and the bytes of its tensors") {
  // flash-linear-attention @bc3b101, fla/ops/gated_delta_rule/chunk.py, chunk_gated_delta_rule_fwd() and _bwd().
  const DeltaRuleSizes sizes = uneven_rule();
  const ChunkProducts product(sizes);
  const I c = sizes.chunk, k = sizes.key_dim, v = sizes.value_dim;
  const Tensors tensors = rule_tensors(sizes);
  std::vector<SourceKernel> forward{{"mixer_decays", 0, {"g in", "g"}},
                                    {"mixer_key_products", product(c, k, c), {"k", "beta", "g", "A fp32"}},
                                    {"mixer_inverse", 6 * 6 * (2 * c * c * c / 3), {"A fp32", "A"}}};
  for (const SourceKernel& each : corrected(sizes)) forward.push_back(each);
  // The state's share of the output; q k^T; that times values.
  forward.push_back(
      {"mixer_output", product(c, k, v) + product(c, k, c) + product(c, c, v), {"q", "k", "v new", "h", "g", "o"}});
  check_kernels(delta_rule_forward(sizes), forward, tensors, compute::KernelClass::delta_rule);

  std::vector<SourceKernel> backward = corrected(sizes);
  backward.push_back({"mixer_value_gradient", product(c, k, c) + product(c, c, v), {"q", "k", "g", "do", "dv"}});
  // k dh; q^T do; w^T dv.
  backward.push_back(
      {"mixer_state_gradient", product(c, k, v) + 2 * product(k, c, v), {"q", "k", "w", "g", "do", "dv", "dh", "du"}});
  // do h^T, v dh^T and dv h^T; do v^T; q k^T, and its gradient times k and q.
  backward.push_back({"mixer_input_gradient",
                      3 * product(c, v, k) + product(c, v, c) + product(c, k, c) + 2 * product(c, c, k),
                      {"q", "k", "v new", "w", "g", "h", "dv", "do", "dh", "dq wide", "dk wide", "dw", "dg"}});
  // A^T dw and A^T du; dw k^T and du v^T; A^T dA A^T; k k^T; dA k and dA^T k.
  backward.push_back({"mixer_correction_gradient",
                      product(c, c, k) + product(c, c, v) + product(c, k, c) + product(c, v, c) + 2 * product(c, c, c) +
                          product(c, k, c) + 2 * product(c, c, k),
                      {"k", "v", "beta", "g", "A", "dw", "du", "dk2 wide", "dv", "dbeta", "dg2"}});
  backward.push_back({"mixer_sum_gradients",
                      0,
                      {"dk wide", "dk2 wide", "dk sum", "dk sum", "dq wide", "dq", "dk", "dg", "dg2", "dg sum"}});
  check_kernels(delta_rule_backward(sizes), backward, tensors, compute::KernelClass::delta_rule);

  for (const auto& [ops, serial] : {std::pair{delta_rule_forward(sizes), 1}, {delta_rule_backward(sizes), 2}}) {
    int waiting = 0;
    for (const WorkItem& work : ops) {
      CHECK((work.kernel()->shape.m == 0 || work.kernel()->shape.m == 3));
      waiting += work.kernel()->shape.m == 3;
    }
    CHECK(waiting == serial);
  }
}

TEST_CASE("key heads that share no value heads have no gradients to add up") {
  DeltaRuleSizes sizes = uneven_rule();
  const I shared = delta_rule_backward(sizes).back().kernel()->shape.bytes;
  const I wide = 2 * sizes.tokens * 6 * 5, keys = 2 * sizes.tokens * 2 * 5;
  sizes.key_heads = sizes.value_heads;
  CHECK(delta_rule_backward(sizes).back().kernel()->shape.bytes == shared - 2 * wide - 2 * keys);
}

namespace {

Model small_model() {
  Model model = llama(4, 256, 16, 8, 512, 1'024);
  model.sequence = 512;
  return model;
}

Model of_mixer(const std::string& type, const OptionSet& own, const Model& model = small_model()) {
  return described(model, {{branch_of(model, type, own)}}, {0, 0, 0, 0});
}

const Operator& operator_of(const std::vector<Operator>& layer, std::string_view name) {
  for (const Operator& each : layer)
    if (each.name == name) return each;
  FAIL("no operator " << name);
  throw;
}

I flops_of(const OpList& ops) {
  I sum = 0;
  for (const WorkItem& work : ops)
    if (const KernelWork* kernel = work.kernel()) sum += kernel->shape.flops;
  return sum;
}

const OptionSet kMamba{{"heads", I{16}}, {"head_dim", I{32}}, {"state", I{64}}, {"groups", I{8}}, {"chunk", I{128}}};

}  // namespace

TEST_CASE("a Mamba-2 mixer is its projections, a convolution, the scan and a norm") {
  const Model model = of_mixer("mamba2", kMamba);
  const Strategy strategy = layout(1, 1, 1, 1);
  const std::vector<Operator> layer = layer_operators(model, strategy, model.layer_kind(0));
  StateSpaceSizes sizes;
  sizes.tokens = 512, sizes.chunk = 128, sizes.chunks = 4;
  sizes.heads = 16, sizes.groups = 8, sizes.head_dim = 32, sizes.state = 64;
  const I width = 16 * 32, channels = width + 2 * 8 * 64, projected = width + channels + 16;
  const Operator& scan = operator_of(layer, "mixer_scan");
  CHECK(flops_of(scan.forward) == flops_of(state_space_forward(sizes)));
  CHECK(flops_of(scan.backward) == flops_of(state_space_backward(sizes)));
  CHECK(scan.forward.front().kernel()->shape.bytes == 4 * 512 * channels);
  CHECK(scan.backward.front().kernel()->shape.bytes == 4 * 512 * channels);
  CHECK(scan.backward.back().kernel()->shape.bytes == 6 * 512 * channels);
  CHECK(operator_of(layer, "mixer_gated_norm").backward.front().kernel()->shape.bytes == 10 * 512 * width);
  CHECK(flops_of(operator_of(layer, "mixer_in").forward) == 2 * 512 * 256 * projected);
  CHECK(flops_of(operator_of(layer, "mixer_out").backward) == 2 * 2 * 512 * 256 * width);
  // Dao and Gu 2024, section 7.1: conv of inputs, B and C; a step, a decay and a skip for each head; a gated norm.
  CHECK(layer_parameters(model, strategy, model.layer_kind(0)).total() ==
        256 * projected + 5 * channels + 3 * 16 + width + width * 256 + 256);
}

TEST_CASE("gated delta nets have the parameters and projections of Qwen3.5") {
  Model model = small_model();
  model.hidden = 5'120, model.sequence = 4'096;
  const OptionSet own{{"key_heads", I{16}}, {"value_heads", I{48}}, {"key_dim", I{128}}, {"value_dim", I{128}}};
  const Model listed = of_mixer("gated_delta", own, model);
  const I channels = 2 * 16 * 128 + 48 * 128;  // modeling_qwen3_5.py: in_proj_qkv, in_proj_z, in_proj_b and in_proj_a
  CHECK(layer_parameters(listed, layout(1, 1, 1, 1), listed.layer_kind(0)).total() ==
        5'120 * (channels + 48 * 128 + 2 * 48) + 4 * channels + 2 * 48 + 128 + 48 * 128 * 5'120 + 5'120);
  DeltaRuleSizes sizes;
  sizes.tokens = 4'096, sizes.chunk = 64, sizes.chunks = sizes.serial_chunks = 64;
  sizes.key_heads = 16, sizes.value_heads = 48, sizes.key_dim = sizes.value_dim = 128;
  const std::vector<Operator> layer = layer_operators(listed, layout(1, 1, 1, 1), listed.layer_kind(0));
  const Operator& rule = operator_of(layer, "mixer_delta_rule");
  CHECK(flops_of(rule.forward) == flops_of(delta_rule_forward(sizes)));
  CHECK(flops_of(rule.backward) == flops_of(delta_rule_backward(sizes)));
  CHECK(rule.forward.front().kernel()->shape.bytes == 4 * 4'096 * channels);
  // Forward by chunks of C: 6 C^2 K + 4 C^2 V + 6 C K V + 2 C^3 / 3 for each chunk and value head.
  CHECK(flops_of(rule.forward) == 64 * 48 * (10 * I{64} * 64 * 128 + 6 * I{64} * 128 * 128 + 2 * I{64} * 64 * 64 / 3));
}

TEST_CASE("linear attention is its projections, a scan with as many groups as heads, and a norm over all of them") {
  Model model = small_model();
  model.hidden = 6'144, model.sequence = 4'096;
  const OptionSet own{{"heads", I{64}}, {"width", I{128}}};
  const Model listed = of_mixer("linear_attention", own, model);
  // modeling_minimax.py, MiniMaxLightningAttention: qkv_proj, output_gate, out_proj and norm; and the layer's norm.
  CHECK(layer_parameters(listed, layout(1, 1, 1, 1), listed.layer_kind(0)).total() ==
        6'144 * (3 * 8'192 + 8'192) + 8'192 * 6'144 + 8'192 + 6'144);
  // By chunks: products of all queries and keys, of those that a token sees with values, of queries with the state, and
  // of keys with values, which are added to it.
  I flops = 0;
  constexpr I kChunk = 256, kWidth = 128;
  for (I chunk = 0; chunk < 4'096 / kChunk; ++chunk)
    for (I head = 0; head < 64; ++head)
      flops += 2 * kChunk * kChunk * kWidth + 2 * kChunk * kChunk * kWidth / 2 + 2 * 2 * kChunk * kWidth * kWidth;
  const std::vector<Operator> layer = layer_operators(listed, layout(1, 1, 1, 1), listed.layer_kind(0));
  CHECK(flops_of(operator_of(layer, "mixer_linear_attention").forward) == flops);
  // Tensor ranks have their heads, and add up squares of all tokens.
  const std::vector<Operator> shared = layer_operators(listed, layout(4, 1, 1, 1), listed.layer_kind(0));
  CHECK(flops_of(operator_of(shared, "mixer_linear_attention").forward) == flops / 4);
  const Operator& norm = operator_of(shared, "mixer_gated_norm");
  for (const OpList* ops : {&norm.forward, &norm.backward}) {
    const auto sum = std::find_if(ops->begin(), ops->end(), [](const WorkItem& one) { return one.start() != nullptr; });
    REQUIRE(sum != ops->end());
    CHECK(sum->start()->kind == collective::Kind::all_reduce);
    CHECK(sum->start()->bytes == 4 * 4'096);
  }
}

namespace {

/// Bytes of all-to-alls, and of copies: what is read and written.
struct Exchanged {
  std::vector<I> sent;
  I copied = 0;
};

Exchanged exchanged(const OpList& ops) {
  Exchanged result;
  for (const WorkItem& work : ops) {
    if (const CollectiveStart* start = work.start()) {
      CHECK(start->kind == collective::Kind::all_to_all);
      CHECK(start->role == Role::context);
      result.sent.push_back(start->bytes);
    } else if (const KernelWork* kernel = work.kernel()) {
      result.copied += kernel->shape.bytes;
    }
  }
  return result;
}

std::vector<Operator> layer_on(const Model& model, I tp, I cp) {
  Strategy strategy = layout(tp, 1, 1, 1);
  strategy.cp = cp;
  return layer_operators(model, strategy, model.layer_kind(0));
}

}  // namespace

TEST_CASE("context-parallel ranks of a Mamba-2 mixer trade gates, inputs, B, C and steps, one after the other") {
  // Megatron-LM, core/ssm/mamba_context_parallel.py, pre_conv_ssm() and post_conv_ssm().
  const std::vector<Operator> layer = layer_on(of_mixer("mamba2", kMamba), 2, 4);
  const I tokens = 512 / 4, width = 2 * tokens * 8 * 32, group = 2 * tokens * 4 * 64, steps = 2 * tokens * 8;
  const I all = 2 * width + 2 * group + steps;
  const Operator &out = operator_of(layer, "tokens_to_heads"), &back = operator_of(layer, "heads_to_tokens");
  const Exchanged ahead = exchanged(out.forward), gradients = exchanged(out.backward);
  CHECK(ahead.sent == std::vector<I>{width, width, group, group, steps});
  CHECK(gradients.sent == ahead.sent);
  CHECK(ahead.copied == 3 * 2 * all);      // into the order of receivers; joined; into the order of tokens
  CHECK(gradients.copied == 4 * 2 * all);  // the tensors are taken out of the joined gradients, besides
  for (const OpList* ops : {&back.forward, &back.backward}) {
    CHECK(exchanged(*ops).sent == std::vector<I>{width});
    CHECK(exchanged(*ops).copied == 2 * 2 * width);
  }
}

TEST_CASE("a group whose heads are on several context-parallel ranks is sent to each, and computed there") {
  OptionSet own = kMamba;
  own["groups"] = I{2};
  const Model model = of_mixer("mamba2", own);
  const I tokens = 512 / 4, group = 2 * tokens * 2 * 64, width = 2 * tokens * 16 * 32, steps = 2 * tokens * 16;
  const std::vector<Operator> one = layer_on(model, 1, 4), whole = layer_on(model, 1, 1);
  const Operator& out = operator_of(one, "tokens_to_heads");
  CHECK(exchanged(out.forward).sent == std::vector<I>{width, width, 2 * group, 2 * group, steps});
  const I all = 2 * width + 4 * group + steps;
  CHECK(exchanged(out.forward).copied == 3 * 2 * all + 2 * 3 * group);  // one is read, two are written
  CHECK(exchanged(out.backward).copied == 3 * 2 * all + 2 * (all - 2 * group) + 2 * 3 * group);
  const Operator &scan = operator_of(one, "mixer_scan"), &undivided = operator_of(whole, "mixer_scan");
  // Four ranks multiply C and B of one group each, where there are two; backward these products and two more.
  const I products = 2 * I{512} * 128 * 64;
  CHECK(4 * flops_of(scan.forward) == flops_of(undivided.forward) + 2 * products);
  CHECK(4 * flops_of(scan.backward) == flops_of(undivided.backward) + 2 * 3 * products);
  CHECK(4 * scan.saved_bytes == undivided.saved_bytes + 2 * 512 * 2 * 2 * 64);
}

TEST_CASE("context-parallel ranks of a gated delta net trade all columns at once, and outputs behind their norm") {
  // Megatron-LM, core/ssm/gated_delta_net/common.py, a2a_cp_to_hp() and a2a_hp_to_cp().
  const OptionSet own{{"key_heads", I{8}}, {"value_heads", I{16}}, {"key_dim", I{32}}, {"value_dim", I{64}}};
  const Model model = of_mixer("gated_delta", own);
  const std::vector<Operator> layer = layer_on(model, 2, 2), whole = layer_on(model, 2, 1);
  const I tokens = 512 / 2, columns = 2 * 4 * 32 + 2 * 8 * 64 + 2 * 8, values = 8 * 64;
  const Operator &out = operator_of(layer, "tokens_to_heads"), &back = operator_of(layer, "heads_to_tokens");
  for (const OpList* ops : {&out.forward, &out.backward})
    CHECK(exchanged(*ops).sent == std::vector<I>{2 * tokens * columns});
  CHECK(exchanged(out.forward).copied == 3 * 2 * 2 * tokens * columns);
  CHECK(exchanged(back.forward).sent == std::vector<I>{2 * tokens * values});
  std::vector<std::string> names;
  for (const Operator& each : layer) names.emplace_back(each.name);
  const auto at = [&](const char* name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  CHECK(at("mixer_gated_norm") < at("heads_to_tokens"));
  CHECK(2 * operator_of(layer, "mixer_delta_rule").saved_bytes == operator_of(whole, "mixer_delta_rule").saved_bytes);
  // Each rank computes all chunks of a sample one after the other.
  const auto chunks = [&](const std::vector<Operator>& of) {
    I most = 0;
    for (const WorkItem& work : operator_of(of, "mixer_delta_rule").forward)
      if (const KernelWork* kernel = work.kernel()) most = std::max(most, kernel->shape.m);
    return most;
  };
  CHECK(chunks(layer) == 512 / 64);
  CHECK(chunks(whole) == 512 / 64);
}
