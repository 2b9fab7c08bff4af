// Joint, cross and sparse attention of ranks that share the tokens of a sample: their FLOPs, what they exchange and
// what they keep, against plain loops and closed forms.
#include <catch2/catch.hpp>

#include "core/memory/footprint.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/operator_sums.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;
using collective::Kind;

namespace {

using I = std::int64_t;

constexpr I kSamples = 2, kTokens = 64, kText = 16, kRead = 24, kHidden = 32, kHeads = 8, kKeyHeads = 4, kWidth = 16;

/// A model with shared key heads that are wider than the stream has room for, so that no two sizes are alike.
Model uneven_model() {
  Model model = llama(1, kHidden, kHeads, kKeyHeads, 48, 128);
  model.sequence = kTokens, model.head_dim = kWidth;
  return model;
}

/// Latent attention: no two of its widths are alike.
Model latent_model() {
  Model model = llama(1, kHidden, kHeads, kHeads, 48, 128);
  model.sequence = kTokens, model.head_dim = kWidth;
  model.attention = Attention::latent;
  model.query_rank = 40, model.kv_rank = 24, model.rotary_dim = 8;
  return model;
}

Model of_part(const Model& model, const std::string& type, const OptionSet& own) {
  return described(model, {{branch_of(model, type, own, {BranchNorms::none, false})}}, {0});
}

Strategy context(I cp, ContextExchange exchange) {
  Strategy strategy = layout(1, 1, 1, kSamples);
  strategy.micro_batch = kSamples, strategy.cp = cp, strategy.cp_comm = exchange;
  strategy.stack.attention = AttentionKernel::flash2;
  strategy.stack.grouped_query_fusion = true;
  return strategy;
}

std::vector<Operator> layer_of(const Model& model, const Strategy& strategy) {
  return layer_operators(model, strategy, model.layer_kind(0));
}

/// Returns the bytes of all exchanges of a kind among the ranks of a context.
I exchanged(const std::vector<Operator>& operators, OpList Operator::*direction, Kind kind) {
  I sum = 0;
  for (const Operator& each : operators)
    for (const WorkItem& work : each.*direction)
      if (const CollectiveStart* start = work.start()) {
        CHECK((start->role == Role::context || start->role == Role::send_context));
        if (start->kind == kind) sum += start->bytes;
      }
  return sum;
}

I saved(const Model& model, const Strategy& strategy) {
  return memory::activation_bytes_per_layer(model, strategy, model.layer_kind(0));
}

I working(const Model& model, const Strategy& strategy) {
  const Branch& branch = model.architecture->blocks[0].branches[0];
  return branch.part->working_bytes(PartOnRank(*branch.model, strategy, model.layer_kind(0), 0));
}

/// Parts whose keys are those of all tokens of both streams, and of another network.
struct Attending {
  std::string type;
  OptionSet own;
  I keys;  // of a sample
};
const std::vector<Attending> kParts{{"joint_attention", {{"text", kText}}, kTokens},
                                    {"cross_attention", {{"keys", kRead}}, kRead}};
constexpr ContextExchange kExchanges[] = {ContextExchange::ring, ContextExchange::all_gather, ContextExchange::ulysses,
                                          ContextExchange::gathered_blocks};

}  // namespace

TEST_CASE("context-parallel ranks share the FLOPs of joint and cross attention, however they exchange") {
  for (const Attending& part : kParts) {
    const Model model = of_part(uneven_model(), part.type, part.own);
    const std::vector<Operator> whole = layer_of(model, context(1, ContextExchange::ring));
    I scores = 0;  // products of queries with keys, and of their weights with values, token by token
    for (I sample = 0; sample < kSamples; ++sample)
      for (I query = 0; query < kTokens; ++query)
        for (I key = 0; key < part.keys; ++key) scores += kHeads * (2 * kWidth + 2 * kWidth);
    for (const I cp : {2, 4})
      for (const ContextExchange exchange : kExchanges) {
        const std::vector<Operator> one = layer_of(model, context(cp, exchange));
        CAPTURE(part.type, cp, static_cast<int>(exchange));
        CHECK(cp * flops_of(one, &Operator::forward) == flops_of(whole, &Operator::forward));
        CHECK(cp * flops_of(one, &Operator::backward) == flops_of(whole, &Operator::backward));
        I attention = 0;
        for (const Operator& each : one)
          if (each.in_modules & recompute::core_attn) attention += flops_of({each}, &Operator::forward);
        CHECK(cp * attention == scores);
      }
  }
}

TEST_CASE("context-parallel ranks send keys and values of joint and cross attention, or heads of all") {
  for (const Attending& part : kParts) {
    const Model model = of_part(uneven_model(), part.type, part.own);
    for (const I cp : {2, 4}) {
      CAPTURE(part.type, cp);
      // Of a rank, in 16 bits: keys and values, as many; queries, and outputs, as many.
      const I keys = 2 * 2 * kSamples * part.keys / cp * kKeyHeads * kWidth,
              queries = 2 * kSamples * kTokens / cp * kHeads * kWidth;
      const std::vector<Operator> ring = layer_of(model, context(cp, ContextExchange::ring));
      I forward = 0, backward = 0;
      for (I move = 1; move < cp; ++move) forward += keys;       // a block visits every other rank,
      for (I move = 1; move < cp; ++move) backward += 2 * keys;  // and again with its gradients, which return home
      CHECK(exchanged(ring, &Operator::forward, Kind::send) == forward);
      CHECK(exchanged(ring, &Operator::backward, Kind::send) == backward);
      const std::vector<Operator> gathered = layer_of(model, context(cp, ContextExchange::all_gather));
      CHECK(exchanged(gathered, &Operator::forward, Kind::all_gather) == cp * keys);
      CHECK(exchanged(gathered, &Operator::backward, Kind::all_gather) == cp * keys);
      CHECK(exchanged(gathered, &Operator::backward, Kind::reduce_scatter) == cp * keys);
      const std::vector<Operator> traded = layer_of(model, context(cp, ContextExchange::ulysses));
      CHECK(exchanged(traded, &Operator::forward, Kind::all_to_all) == 2 * queries + keys);
      CHECK(exchanged(traded, &Operator::backward, Kind::all_to_all) == 2 * queries + keys);
      const std::vector<Operator> blocks = layer_of(model, context(cp, ContextExchange::gathered_blocks));
      CHECK(exchanged(blocks, &Operator::forward, Kind::all_gather) == cp * keys);
      CHECK(exchanged(blocks, &Operator::backward, Kind::all_gather) == cp * keys);
      CHECK(exchanged(blocks, &Operator::backward, Kind::send) == cp * 2 * keys);  // gradients, in fp32
    }
  }
}

TEST_CASE("context-parallel ranks keep their share of joint and cross attention, and briefly all keys") {
  for (const Attending& part : kParts) {
    const Model model = of_part(uneven_model(), part.type, part.own);
    const I whole = saved(model, context(1, ContextExchange::ring));
    for (const I cp : {2, 4}) {
      CAPTURE(part.type, cp);
      const I keys = 2 * 2 * kSamples * part.keys * kKeyHeads * kWidth;  // of all ranks, with values, in 16 bits
      for (const ContextExchange exchange : kExchanges) {
        CAPTURE(static_cast<int>(exchange));
        CHECK(cp * saved(model, context(cp, exchange)) == whole);
      }
      CHECK(working(model, context(cp, ContextExchange::ring)) == 0);
      CHECK(working(model, context(cp, ContextExchange::ulysses)) == 0);
      CHECK(working(model, context(cp, ContextExchange::all_gather)) == 2 * keys);  // with their gradients
      CHECK(working(model, context(cp, ContextExchange::gathered_blocks)) == keys + 2 * 2 * keys / cp);
    }
  }
}

TEST_CASE("both networks of joint parts take a share of the text and one of the image") {
  const Model model = of_part(uneven_model(), "joint_mlp", {{"text", kText}});
  const std::vector<Operator> one = layer_of(model, context(4, ContextExchange::ring));
  for (const auto& [name, tokens] : {std::pair{"mlp_up", kTokens - kText}, {"text_up", kText}})
    for (const Operator& each : one)
      if (each.name == name) CHECK(each.saved_bytes == 2 * kSamples * tokens / 4 * kHidden);
  const std::vector<Operator> whole = layer_of(model, context(1, ContextExchange::ring));
  CHECK(4 * flops_of(one, &Operator::forward) == flops_of(whole, &Operator::forward));
  CHECK(exchanged(one, &Operator::forward, Kind::send) == 0);
}

TEST_CASE("context-parallel ranks share the index of sparse attention and gather its keys") {
  constexpr I kIndexHeads = 4, kIndexWidth = 12, kSelected = 16;
  const OptionSet own{{"index_heads", kIndexHeads}, {"index_width", kIndexWidth}, {"index_keys", kSelected}};
  const Model model = of_part(latent_model(), "sparse_attention", own);
  OptionSet shared = own;
  shared["own_index"] = false;
  const Model reader = of_part(latent_model(), "sparse_attention", shared);
  const I narrow = 24 + 8;  // of a key
  const std::vector<Operator> whole = layer_of(model, context(1, ContextExchange::ring));
  for (const I cp : {2, 4}) {
    CAPTURE(cp);
    const Strategy strategy = context(cp, ContextExchange::ring);  // is for other attention
    const std::vector<Operator> one = layer_of(model, strategy), reading = layer_of(reader, strategy);
    CHECK(cp * flops_of(one, &Operator::forward) == flops_of(whole, &Operator::forward));
    CHECK(cp * flops_of(one, &Operator::backward) == flops_of(whole, &Operator::backward));
    const I all = 2 * kSamples * kTokens;  // bytes of a column of all tokens
    for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter}) {
      const auto direction = kind == Kind::all_gather ? &Operator::forward : &Operator::backward;
      const auto other = kind == Kind::all_gather ? &Operator::backward : &Operator::forward;
      CHECK(exchanged(one, direction, kind) == all * (narrow + kIndexWidth));
      CHECK(exchanged(reading, direction, kind) == all * narrow);
      CHECK(exchanged(one, other, kind) == 0);
    }
    // What is gathered of other ranks is kept, unless attention is computed again: the index is not.
    const I others = all - all / cp;
    CHECK(saved(model, strategy) ==
          saved(model, context(1, ContextExchange::ring)) / cp + others * (narrow + kIndexWidth));
    Strategy again = strategy, again_alone = context(1, ContextExchange::ring);
    again.recompute = again_alone.recompute = Recompute::selective;
    CHECK(saved(model, again) == saved(model, again_alone) / cp + others * kIndexWidth);
    CHECK(working(model, strategy) == 4 * kTokens / cp * kTokens);  // scores of the index, in fp32
  }
}

TEST_CASE("ranks with pieces from both ends of a sample have the mean of the pairs of an index") {
  constexpr I kSelected = 16, kRanks = 4, kPiece = kTokens / (2 * kRanks);
  const Model model = of_part(latent_model(), "sparse_attention",
                              {{"index_heads", I{4}}, {"index_width", I{12}}, {"index_keys", kSelected}});
  I scored = 0, selected = 0;  // of all ranks, one head and sample
  for (I rank = 0; rank < kRanks; ++rank)
    for (const I piece : {rank, 2 * kRanks - 1 - rank})
      for (I token = piece * kPiece; token < (piece + 1) * kPiece; ++token)
        for (I key = 0; key <= token; ++key) {
          ++scored;
          if (token - key < kSelected) ++selected;  // as many as any keys that are selected
        }
  // As of causal attention a token has half a pair less than it sees.
  const I pairs = (scored - kTokens / 2) / kRanks, read = (selected - kSelected / 2) / kRanks;
  for (const Operator& each : layer_of(model, context(kRanks, ContextExchange::all_gather))) {
    if (each.name == "index_scores")
      CHECK(flops_of({each}, &Operator::forward) == kSamples * (2 * 4 * 12 * pairs + 2 * kHeads * (24 + 8) * read));
    if (each.name == "attention")
      CHECK(flops_of({each}, &Operator::forward) == kSamples * 2 * kHeads * (24 + 8 + 24) * read);
  }
}
