// Wider groups: a job of tensor parallelism as somebody would write it down for more ranks.
#include "experiments/edits/edited.hpp"
#include "experiments/edits/replicas.hpp"
#include "tests/experiments/given_steps.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::experiments::edits;
using namespace manyworlds::experiments::programs;
using namespace manyworlds;

namespace {

/// Two replicas of a layer over `tp` ranks: a product that is cut by columns, attention by heads, a product that is cut
/// by rows, a norm that all have, and gradients of what each rank has.
std::string layer(int tp) {
  std::string groups;
  for (int replica = 0; replica < 2; ++replica) {
    groups += replica == 0 ? "{\"groups\":\"tp\",\"ranks\":[[" : ",[";
    for (int rank = 0; rank < tp; ++rank) groups += fmt::format("{}{}", rank == 0 ? "" : ",", replica * tp + rank);
    groups += "]";
  }
  groups += "]}\n{\"groups\":\"dp\",\"ranks\":[";
  for (int rank = 0; rank < tp; ++rank) groups += fmt::format("{}[{},{}]", rank == 0 ? "" : ",", rank, tp + rank);
  return fmt::format(
      "{{\"manyworlds_program\":1,\"name\":\"layer\",\"gpu\":\"a100_80\",\"tokens_per_step\":2048}}\n"
      "{{\"dimension\":\"tp\",\"part\":\"exposed_tp\"}}\n{{\"dimension\":\"dp\",\"part\":\"exposed_dp\"}}\n{}]}}\n"
      "{{\"program\":\"p\",\"ranks\":\"0-{}\",\"streams\":[\"s\"]}}\n"
      "{{\"kernel\":\"norm\",\"bytes\":4194304,\"stream\":\"s\"}}\n"
      "{{\"kernel\":\"column\",\"gemm\":[1024,{},1024,1],\"flops\":{},\"stream\":\"s\"}}\n"
      "{{\"kernel\":\"heads\",\"attention\":{{\"class\":\"flash2_forward\",\"queries\":1024,\"keys\":1024,\"width\":64,"
      "\"batch\":{}}},\"stream\":\"s\"}}\n"
      "{{\"kernel\":\"row\",\"gemm\":[1024,1024,{},1],\"stream\":\"s\"}}\n"
      "{{\"collective\":\"all_reduce\",\"in\":\"tp\",\"bytes\":2097152,\"stream\":\"s\"}}\n"
      "{{\"collective\":\"all_reduce\",\"in\":\"dp\",\"bytes\":{},\"stream\":\"s\"}}\n",
      groups, 2 * tp - 1, 4096 / tp, 2ll * 1024 * 1024 * 4096 / tp, 16 / tp, 4096 / tp, (1 << 22) / tp);
}

const std::string kTwice =
    "- widen: {in: tp, factor: 2}\n- {select: {kernel: column}, scale: {n: 0.5}}\n"
    "- {select: {kernel: heads}, scale: {batch: 0.5}}\n- {select: {kernel: row}, scale: {k: 0.5}}\n"
    "- {select: {collective: all_reduce, in: dp}, scale: {bytes: 0.5}}\n";

StreamPrograms edited(const std::string& text, const std::string& edits) {
  StreamPrograms programs = parse_program_file(text, "layer");
  make_edits(programs, parse_edits(edits, "e.yaml"));
  return programs;
}

std::string error(const std::string& edits) {
  return error_of([&] { edited(layer(2), edits); });
}

}  // namespace

TEST_CASE("a job of tensor parallelism over two ranks, widened and divided, is that over four") {
  const StreamPrograms wider = edited(layer(2), kTwice), written = parse_program_file(layer(4), "layer");
  CHECK(wider.ranks.program_of_rank == written.ranks.program_of_rank);
  REQUIRE(wider.ranks.groups.size() == written.ranks.groups.size());
  for (std::size_t i = 0; i < written.ranks.groups.size(); ++i) {
    CHECK(wider.ranks.groups[i].dimension == written.ranks.groups[i].dimension);
    CHECK(wider.ranks.groups[i].ranks == written.ranks.groups[i].ranks);
  }
  CHECK(wider.programs == written.programs);
  CHECK(wider.tokens_per_step == written.tokens_per_step);
  CHECK(step_of(wider).step_ps == step_of(written).step_ps);
  // Twice twice is four times.
  CHECK(edited(layer(2), kTwice + kTwice).programs == parse_program_file(layer(8), "layer").programs);
  CHECK(step_of(edited(layer(2), kTwice + kTwice)).step_ps == step_of(parse_program_file(layer(8), "layer")).step_ps);
}

TEST_CASE("GPUs of wider groups stand side by side, as their ranks do") {
  std::string text = layer(2);
  text.insert(text.find("\"tokens"), "\"gpu_of_rank\":[1,0,3,2],");
  CHECK(edited(text, "- widen: {in: tp, factor: 2}").ranks.gpu_of_rank ==
        std::vector<std::uint32_t>{2, 3, 0, 1, 6, 7, 4, 5});
}

TEST_CASE("a measured product that is divided keeps the shape at which it was measured") {
  std::string text = layer(2);
  text.insert(text.find("\"flops\""), "\"us\":100,");
  const StreamPrograms wider = edited(text, "- {select: {kernel: column}, scale: {n: 0.5}}");
  const auto& kernel = std::get<KernelWork>(wider.programs[0].ops[1].work);
  CHECK(kernel.measured_us == 100.0);
  CHECK(kernel.measured_at->gemm->n == 2048);
  CHECK(kernel.shape.gemm->n == 1024);
  CHECK(kernel.flops == 2ll * 1024 * 1024 * 1024);
}

TEST_CASE("what cannot be widened or divided is refused at its line") {
  CHECK(error("- widen: {in: pp, factor: 2}").find("e.yaml:1: no dimension is 'pp'") == 0);
  CHECK(error("- widen: {in: tp}").find("e.yaml:1: 'widen' must have 'in' and 'factor'") == 0);
  CHECK(error("- widen: {in: tp, factor: 0}").find("e.yaml:1: ") == 0);
  CHECK(error("- widen: {in: tp, factor: 1000000}").find("e.yaml:1: ") == 0);
  CHECK(error("- {select: {kernel: norm}, scale: {n: 0.5}}").find("is no matrix product and no attention") !=
        std::string::npos);
  CHECK(error("- {select: {kernel: heads}, scale: {n: 0.5}}").find("is attention, and has 'batch' alone") !=
        std::string::npos);
  CHECK(error("- {select: {collective: \"*\"}, scale: {m: 0.5}}").find("is no kernel") != std::string::npos);
  CHECK(error("- {select: {kernel: column}, scale: {}}").find("'scale' must have") != std::string::npos);
  const std::string pairs =
      "{\"manyworlds_program\":1,\"name\":\"x\"}\n{\"dimension\":\"pp\",\"kind\":\"pairs\"}\n{\"groups\":\"pp\","
      "\"ranks\":[[0,1]]}\n"
      "{\"program\":\"a\",\"ranks\":\"0\",\"streams\":[\"s\"]}\n{\"send\":\"pp\",\"bytes\":8,\"stream\":\"s\"}\n"
      "{\"program\":\"b\",\"ranks\":\"1\",\"streams\":[\"s\"]}\n{\"receive\":\"pp\",\"bytes\":8,\"stream\":\"s\"}\n";
  CHECK(error_of([&] { edited(pairs, "- widen: {in: pp, factor: 2}"); }).find("'pp' is of pairs") != std::string::npos);
}
