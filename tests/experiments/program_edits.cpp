// What-if edits: what they select, and what comes of programs.
#include <random>
#include <set>

#include "core/compute/measured.hpp"
#include "experiments/edits/edited.hpp"
#include "experiments/edits/make_edit.hpp"
#include "experiments/edits/replicas.hpp"
#include "experiments/edits/rewriting.hpp"
#include "experiments/edits/select.hpp"
#include "tests/experiments/given_steps.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::experiments::edits;
using namespace manyworlds::experiments::programs;
using namespace manyworlds;

namespace {

/// Two ranks that reduce what each of four layers leaves, on a stream of its own.
std::string gradients(const std::string& ranks = "0-1", const std::string& groups = "[0,1]",
                      const std::string& kind = "all_reduce") {
  std::string text = fmt::format(
      "{{\"manyworlds_program\":1,\"name\":\"job\",\"tokens_per_step\":100}}\n"
      "{{\"dimension\":\"dp\",\"part\":\"exposed_dp\"}}\n{{\"groups\":\"dp\",\"ranks\":[{}]}}\n"
      "{{\"program\":\"p\",\"ranks\":\"{}\",\"streams\":[\"compute\",\"nccl\"]}}\n",
      groups, ranks);
  for (int layer = 0; layer < 4; ++layer)
    text += fmt::format(
        "{{\"kernel\":\"layer_{0}\",\"us\":{1},\"part\":\"backward\",\"stream\":\"compute\"}}\n"
        "{{\"collective\":\"{3}\",\"in\":\"dp\",\"bytes\":1000000,\"stream\":\"nccl\",\"after\":[{2}]}}\n",
        layer, 100 + layer, 2 * layer, kind);
  return text + "{\"kernel\":\"adam\",\"us\":50,\"part\":\"optimizer\",\"stream\":\"compute\",\"after\":[1,3,5,7]}\n";
}

StreamPrograms parsed(const std::string& text = gradients()) {
  return parse_program_file(text, "job");
}
StreamPrograms edited(const std::string& edits, StreamPrograms programs = parsed()) {
  make_edits(programs, parse_edits(edits, "e.yaml"));
  return programs;
}
std::string refusal(const std::string& edits, const StreamPrograms& programs = parsed()) {
  return error_of([&] { edited(edits, programs); });
}
const KernelWork& kernel(const StreamPrograms& programs, std::size_t op) {
  return std::get<KernelWork>(programs.programs[0].ops.at(op).work);
}
const Communication& call(const StreamPrograms& programs, std::size_t op) {
  return std::get<Communication>(programs.programs[0].ops.at(op).work);
}
std::vector<std::string> names(const StreamPrograms& programs, std::size_t program = 0) {
  std::vector<std::string> result;
  for (const StreamOp& op : programs.programs[program].ops) result.push_back(programs.names[op.name]);
  return result;
}

/// Returns the step of programs without what computing it cost.
std::string answer(const StreamPrograms& programs) {
  step::StepResult result = step_of(programs);
  result.computed = {};
  result.cpu_s = 0;
  return encode(result);
}

/// Which operations of a program come before which: those on its stream, those it waits for, and theirs.
std::vector<std::vector<bool>> order_of(const RankProgram& program) {
  const std::size_t ops = program.ops.size();
  std::vector<std::vector<bool>> before(ops, std::vector<bool>(ops));
  for (std::size_t i = 0; i < ops; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const std::vector<std::uint32_t>& after = program.ops[i].after;
      if (program.ops[j].stream != program.ops[i].stream && std::find(after.begin(), after.end(), j) == after.end())
        continue;
      before[i][j] = true;
      for (std::size_t k = 0; k < j; ++k)
        if (before[j][k]) before[i][k] = true;
    }
  return before;
}

/// A drawn program, whose operations have their numbers as times.
RankProgram drawn(std::mt19937_64& random, std::size_t ops) {
  RankProgram program;
  for (const char* name : {"a", "b", "c"}) program.streams.push_back({name, StreamKind::device});
  for (std::uint32_t i = 0; i < ops; ++i) {
    StreamOp op;
    op.stream = static_cast<std::uint32_t>(random() % 3);
    op.work = KernelWork{.measured_us = static_cast<double>(i)};
    std::set<std::uint32_t> after;
    for (std::uint64_t n = random() % 3; n > 0 && i > 0; --n) after.insert(static_cast<std::uint32_t>(random() % i));
    op.after.assign(after.begin(), after.end());
    program.ops.push_back(std::move(op));
    if (random() % 4 == 0) program.allocations.push_back({i, static_cast<std::int64_t>(i + 1)});
  }
  return program;
}

std::size_t number_of(const StreamOp& op) {
  return static_cast<std::size_t>(*std::get<KernelWork>(op.work).measured_us);
}

}  // namespace

TEST_CASE("a pattern has stars for any text and question marks for one character") {
  for (const char* pattern : {"*", "void gemm*", "*gemm*", "void ge?m<*>", "*>", "**void*gemm<float>*"})
    CHECK(matches(pattern, "void gemm<float>"));
  for (const char* pattern : {"", "gemm", "*gemm", "void gemm<?>", "void gemm<float>?", "*x*", "?"})
    CHECK_FALSE(matches(pattern, "void gemm<float>"));
  CHECK(matches("", ""));
  CHECK(matches("*", ""));
  CHECK_FALSE(matches("?", ""));
}

TEST_CASE("an edit that changes nothing changes no picosecond, and no byte of the file") {
  const StreamPrograms before = parsed();
  const StreamPrograms after = edited(
      "- {select: {kernel: '*'}, scale: {time: 1}}\n- {select: {collective: '*'}, scale: {bytes: 1}}\n"
      "- {select: {kernel: layer_0}, fuse: {}}\n");
  CHECK(program_file_text(after) == program_file_text(before));
  CHECK(answer(after) == answer(before));
}

TEST_CASE("times and bytes are scaled where they are selected") {
  const StreamPrograms scaled = edited(
      "- {select: {kernel: 'layer_?', part: backward, occurrences: '1-2'}, scale: {time: 0.5}}\n"
      "- {select: {collective: all_reduce, in: d*, occurrences: last}, scale: {bytes: 3}}\n");
  CHECK(*kernel(scaled, 0).measured_us == 100);
  CHECK(*kernel(scaled, 2).measured_us == 50.5);
  CHECK(*kernel(scaled, 4).measured_us == 51);
  CHECK(*kernel(scaled, 6).measured_us == 103);
  CHECK(call(scaled, 5).bytes == 1'000'000);
  CHECK(call(scaled, 7).bytes == 3'000'000);
}

TEST_CASE("ranks that alone are edited get a program of their own") {
  const StreamPrograms one = edited("- {select: {kernel: adam, ranks: '1'}, drop: true}\n");
  REQUIRE(one.programs.size() == 2);
  CHECK(one.ranks.program_of_rank == std::vector<std::uint32_t>{0, 1});
  CHECK(one.programs[0].ops.size() == 9);
  CHECK(one.programs[1].ops.size() == 8);
  CHECK(edited("- {select: {kernel: adam, ranks: 0-1}, drop: true}\n").programs.size() == 1);
}

TEST_CASE("what waited for an operation that is dropped waits for what that waited for") {
  const StreamPrograms dropped = edited("- {select: {collective: '*', occurrences: '0-2'}, drop: true}\n");
  REQUIRE(dropped.programs[0].ops.size() == 6);
  CHECK(names(dropped) == std::vector<std::string>{"layer_0", "layer_1", "layer_2", "layer_3", "all_reduce", "adam"});
  const auto before = order_of(dropped.programs[0]);
  CHECK(before[4] == std::vector<bool>{true, true, true, true, false, false});
  CHECK(before[5] == std::vector<bool>{true, true, true, true, true, false});
}

TEST_CASE("dropping keeps the order of all that is left, and allocations their place, in drawn programs") {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const RankProgram program = drawn(random, 2 + random() % 30);
    Rewriting rewriting(program);
    std::vector<std::uint32_t> kept;
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) random() % 3 == 0 ? rewriting.drop(i) : kept.push_back(i);
    const RankProgram result = rewriting.finish();
    REQUIRE(result.ops.size() == kept.size());
    const auto old_order = order_of(program), new_order = order_of(result);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      CHECK(number_of(result.ops[i]) == kept[i]);
      for (std::size_t j = 0; j < i; ++j) CHECK(new_order[i][j] == old_order[kept[i]][kept[j]]);
    }
    REQUIRE(result.allocations.size() == program.allocations.size());
    for (std::size_t i = 0; i < result.allocations.size(); ++i) {
      const auto first = std::lower_bound(kept.begin(), kept.end(), program.allocations[i].op);
      CHECK(result.allocations[i].op == first - kept.begin());
      CHECK(result.allocations[i].bytes == program.allocations[i].bytes);
    }
  }
}

TEST_CASE("a fused kernel comes after all that any of its kernels did, and before the same, in drawn programs") {
  std::mt19937_64 random(11);
  std::size_t joined = 0;
  for (int trial = 0; trial < 300; ++trial) {
    StreamPrograms all;
    all.names = {"k"};
    all.programs.push_back(drawn(random, 2 + random() % 30));
    const RankProgram& program = all.programs[0];
    std::vector<std::uint32_t> ops;
    for (std::uint32_t i = 0; i < program.ops.size(); ++i)
      if (random() % 4 != 0) ops.push_back(i);
    // The plain rule: a run goes on while the next kernel of the stream is selected and waits for nothing that comes
    // after the run's first.
    std::vector<std::vector<std::uint32_t>> runs;
    for (std::uint32_t stream = 0; stream < 3; ++stream) {
      bool goes_on = false;
      for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
        if (program.ops[i].stream != stream) continue;
        const bool is_selected = std::find(ops.begin(), ops.end(), i) != ops.end();
        const std::vector<std::uint32_t>& after = program.ops[i].after;
        const bool waits = goes_on && std::any_of(after.begin(), after.end(),
                                                  [&](std::uint32_t one) { return one > runs.back().front(); });
        if (!goes_on || waits || !is_selected) runs.emplace_back();
        runs.back().push_back(i);
        goes_on = is_selected;
      }
    }
    const RankProgram result = fused(all, program, ops, {});
    REQUIRE(result.ops.size() == runs.size());
    joined += program.ops.size() - runs.size();
    // Expected order: that of the runs, as their operations have it, and what follows from it.
    std::sort(runs.begin(), runs.end());
    const auto old_order = order_of(program), new_order = order_of(result);
    std::vector<std::vector<bool>> expected(runs.size(), std::vector<bool>(runs.size()));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      double us = 0;
      for (const std::uint32_t op : runs[i]) us += op;
      CHECK(*std::get<KernelWork>(result.ops[i].work).measured_us == us);
      for (std::size_t j = 0; j < runs.size(); ++j)
        for (const std::uint32_t one : runs[i])
          for (const std::uint32_t other : runs[j])
            if (i != j && other < one && old_order[one][other]) expected[i][j] = true;
    }
    for (std::size_t k = 0; k < runs.size(); ++k)
      for (std::size_t i = 0; i < runs.size(); ++i)
        for (std::size_t j = 0; j < runs.size(); ++j)
          if (expected[i][k] && expected[k][j]) expected[i][j] = true;
    CHECK(new_order == expected);
  }
  CHECK(joined > 300);
}

TEST_CASE("a fused kernel has the sums of times and bytes, by a factor, and at most one matrix product") {
  const std::string head =
      "{\"manyworlds_program\":1,\"name\":\"k\"}\n{\"program\":\"p\",\"ranks\":\"0\",\"streams\":[\"compute\"]}\n";
  const auto kernels = [&](const std::string& second) {
    return parsed(head + "{\"kernel\":\"mul\",\"us\":10,\"gemm\":[64,64,64,1],\"bytes\":30,\"stream\":\"compute\"}\n" +
                  "{\"kernel\":\"gelu\"," + second + ",\"stream\":\"compute\"}\n");
  };
  const std::string edit = "- {select: {kernel: '*'}, fuse: {time: 0.5, bytes: 0.75}}\n";
  const StreamPrograms one = edited(edit, kernels("\"us\":6,\"bytes\":10"));
  REQUIRE(one.programs[0].ops.size() == 1);
  CHECK(*kernel(one, 0).measured_us == 8);
  CHECK(kernel(one, 0).shape.bytes == 30);
  CHECK(kernel(one, 0).shape.gemm == GemmShape{64, 64, 64, 1});
  CHECK(refusal(edit, kernels("\"us\":6,\"gemm\":[8,8,8,1]")).find("another matrix product") != std::string::npos);
  CHECK(refusal(edit, kernels("\"bytes\":10")).find("have measured times, but for 1") != std::string::npos);
}

TEST_CASE("products are selected by their shape, and attention is set in their place") {
  const std::string text =
      "{\"manyworlds_program\":1,\"name\":\"k\"}\n{\"program\":\"p\",\"ranks\":\"0\",\"streams\":[\"compute\"]}\n"
      "{\"kernel\":\"mul\",\"gemm\":[1024,1024,64,96],\"stream\":\"compute\"}\n"
      "{\"kernel\":\"softmax\",\"bytes\":1000000,\"stream\":\"compute\"}\n"
      "{\"kernel\":\"mul\",\"gemm\":[64,1024,1024,96],\"stream\":\"compute\"}\n"
      "{\"kernel\":\"mul\",\"gemm\":[768,8192,768,1],\"stream\":\"compute\"}\n";
  const std::string set =
      "- select: {kernel: mul, gemm: '1024,1024,*,96'}\n"
      "  set: {attention: {class: flash2_forward, queries: 1024, keys: 1024, width: 64, batch: 96}}\n";
  const StreamPrograms fused = edited(set +
                                          "- {select: {kernel: softmax}, drop: true}\n"
                                          "- {select: {kernel: mul, gemm: '64,*'}, drop: true}\n",
                                      parsed(text));
  REQUIRE(fused.programs[0].ops.size() == 2);
  const AttentionShape attention{core::compute::KernelClass::flash2_forward, 1024, 1024, 64, 96, 96, true, {}};
  CHECK(kernel(fused, 0).shape == KernelShape{{}, attention, 0});
  CHECK(kernel(fused, 1).shape.gemm == GemmShape{768, 8192, 768, 1});
  const StreamPrograms twice =
      edited("- {select: {kernel: mul, occurrences: first}, batch: {factor: 2, tokens: 8192}}\n", fused);
  CHECK(kernel(twice, 0).shape.attention->batch == 192);
  CHECK(kernel(twice, 0).shape.attention->key_batch == 192);
  CHECK(refusal(set + set, parsed(text)).find("selects no operation") != std::string::npos);
  CHECK(refusal("- {select: {kernel: mul}, set: {attention: {class: flash, queries: 1}}}\n", parsed(text))
            .find("e.yaml:1: 'class' must be one of flash_forward") == 0);
}

TEST_CASE("another shape's measured time is scaled by the cost model's ratio of the two shapes") {
  const std::string text =
      "{\"manyworlds_program\":1,\"name\":\"k\"}\n{\"program\":\"p\",\"ranks\":\"0\",\"streams\":[\"compute\"]}\n"
      "{\"kernel\":\"mul\",\"us\":100,\"gemm\":[8192,4096,4096,1],\"stream\":\"compute\"}\n"
      "{\"kernel\":\"norm\",\"us\":10,\"bytes\":1000000,\"stream\":\"compute\"}\n"
      "{\"kernel\":\"own\",\"us\":7,\"stream\":\"compute\"}\n";
  StreamPrograms batch = edited("- {select: {kernel: '*'}, batch: {factor: 2, tokens: 8192}}\n", parsed(text));
  CHECK(kernel(batch, 0).shape.gemm == GemmShape{16384, 4096, 4096, 1});
  CHECK(kernel(batch, 0).measured_at == KernelShape{.gemm = GemmShape{8192, 4096, 4096, 1}});
  CHECK(kernel(batch, 1).shape.bytes == 2'000'000);
  CHECK(*kernel(batch, 2).measured_us == 14);
  batch = parse_program_file(program_file_text(batch), "again");
  CHECK(kernel(batch, 0).measured_at == KernelShape{.gemm = GemmShape{8192, 4096, 4096, 1}});
  const core::compute::Gpu gpu = config_of(Cluster(), 1, 1, 1).gpu;
  const auto time = [&](std::int64_t m, core::compute::Dtype dtype) {
    return static_cast<double>(core::compute::modelled_time(core::compute::gemm("", m, 4096, 4096, dtype), gpu));
  };
  using core::compute::Dtype;
  const TimedPrograms timed = timed_on(batch, gpu, nullptr, "k");
  const auto ps = [](const TimedPrograms& all, std::size_t op) {
    return static_cast<double>(all.programs.programs[0].ops[op].kernel()->duration_ps);
  };
  CHECK(std::abs(ps(timed, 0) - 1e8 * time(16384, Dtype::bf16) / time(8192, Dtype::bf16)) <= 1);
  CHECK(timed.sources.scaled == ps(timed, 0) + ps(timed, 1));
  CHECK(timed.sources.measured == 14e6);

  const StreamPrograms fp8 = edited("- {select: {kernel: mul}, set: {dtype: fp8}}\n", parsed(text));
  CHECK(std::abs(ps(timed_on(fp8, gpu, nullptr, "k"), 0) - 1e8 * time(8192, Dtype::fp8) / time(8192, Dtype::bf16)) <=
        1);
  const StreamPrograms there_and_back = edited(
      "- {select: {kernel: mul}, set: {dtype: fp8}}\n- {select: {kernel: mul}, set: {dtype: bf16}}\n", parsed(text));
  CHECK(program_file_text(there_and_back) == program_file_text(parsed(text)));
  CHECK(refusal("- {select: {kernel: own}, set: {bytes: 5}}\n", parsed(text)).find("no shape") != std::string::npos);
  CHECK(refusal("- {select: {kernel: mul}, batch: {factor: 2, tokens: 100}}\n", parsed(text))
            .find("none of these is 100 tokens") != std::string::npos);
}

TEST_CASE("gradients are reduced in buckets, each when its last one is ready") {
  const StreamPrograms two = edited("- {select: {collective: all_reduce, in: dp}, bucket: 2MB}\n");
  CHECK(names(two) ==
        std::vector<std::string>{"layer_0", "layer_1", "all_reduce", "layer_2", "layer_3", "all_reduce", "adam"});
  CHECK(call(two, 2).bytes == 2'000'000);
  const auto before = order_of(two.programs[0]);
  CHECK(before[2] == std::vector<bool>{true, true, false, false, false, false, false});
  CHECK(before[5] == std::vector<bool>{true, true, true, true, true, false, false});
  CHECK(before[6] == std::vector<bool>{true, true, true, true, true, true, false});
  const StreamPrograms three = edited("- {select: {collective: all_reduce}, bucket: 3500000}\n");
  CHECK(call(three, 3).bytes == 3'000'000);
  CHECK(call(three, 5).bytes == 1'000'000);
  const StreamPrograms cut = edited("- {select: {collective: all_reduce, occurrences: first}, bucket: 300000}\n");
  std::int64_t sum = 0;
  for (std::size_t part = 1; part <= 4; ++part) {
    CHECK(call(cut, part).bytes == 250'000);
    sum += call(cut, part).bytes;
  }
  CHECK(sum == 1'000'000);
  CHECK(names(cut)[5] == "layer_1");
}

TEST_CASE("a bucket of shards to gather begins with the first one that is needed") {
  const std::string text =
      "{\"manyworlds_program\":1,\"name\":\"g\"}\n{\"dimension\":\"dp\",\"part\":\"exposed_dp\"}\n"
      "{\"groups\":\"dp\",\"ranks\":[[0,1]]}\n"
      "{\"program\":\"p\",\"ranks\":\"0-1\",\"streams\":[\"compute\",\"nccl\"]}\n"
      "{\"collective\":\"all_gather\",\"in\":\"dp\",\"bytes\":10,\"stream\":\"nccl\"}\n"
      "{\"kernel\":\"one\",\"us\":1,\"stream\":\"compute\",\"after\":[0]}\n"
      "{\"collective\":\"all_gather\",\"in\":\"dp\",\"bytes\":10,\"stream\":\"nccl\"}\n"
      "{\"kernel\":\"two\",\"us\":1,\"stream\":\"compute\",\"after\":[2]}\n"
      "{\"collective\":\"all_gather\",\"in\":\"dp\",\"bytes\":10,\"stream\":\"nccl\",\"after\":[1]}\n";
  const StreamPrograms one = edited("- {select: {collective: all_gather}, bucket: 1000}\n", parsed(text));
  CHECK(names(one) == std::vector<std::string>{"all_gather", "one", "two", "all_gather"});
  CHECK(call(one, 0).bytes == 20);
  CHECK(one.programs[0].ops[2].after == std::vector<std::uint32_t>{0});
}

TEST_CASE("an operation on another stream waits for what came before it, and those after it do not wait") {
  const std::string text =
      "{\"manyworlds_program\":1,\"name\":\"m\"}\n{\"program\":\"p\",\"ranks\":\"0\",\"streams\":[\"compute\"]}\n"
      "{\"kernel\":\"one\",\"us\":10,\"stream\":\"compute\"}\n{\"kernel\":\"aside\",\"us\":30,\"stream\":\"compute\"}\n"
      "{\"kernel\":\"two\",\"us\":5,\"stream\":\"compute\"}\n{\"kernel\":\"three\",\"us\":6,\"stream\":\"compute\"}\n";
  CHECK(step_of(parsed(text)).step_ps == 51'000'000);
  CHECK(step_of(edited("- {select: {kernel: aside}, move: side}\n", parsed(text))).step_ps == 40'000'000);
  CHECK(step_of(edited("- {select: {kernel: aside}, move: side, before: {kernel: three}}\n", parsed(text))).step_ps ==
        46'000'000);
}

TEST_CASE("operations are added as lines of the program file, after some and before others") {
  const std::string text =
      "{\"manyworlds_program\":1,\"name\":\"m\"}\n{\"dimension\":\"dp\",\"part\":\"exposed_dp\"}\n"
      "{\"groups\":\"dp\",\"ranks\":[[0,1]]}\n{\"program\":\"p\",\"ranks\":\"0-1\",\"streams\":[\"compute\"]}\n"
      "{\"kernel\":\"back\",\"us\":10,\"stream\":\"compute\"}\n{\"kernel\":\"more\",\"us\":20,\"stream\":\"compute\"}\n"
      "{\"kernel\":\"adam\",\"us\":5,\"stream\":\"compute\"}\n";
  const StreamPrograms added = edited(
      "- insert: {collective: all_reduce, in: dp, bytes: 1000000, stream: nccl}\n"
      "  after: {kernel: back}\n  before: {kernel: adam}\n"
      "- insert: {kernel: cast, us: 3, stream: compute}\n  before: {kernel: adam}\n",
      parsed(text));
  CHECK(names(added) == std::vector<std::string>{"back", "all_reduce", "more", "cast", "adam"});
  const auto before = order_of(added.programs[0]);
  CHECK(before[1] == std::vector<bool>{true, false, false, false, false});
  CHECK(before[2] == std::vector<bool>{true, false, false, false, false});
  CHECK(before[4] == std::vector<bool>{true, true, true, true, false});
  CHECK(refusal("- insert: {collective: all_reduce, in: tp, bytes: 1, stream: compute}\n  after: {kernel: back}\n",
                parsed(text))
            .find("e.yaml:1: no dimension 'tp' was declared") != std::string::npos);
  CHECK(refusal("- insert: {allocate: 5}\n  after: {kernel: back}\n", parsed(text)).find("must be an operation") !=
        std::string::npos);
  CHECK(refusal("- insert: {collective: all_reduce, in: dp, bytes: 8, stream: compute}\n"
                "  after: {kernel: back, ranks: '0'}\n",
                parsed(text))
            .find("ranks 0 and 1 do not do the same in their group of dimension 'dp'") != std::string::npos);
}

TEST_CASE("lists of ranks and of occurrences are texts or lists of YAML") {
  for (const char* some : {"'0-1'", "[0, 1]", "['0-1']"})
    CHECK(names(edited(fmt::format("- {{select: {{kernel: 'layer_*', occurrences: {0}, ranks: {0}}}, drop: true}}\n",
                                   some))) == std::vector<std::string>{"all_reduce", "all_reduce", "layer_2",
                                                                       "all_reduce", "layer_3", "all_reduce", "adam"});
}

TEST_CASE("a stream that an edit makes is told, and one that is there is not") {
  StreamPrograms programs = parsed();
  const auto account = make_edits(programs, parse_edits("- insert: {kernel: cast, us: 3, stream: comput}\n"
                                                        "  before: {kernel: adam}\n"
                                                        "- {select: {kernel: cast}, move: compute}\n",
                                                        "e.yaml"));
  REQUIRE(account.size() == 2);
  CHECK(account[0].ends_with("; stream 'comput' is new"));
  CHECK(account[1].find("is new") == std::string::npos);
}

TEST_CASE("replicas are the job that somebody would write down for more ranks") {
  StreamPrograms more = parsed(gradients("0-1", "[0,1]"));
  const std::vector<std::string> assumed = add_replicas(more, 4, "job");
  StreamPrograms written = parsed(gradients("0-7", "[0,1,2,3,4,5,6,7]"));
  written.tokens_per_step = 400;
  CHECK(program_file_text(more) == program_file_text(written));
  CHECK(answer(more) == answer(written));
  REQUIRE(assumed.size() == 1);
  CHECK(assumed[0].find("groups of dp are 4 times as large") != std::string::npos);

  StreamPrograms sharded = parsed(gradients("0-1", "[0,1]", "reduce_scatter"));
  CHECK(add_replicas(sharded, 2, "job").size() == 2);
}

TEST_CASE("replicas of a job without data parallelism are a dimension of their own, and other groups are copied") {
  const std::string text =
      "{\"manyworlds_program\":1,\"name\":\"m\",\"gpu_of_rank\":[1,0,2]}\n{\"dimension\":\"tp\",\"part\":\"exposed_"
      "tp\"}\n"
      "{\"groups\":\"tp\",\"ranks\":[[1,0]]}\n{\"program\":\"p\",\"ranks\":\"0-1\",\"streams\":[\"compute\"]}\n"
      "{\"collective\":\"all_reduce\",\"in\":\"tp\",\"bytes\":8,\"stream\":\"compute\"}\n"
      "{\"program\":\"q\",\"ranks\":\"2\",\"streams\":[\"compute\"]}\n{\"kernel\":\"k\",\"us\":1,\"stream\":"
      "\"compute\"}\n";
  StreamPrograms more = parsed(text);
  CHECK(add_replicas(more, 1, "m").empty());
  CHECK(program_file_text(more) == program_file_text(parsed(text)));
  add_replicas(more, 3, "m");
  CHECK(more.ranks.program_of_rank == std::vector<std::uint32_t>{0, 0, 1, 0, 0, 1, 0, 0, 1});
  CHECK(more.ranks.gpu_of_rank == std::vector<std::uint32_t>{1, 0, 2, 4, 3, 5, 7, 6, 8});
  std::vector<std::vector<std::uint32_t>> groups;
  for (const auto& group : more.ranks.groups) groups.push_back(group.ranks);
  CHECK(groups == std::vector<std::vector<std::uint32_t>>{{1, 0}, {4, 3}, {7, 6}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}});
  CHECK(more.ranks.dimensions.at(1).name == "replicas");
  const StreamPrograms reduced = edited(
      "- insert: {collective: all_reduce, in: replicas, bytes: 4000, stream: compute}\n  after: {kernel: k}\n", more);
  CHECK(reduced.programs[1].ops.size() == 2);
  CHECK(error_of([&] { add_replicas(more, 1 << 20, "m"); }).find("are more than") != std::string::npos);
}

TEST_CASE("what is wrong in a file of edits is said with its line") {
  const auto wrong = [](const std::string& edits, const std::string& part) {
    const std::string error = refusal(edits);
    CAPTURE(edits, error);
    CHECK(error.find(part) != std::string::npos);
    CHECK(error.find("e.yaml:") == 0);
  };
  wrong("scale: 1\n", "must be a list of edits");
  wrong("[]\n", "must be a list of edits");
  wrong("- 5\n", "e.yaml:1: an edit must be a mapping");
  wrong("- {select: {kernel: '*'}}\n", "an edit must have one of scale, drop, fuse");
  wrong("- {select: {kernel: '*'}, drop: true, scale: {time: 1}}\n", "make it two edits");
  wrong("- {drop: true}\n", "'select' is missing");
  wrong("- {insert: {kernel: k, us: 1, stream: compute}}\n", "'insert' must have 'after', 'before' or both");
  wrong("- {select: {stream: '*'}, drop: true}\n", "a selection must be a mapping with one of kernel");
  wrong("- {select: {kernel: '*', copy: '*'}, drop: true}\n", "make it two edits");
  wrong("\n- {select: {kernal: '*'}, drop: true}\n", "e.yaml:2: unknown key 'kernal'; did you mean 'kernel'?");
  wrong("- {select: {kernel: '*', prt: x}, drop: true}\n", "unknown key 'prt'; did you mean 'part'?");
  wrong("- {select: {kernel: '*'}, drop: false}\n", "'drop' must be true");
  wrong("- {select: {kernel: '*'}, scale: {}}\n", "'scale' must have 'time', 'bytes', 'm', 'n', 'k' or 'batch'");
  wrong("- {select: {kernel: '*'}, scale: {time: -1}}\n", "time");
  wrong("- {select: {kernel: '*'}, scale: {bytes: 2}}\n", "'layer_0' of program 'p' has no bytes");
  wrong("- {select: {collective: '*'}, scale: {time: 2}}\n", "is simulated");
  wrong("- {select: {kernel: gemm}, drop: true}\n",
        "e.yaml:1: selects no operation of any rank: no 'kernel' is 'gemm'");
  wrong("- {select: {kernel: adamm}, drop: true}\n", "no 'kernel' is 'adamm'; did you mean 'adam'?");
  wrong("- {select: {copy: peer}, drop: true}\n", "there is no copy");
  wrong("- {select: {collective: '*', in: tensor}, bucket: 5}\n", "no 'in' is 'tensor'; known are dp");
  wrong("- {select: {kernel: 'l*', part: forward}, drop: true}\n", "no 'part' is 'forward'; known are backward");
  wrong("- {select: {kernel: 'l*', occurrences: 9}, drop: true}\n", "no occurrence has such a number");
  wrong("- insert: {kernel: cast, us: 3, stream: compute}\n  before:\n    {kernel: adamm}\n",
        "e.yaml:3: selects no operation of any rank: no 'kernel' is 'adamm'");
  wrong("- select: {kernel: layer_0}\n  move: other\n  before: {kernel: adam, stream: computer}\n",
        "e.yaml:3: selects no operation of any rank: no 'stream' is 'computer'; did you mean 'compute'?");
  wrong("- {select: {kernel: '*', ranks: []}, drop: true}\n", "'ranks' must be");
  wrong("- {select: {kernel: '*', ranks: '7'}, drop: true}\n", "'ranks' must be below 2");
  wrong("- {select: {kernel: '*', occurrences: x}, drop: true}\n", "'occurrences' must be first, last, or a list");
  wrong("- {select: {collective: '*'}, fuse: {}}\n", "'fuse' is of kernels");
  wrong("- {select: {kernel: '*'}, bucket: 5}\n", "'bucket' is of collectives");
  wrong("- {select: {kernel: '*'}, batch: {factor: 2}}\n", "'batch' must have 'factor' and 'tokens'");
  wrong("- {select: {kernel: '*'}, set: {gemm: [1, 2, 3]}}\n", "'gemm' must be [m, n, k, batch]");
  wrong("- {select: {kernel: '*'}, set: {dtype: int4}}\n", "dtype");
  wrong("- {select: {collective: '*', ranks: '0', occurrences: last}, drop: true}\n", "do not do the same");
}
