// More tensor-parallel ranks than heads of keys and values: shares of columns, which are gathered, and whole heads.
#include "core/workload/operators/key_heads.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/operator_sums.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

using I = std::int64_t;
using collective::Kind;

constexpr I kHeads = 16, kHeadDim = 32, kTokens = 4'096;

Model of_key_heads(I heads) {
  return llama(1, kHeads * kHeadDim, kHeads, heads, 2'048, 1'024);
}

std::vector<Operator> layer_of(const Model& model, I tp) {
  Strategy strategy = layout(tp, 1, 1, 1);
  strategy.stack.attention = AttentionKernel::flash2;
  return layer_operators(model, strategy, model.layer_kind(0));
}

const Operator* named(const std::vector<Operator>& operators, const std::string& name) {
  const auto found =
      std::find_if(operators.begin(), operators.end(), [&](const Operator& each) { return each.name == name; });
  return found == operators.end() ? nullptr : &*found;
}

std::vector<CollectiveStart> starts_of(const OpList& ops) {
  std::vector<CollectiveStart> starts;
  for (const WorkItem& work : ops)
    if (const CollectiveStart* start = work.start()) starts.push_back(*start);
  return starts;
}

}  // namespace

TEST_CASE("ranks that share heads of keys have all weights and FLOPs together") {
  for (const I heads : {1, 2, 4})
    for (const I tp : {1, 2, 4, 8}) {
      INFO(heads << " heads of keys, " << tp << " ranks");
      const Model model = of_key_heads(heads);
      const std::vector<Operator> whole = layer_of(model, 1), shared = layer_of(model, tp);
      for (OpList Operator::*direction : {&Operator::forward, &Operator::backward})
        CHECK(tp * flops_of(shared, direction) == flops_of(whole, direction));
      const Parameters one = layer_parameters(model, layout(1, 1, 1, 1), {}),
                       each = layer_parameters(model, layout(tp, 1, 1, 1), {});
      const I norms = 2 * model.hidden;
      CHECK(tp * (each.total() - norms) == one.total() - norms);
      CHECK((named(shared, "shared_heads") != nullptr) == (tp > heads));
    }
}

TEST_CASE("queries, keys and values of all heads are gathered where ranks share heads, and their gradients scattered") {
  const I tp = 8, heads = 2, all = (kHeads + 2 * heads) * kHeadDim;
  const std::vector<Operator> operators = layer_of(of_key_heads(heads), tp);
  const Operator* gather = named(operators, "shared_heads");
  REQUIRE(gather != nullptr);
  const std::vector<CollectiveStart> forward = starts_of(gather->forward), backward = starts_of(gather->backward);
  REQUIRE(forward.size() == 1);
  REQUIRE(backward.size() == 1);
  CHECK(forward[0].kind == Kind::all_gather);
  CHECK(backward[0].kind == Kind::reduce_scatter);
  for (const CollectiveStart& start : {forward[0], backward[0]}) {
    CHECK(start.bytes == 2 * kTokens * all);
    CHECK(start.role == Role::tensor);
  }
  CHECK(gather->saved_bytes == 0);
  // The matrix has a share of the columns, the core whole heads: 2 of queries, 1 of keys and 1 of values.
  const KernelWork* qkv = named(operators, "qkv")->forward.back().kernel();
  REQUIRE(qkv != nullptr);
  CHECK(qkv->shape.n == all / tp);
  CHECK(named(operators, "rotary")->forward.front().kernel()->shape.bytes == 4 * kTokens * (2 + 1) * kHeadDim);
}

TEST_CASE("as many ranks as heads of keys need no gather, and twice as many save the same bytes of keys for each") {
  const auto saved = [](I tp) {
    I sum = 0;
    for (const Operator& each : layer_of(of_key_heads(4), tp)) sum += each.saved_bytes + each.attention_core_bytes;
    return sum;
  };
  // What is whole on every rank, 2 norms' inputs, two inputs of column-parallel layers: 4 x 2 bytes x hidden. One head
  // of keys and one of values is on each of 4 and of 8 ranks; all else is divided.
  const I whole = 4 * 2 * kTokens * kHeads * kHeadDim, keys = 2 * 2 * kTokens * kHeadDim;
  const I on_four = saved(4) - whole - keys, on_eight = saved(8) - whole - keys;
  CHECK(on_four == 2 * on_eight);
}

TEST_CASE("why heads of keys cannot be shared is said with their numbers") {
  Strategy strategy = layout(8, 1, 1, 1);
  CHECK(unshared_key_heads(of_key_heads(8), strategy, 8).empty());
  CHECK(unshared_key_heads(of_key_heads(2), strategy, 8).empty());
  CHECK(unshared_key_heads(of_key_heads(3), strategy, 8) == "kv_heads 3, tp 8");
  Model generating = of_key_heads(2);
  generating.inference = Inference::generation;
  CHECK(unshared_key_heads(generating, strategy, 8) ==
        "kv_heads 2, tp 8; with engines that copy heads to ranks each rank has one: kv_heads 8");
  strategy.stack.projection_fusion = false;
  CHECK(unshared_key_heads(of_key_heads(2), strategy, 8) == "kv_heads 2, tp 8, projection_fusion false");
}
