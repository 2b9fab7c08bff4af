// Records of captured programs: what kernels and products cost, ranks whose data decide sizes, and records that are
// wrong.
#include "tests/experiments/captured_records.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::captured;

TEST_CASE("a table says what kernels cost, and what it does not say has no time") {
  const RecordText text = RecordText()
                              .launch("void scale<float>(float*, int)", 0, 8, "[[1,0],1024]")
                              .launch("fused(long)", 0, 2, "[256]")
                              .launch("other(int)", 0, 3, "[1]");
  const std::string table =
      "gpu: h100_sxm\n"
      "kernels:\n"
      "  - {kernel: 'void scale<*', bytes: 8 * argument_2}\n"
      "  - {kernel: 'fused(*', gemm: [grid_x * 64, 128, argument_1], dtype: fp32, flops: 7}\n"
      "  - {kernel: 'other*', us: threads / 100}\n";
  const auto read = import_records({text}, all_of_it(), table);
  const auto& ops = read.programs.programs[0].ops;
  CHECK(std::get<programs::KernelWork>(ops[0].work).shape.bytes == 8192);
  const auto& fused = std::get<programs::KernelWork>(ops[1].work);
  CHECK(fused.shape.gemm == programs::GemmShape{128, 128, 256, 1, core::compute::Dtype::fp32});
  CHECK(fused.flops == 7);
  CHECK(std::get<programs::KernelWork>(ops[2].work).measured_us == 0.96);
  CHECK(read.programs.gpu == "h100_sxm");
  CHECK(!has_line(read.account, "have no time"));
  CHECK(!has_line(read.account, "of no kernel"));
  const auto misnamed = import_records({text}, all_of_it(), table + "  - {kernel: 'scael(*', us: 1}\n");
  CHECK(has_line(misnamed.account, "1 entries of the table of kernels are of no kernel of the step: 'scael(*'"));

  const auto without = import_records({text});
  CHECK(has_line(without.account,
                 "3 kernels of 3 launches have no time, as nothing says their cost: 'void scale<float>"));
  CHECK(error_of([&] { step_of(without.programs); })
            .find("job: 3 kernels have no time, and no shape by which one is known: "
                  "'fused(long)'") == 0);
}

TEST_CASE("what is wrong in a table is said with its line") {
  const RecordText text = RecordText().launch("a(float*, int)", 0, 1, "[[1,0],-4]");
  const auto says = [&](const std::string& entry) {
    return error({text}, all_of_it(), "kernels:\n  - " + entry + "\n");
  };
  CHECK(
      says("{kernel: a*, bytes: argument_1}") ==
      "kernels.yaml:2: formula 'argument_1': argument_1 is no number in 'a(float*, int)' (rank0.jsonl:2), which has 2 "
      "arguments");
  CHECK(says("{kernel: a*, bytes: argument_3}").find("argument_3 is no number") != std::string::npos);
  CHECK(says("{kernel: a*, bytes: argument_2}").find("formula 'argument_2': is -4 for 'a(float*, int)'") !=
        std::string::npos);
  CHECK(says("{kernel: a*, bytes: block}").find("a launch has no 'block'; did you mean 'blocks'?") !=
        std::string::npos);
  CHECK(says("{kernel: a*, bytes: 3 *}").find("a value is missing at its end") != std::string::npos);
  CHECK(says("{kernel: a*, bytes: blocks > 3}").find("it is no number") != std::string::npos);
  CHECK(says("{kernel: a*, us: 3}").find("'us' are times on a GPU") != std::string::npos);
  CHECK(says("{kernel: a*, flops: 3}").find("of 'flops' alone no time follows") != std::string::npos);
  CHECK(says("{kernel: a*, byte: 3}").find("'byte' is no key here; did you mean 'bytes'?") != std::string::npos);
  CHECK(says("{bytes: 3}").find("an entry must have 'kernel'") != std::string::npos);
  CHECK(error({text}, all_of_it(), "kernel: []\n").find("kernels.yaml:1: 'kernel' is no key here") == 0);
}

TEST_CASE("a pattern's stars stand for anything") {
  CHECK(fits("*", ""));
  CHECK(fits("a*b*", "axxbyy"));
  CHECK(fits("a*bc", "abbc"));
  CHECK(!fits("a*b", "abc"));
  CHECK(!fits("", "a"));
  CHECK(fits("void f<*>(int)*", "void f<g<2> >(int)"));
}

TEST_CASE("ranks whose data decide sizes share a program with the largest") {
  std::vector<RecordText> texts;
  for (int rank = 0; rank < 3; ++rank)
    texts.push_back(RecordText(rank, 3).launch("a", 0, rank == 2 ? 2000 : 1000 + rank).launch("b", 0));
  const std::string table = "kernels: [{kernel: '*', bytes: 4 * blocks}]\n";
  const auto read = import_records(texts, all_of_it(), table);
  CHECK(read.programs.ranks.program_of_rank == std::vector<std::uint32_t>{0, 0, 1});
  CHECK(std::get<programs::KernelWork>(read.programs.programs[0].ops[0].work).shape.bytes == 4004);
  CHECK(std::get<programs::KernelWork>(read.programs.programs[1].ops[0].work).shape.bytes == 8000);
  CHECK(has_line(read.programs.notes, "have the largest: 1 operations of a rank"));
}

TEST_CASE("matrix products have their shapes, and types without a rate no time") {
  const auto product = [](const std::string& type) {
    return fmt::format(R"("m":64,"n":48,"k":32,"batch":3,"dtypes":["{0}","{0}","fp32"],"stream":0)", type);
  };
  const auto read = import_records({RecordText()
                                        .call("cublasGemmEx", product("bf16"))
                                        .call("cublasGemmEx", product("fp16"))
                                        .call("cublasLtMatmul", product("fp32"))
                                        .call("cublasLtMatmul", product("fp64"))});
  std::vector<std::optional<programs::GemmShape>> shapes;
  for (const auto& op : read.programs.programs[0].ops)
    shapes.push_back(std::get<programs::KernelWork>(op.work).shape.gemm);
  using core::compute::Dtype;
  CHECK(shapes[0] == programs::GemmShape{64, 48, 32, 3, Dtype::bf16});
  CHECK(shapes[1] == shapes[0]);
  CHECK(shapes[2] == programs::GemmShape{64, 48, 32, 3, Dtype::fp32});
  CHECK(!shapes[3]);
  CHECK(has_line(read.programs.notes, "1 matrix products in fp16 take what they would in bf16"));
  CHECK(has_line(read.account, "1 matrix products in fp64 have no time"));
}

TEST_CASE("what is wrong in a record is said with its line") {
  const auto says = [](const std::string& name, const std::string& members) {
    return error({RecordText().create().call(name, members)});
  };
  CHECK(says("cudaLaunchKernal", "") ==
        "rank0.jsonl:3: records of version 1 have no call 'cudaLaunchKernal'; did you mean 'cudaLaunchKernel'?");
  CHECK(says("cudaEventRecord", R"("stream":2)") == "rank0.jsonl:3: 'the line' has no member 'event'");
  CHECK(says("cudaEventRecord", R"("event":0,"stream":3)") == "rank0.jsonl:3: stream 3 was not created before");
  CHECK(says("cudaEventRecord", R"("event":"0","stream":2)").find("rank0.jsonl:3: 'event' must be") == 0);
  CHECK(says("cudaEventRecord", R"("event":0 "stream":2)").find("rank0.jsonl:3: bad JSON: ") == 0);
  CHECK(says("ncclAllReduce", R"("stream":2,"communicator":0)") ==
        "rank0.jsonl:3: communicator 0 was not created before");
  CHECK(says("capture", "").find("rank0.jsonl:3: a capture begins in the first line alone") == 0);
  Words words;
  CHECK(error_of([&] { parse_record("", "r", words); }) ==
        "r: is empty; the first line of a record has \"call\":\"capture\"");
  CHECK(error_of([&] { parse_record("{\"call\":\"end\"}\n", "r", words); }).find("r:1: the first line must be") == 0);
  CHECK(error_of([&] {
          parse_record("{\"call\":\"capture\",\"version\":2,\"rank\":0,\"world\":1,\"gpu\":\"x\"}\n", "r", words);
        }).find("r:1: is of version 2") == 0);
  CHECK(error({RecordText(0, 2), RecordText(0, 2)}) ==
        "rank1.jsonl:1: is of rank 0, as is rank0.jsonl: give one record per rank");
  CHECK(error({RecordText(0, 2), RecordText(1, 3)}).find("rank1.jsonl:1: is of a world of 3 ranks") == 0);
  CHECK(error({RecordText()}) == "rank0.jsonl: has no call that is part of a step");
  RecordText devices;
  devices.create().launch("a", 2).call("cudaSetDevice", R"("device":1)").launch("b", 0);
  CHECK(error({devices}).find("rank0.jsonl:5: gives devices 0 and 1 work in one process") == 0);
}
