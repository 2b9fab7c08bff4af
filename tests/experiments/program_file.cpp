// The file of stream programs: what is written is read, and what is wrong is said.
#include "experiments/programs/program_file.hpp"

#include "core/step/layout/as_given.hpp"
#include "experiments/programs/timed_programs.hpp"
#include "tests/experiments/given_steps.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::experiments::programs;
using namespace manyworlds;
using core::collective::Kind;

namespace {

const std::string kHead =
    "{\"manyworlds_program\":1,\"name\":\"two\"}\n"
    "{\"dimension\":\"all\"}\n{\"dimension\":\"next\",\"kind\":\"pairs\"}\n"
    "{\"groups\":\"all\",\"ranks\":[[0,1]]}\n{\"groups\":\"next\",\"ranks\":[[0,1]]}\n"
    "{\"program\":\"first\",\"ranks\":\"0\",\"streams\":[\"7\",\"20\"],\"host_streams\":[\"main\"]}\n";
const std::string kSecondRank =
    "{\"program\":\"second\",\"ranks\":\"1\",\"streams\":[\"7\",\"20\"]}\n"
    "{\"collective\":\"all_reduce\",\"in\":\"all\",\"bytes\":4096,\"stream\":\"20\"}\n"
    "{\"receive\":\"next\",\"bytes\":64,\"stream\":\"20\"}\n";
const std::string kFirstRank =
    "{\"host\":\"launch\",\"us\":5,\"stream\":\"main\"}\n"
    "{\"allocate\":1000}\n"
    "{\"kernel\":\"mul\",\"us\":10.000001,\"stream\":\"7\",\"after\":[0]}\n"
    "{\"record\":3,\"stream\":\"7\"}\n{\"wait\":3,\"stream\":\"20\"}\n"
    "{\"collective\":\"all_reduce\",\"in\":\"all\",\"bytes\":4096,\"stream\":\"20\"}\n"
    "{\"free\":1000}\n"
    "{\"send\":\"next\",\"bytes\":64,\"stream\":\"20\"}\n";

std::string refusal_of(const std::string& text) {
  try {
    parse_program_file(text, "p.jsonl");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "no error";
}

step::Configuration with_programs(step::Configuration configuration, const std::string& text) {
  configuration.programs = std::make_shared<const workload::GivenPrograms>(
      timed_on(parse_program_file(text, "p.jsonl"), configuration.gpu, nullptr, "p.jsonl").programs);
  configuration.model = {};
  configuration.strategy = {};
  return configuration;
}

}  // namespace

TEST_CASE("a program file is read as it stands") {
  const StreamPrograms programs = parse_program_file(kHead + kFirstRank + kSecondRank, "p.jsonl");
  REQUIRE(programs.programs.size() == 2);
  const RankProgram& first = programs.programs[0];
  REQUIRE(first.ops.size() == 4);
  CHECK(std::get<HostWork>(first.ops[0].work).us == 5);
  CHECK(*std::get<KernelWork>(first.ops[1].work).measured_us == 10.000001);
  CHECK(first.ops[1].after == std::vector<std::uint32_t>{0});
  CHECK(first.ops[2].after == std::vector<std::uint32_t>{1});  // by the event
  CHECK(first.ops[3].after.empty());
  CHECK(first.allocations == std::vector<Allocation>{{1, 1000}, {3, -1000}});
  CHECK(programs.ranks.program_of_rank == std::vector<std::uint32_t>{0, 1});
  const auto& transfer = std::get<Communication>(programs.programs[1].ops[1].work);
  CHECK(transfer.receives);
  CHECK(transfer.kind == Kind::send);
}

TEST_CASE("an event that is recorded has what its stream waits for, though it did nothing since") {
  const StreamPrograms programs = parse_program_file(kHead +
                                                         R"({"kernel":"a","us":1,"stream":"7"}
{"record":1,"stream":"7"}
{"kernel":"b","us":1,"stream":"20"}
{"wait":1,"stream":"20"}
{"record":2,"stream":"20"}
{"wait":2,"stream":"main"}
{"host":"waits for a and b","us":1,"stream":"main"}
{"kernel":"c","us":1,"stream":"20"}
{"record":3,"stream":"20"}
{"wait":3,"stream":"7"}
{"kernel":"d","us":1,"stream":"7"}
)" + kFirstRank + kSecondRank,
                                                     "p.jsonl");
  const std::vector<StreamOp>& ops = programs.programs[0].ops;
  CHECK(ops[2].after == std::vector<std::uint32_t>{0, 1});
  CHECK(ops[3].after == std::vector<std::uint32_t>{0});
  CHECK(ops[4].after == std::vector<std::uint32_t>{3});  // c, which came after a
}

TEST_CASE("what is written of a program file is read as the same programs, and written the same") {
  const StreamPrograms programs = parse_program_file(kHead + kFirstRank + kSecondRank, "p.jsonl");
  const std::string text = program_file_text(programs);
  const StreamPrograms again = parse_program_file(text, "again");
  CHECK(again.programs == programs.programs);
  CHECK(again.names == programs.names);
  CHECK(program_file_text(again) == text);
}

TEST_CASE("a written program file that is cut at the end of a line is refused") {
  // Behind the header: 2 dimensions, 2 groups, 2 programs, 6 operations, 2 lines of memory; events became lists.
  const std::string text = program_file_text(parse_program_file(kHead + kFirstRank + kSecondRank, "p.jsonl"));
  CHECK(text.starts_with("{\"manyworlds_program\":1,\"lines\":14,"));
  std::size_t kept = 0;
  for (std::size_t end = text.find('\n'); end + 1 < text.size(); end = text.find('\n', end + 1))
    CHECK(refusal_of(text.substr(0, end + 1)) ==
          fmt::format("p.jsonl: has {} lines behind the first, whose 'lines' is 14: it was cut, or 'lines' must follow "
                      "what was changed",
                      kept++));
  CHECK(kept == 14);
  CHECK(refusal_of(text + "\n \n") == "no error");  // blank lines are none
}

TEST_CASE("a program of two ranks takes what its parts take, one after the other") {
  const step::Configuration machines = config_of(Cluster(), 1, 1, 1);
  const std::string reduce = "{\"collective\":\"all_reduce\",\"in\":\"all\",\"bytes\":4096,\"stream\":\"20\"}\n";
  const std::string second = "{\"program\":\"second\",\"ranks\":\"1\",\"streams\":[\"20\"]}\n";
  const auto time_of = [&](const std::string& first_ops, const std::string& second_ops, network::Fidelity fidelity) {
    return run_at(with_programs(machines, kHead + first_ops + second + second_ops), fidelity).step_ps;
  };
  for (const network::Fidelity fidelity : {network::Fidelity::packet, network::Fidelity::analytic}) {
    const Time reduces = time_of(reduce, reduce, fidelity);
    const Time sends = time_of("{\"send\":\"next\",\"bytes\":64,\"stream\":\"20\"}\n",
                               "{\"receive\":\"next\",\"bytes\":64,\"stream\":\"20\"}\n", fidelity);
    const step::Configuration all = with_programs(machines, kHead + kFirstRank + kSecondRank);
    CHECK(run_at(all, fidelity).step_ps == 5'000'000 + 10'000'001 + reduces + sends);
    CHECK(run_at(all, fidelity).breakdown[workload::StepPart::kernels] == Approx(10.000001e-6 / 2));  // of one of two
    CHECK(all.programs->peak_bytes(0) == 1000);
    CHECK(all.programs->peak_bytes(1) == 0);
  }
}

TEST_CASE("fused attention takes what the model's own takes, and is written as it was read") {
  const compute::Gpu gpu = config_of(Cluster(), 1, 1, 1).gpu;
  const auto step = [&](const std::string& members) {
    const std::string text =
        "{\"manyworlds_program\":1}\n{\"program\":\"p\",\"ranks\":\"0\",\"streams\":[\"s\"]}\n"
        "{\"kernel\":\"attention\",\"stream\":\"s\",\"attention\":{\"class\":" +
        members + "}}\n";
    const StreamPrograms programs = parse_program_file(text, "p.jsonl");
    CHECK(parse_program_file(program_file_text(programs), "again").programs == programs.programs);
    return step_of(programs).step_ps;
  };
  using compute::KernelClass;
  const auto own = [&](KernelClass kernel_class, std::int64_t pairs, std::int64_t key_batch, bool is_causal) {
    return compute::modelled_time(
        compute::fused_attention("", kernel_class, {1024, 1024, pairs, 64, 64, 96, key_batch, 0, is_causal}), gpu);
  };
  const std::string extents = ",\"queries\":1024,\"keys\":1024,\"width\":64,\"batch\":96";
  CHECK(step("\"cudnn_forward\"" + extents) == own(KernelClass::cudnn_forward, 1024 * 1024 / 2, 96, true));
  CHECK(step("\"cudnn_backward\"" + extents) == own(KernelClass::cudnn_backward, 1024 * 1024 / 2, 96, true));
  CHECK(step("\"flash2_forward\",\"causal\":false,\"key_batch\":12" + extents) ==
        own(KernelClass::flash2_forward, 1024 * 1024, 12, false));
}

TEST_CASE("a kernel with its name alone is read and written, and refused where it is timed") {
  const std::string text = kHead + "{\"kernel\":\"odd\",\"stream\":\"7\"}\n" + kFirstRank + kSecondRank;
  const StreamPrograms programs = parse_program_file(text, "p.jsonl");
  CHECK(std::get<KernelWork>(programs.programs[0].ops[0].work) == KernelWork());
  CHECK(parse_program_file(program_file_text(programs), "again").programs == programs.programs);
  std::string error = "no error";
  try {
    timed_on(programs, config_of(Cluster(), 1, 1, 1).gpu, nullptr, "p.jsonl");
  } catch (const core::InputError& refused) {
    error = refused.what();
  }
  CHECK(error.find("p.jsonl: 1 kernels have no time, and no shape by which one is known: 'odd'; give them") == 0);
}

TEST_CASE("batched matrix products are timed with their own type") {
  const compute::Gpu gpu = config_of(Cluster(), 1, 1, 1).gpu;
  const auto time_of = [&](const std::string& dtype) {
    const std::string kernel = fmt::format(R"({{"kernel":"mul","gemm":[512,256,64,12],"dtype":"{}","stream":"7"}})"
                                           "\n",
                                           dtype);
    const TimedPrograms timed =
        timed_on(parse_program_file(kHead + kernel + kFirstRank + kSecondRank, "p"), gpu, nullptr, "p");
    return timed.programs.kernels[0][0].cost_ps + timed.programs.kernels[0][1].cost_ps - 10'000'001;
  };
  compute::Kernel single = compute::batched_gemm("mul", 512, 256, 64, 12);
  CHECK(time_of("bf16") == compute::modelled_time(single, gpu));
  single.dtype = compute::Dtype::fp32;
  single.bytes += 2 * 12 * (512 * 64 + 64 * 256);  // inputs of four bytes instead of two
  CHECK(time_of("fp32") == compute::modelled_time(single, gpu));
}

TEST_CASE("ranks of one program are timed on the kind of GPU that each is on") {
  const std::string text =
      "{\"manyworlds_program\":1,\"name\":\"mixed\",\"gpu_of_rank\":[3,0,1,2]}\n"
      "{\"program\":\"p\",\"ranks\":\"0-2\",\"streams\":[\"7\"]}\n"
      "{\"kernel\":\"mul\",\"gemm\":[4096,4096,4096,1],\"us\":1000,\"stream\":\"7\"}\n"
      "{\"kernel\":\"add\",\"bytes\":100000000,\"stream\":\"7\"}\n"
      "{\"copy\":\"host_to_device\",\"us\":50,\"stream\":\"7\"}\n"
      "{\"program\":\"q\",\"ranks\":\"3\",\"streams\":[\"7\"]}\n"
      "{\"copy\":\"host_to_device\",\"us\":50,\"stream\":\"7\"}\n";
  const StreamPrograms programs = parse_program_file(text, "p.jsonl");
  ClusterGpus gpus{{config_of(Cluster(), 1, 1, 1).gpu}, {0, 1, 2, 2}};
  gpus.of_kind.resize(3, gpus.of_kind.front());
  gpus.of_kind[1].speed_factor = 0.8;
  gpus.of_kind[2].matrix_tflops /= 2, gpus.of_kind[2].memory_gb_per_s /= 3;
  const compute::Gpu& first = gpus.of_kind.front();

  // Rank 0 is on GPU 3, of the third kind; ranks 1 and 2 are on GPUs 0 and 1; rank 3 is on GPU 2, of the third.
  const workload::GivenPrograms given = timed_on(programs, gpus, &first, "p.jsonl").programs;
  CHECK(given.ranks->program_of_rank == std::vector<std::uint32_t>{2, 0, 1, 3});
  const auto ps = [&](std::size_t program, std::size_t op) {
    return given.programs[program].ops[op].kernel()->duration_ps;
  };
  const compute::Kernel product = compute::gemm("", 4096, 4096, 4096), sum = compute::memory_bound("", 100'000'000);
  const Time us = 1'000'000;
  CHECK(ps(0, 0) == 1000 * us);
  CHECK(ps(1, 0) == 1250 * us);
  CHECK(std::abs(static_cast<double>(ps(2, 0)) -
                 1e9 * static_cast<double>(compute::modelled_time(product, gpus.of_kind[2])) /
                     static_cast<double>(compute::modelled_time(product, first))) <= 1);
  for (std::size_t kind = 0; kind < 3; ++kind) CHECK(ps(kind, 1) == compute::modelled_time(sum, gpus.of_kind[kind]));
  CHECK(ps(0, 2) == 50 * us);
  CHECK(ps(1, 2) == 50 * us);  // no kernel
  CHECK(ps(2, 2) == ps(3, 0));

  // At one full speed nobody needs to know where they were measured, otherwise it must be said.
  CHECK(
      error_of([&] { timed_on(programs, gpus, nullptr, "p.jsonl"); }) ==
      "p.jsonl: has measured times, and on GPUs of several kinds it must be known on which; give program.measured_on");
  gpus.kind_of_gpu = {0, 1, 0, 0}, gpus.of_kind.resize(2);
  CHECK(timed_on(programs, gpus, nullptr, "p.jsonl").programs.ranks->program_of_rank ==
        std::vector<std::uint32_t>{0, 0, 1, 2});
}

TEST_CASE("what is wrong in a program file is said with its line") {
  CHECK(refusal_of("") == "p.jsonl: is empty; the first line must have 'manyworlds_program'");
  for (const char* other : {"HYBRID_TRANSFORMER all_gpus: 8\n", "{\n\"traceEvents\": []}", R"({"traceEvents": []})"})
    CHECK(
        refusal_of(other) ==
        "p.jsonl:1: is no program file, whose first line has 'manyworlds_program'; of a trace, or another simulator's "
        "workload, `manyworlds program FILE --to FILE.jsonl` makes one");
  CHECK(refusal_of("{\"manyworlds_program\":2}\n") == "p.jsonl:1: 'manyworlds_program' must be 1, not 2");
  CHECK(refusal_of(kHead).find("no rank runs") == std::string::npos);
  const auto bad = [](const std::string& line, const std::string& says) {
    INFO(line);
    const std::string error = refusal_of(kHead + line + "\n");
    INFO(error);
    CHECK(error.find("p.jsonl:7: ") == 0);
    CHECK(error.find(says) != std::string::npos);
  };
  bad("{\"kernel\":\"k\",\"us\":1,\"stream\":\"8\"}", "has no stream '8'");
  bad("{\"kernel\":\"k\",\"us\":-1,\"stream\":\"7\"}", "'us' must be a number of at least 0, not -1");
  bad("{\"kernel\":\"k\",\"us\":\"1\",\"stream\":\"7\"}", "'us' must be a number of at least 0, not string");
  bad("{\"kernel\":\"k\",\"us\":1,\"stream\":\"7\",\"after\":[0]}", "comes after 0, which is not before it");
  bad("{\"kernel\":\"k\",\"us\":1,\"stream\":\"7\",\"afer\":[0]}", "has no member 'afer'; did you mean 'after'?");
  bad("{\"kernel\":\"k\",\"us\":1,\"stream\":\"main\"}", "is a host stream");
  bad("{\"host\":\"k\",\"us\":1,\"stream\":\"7\"}", "is no host stream");
  bad("{\"collective\":\"all_reduce\",\"in\":\"al\",\"bytes\":1,\"stream\":\"7\"}", "no dimension 'al'");
  bad("{\"collective\":\"all_reduce\",\"in\":\"next\",\"bytes\":1,\"stream\":\"7\"}", "has pairs");
  bad("{\"collective\":\"all_sum\",\"in\":\"all\",\"bytes\":1,\"stream\":\"7\"}", "must be one of all_reduce");
  bad("{\"send\":\"all\",\"bytes\":1,\"stream\":\"7\"}", "has groups");
  bad("{\"wait\":9,\"stream\":\"7\"}", "event 9 was not recorded");
  bad("{\"free\":1}", "more memory is freed");
  bad("{\"dimension\":\"late\"}", "before programs");
  bad("{\"kernel\":\"k\",\"stream\":\"7\",\"gemm\":[1,2,3]}", "[m, n, k, batch]");
  const auto attention = [&](const std::string& members, const std::string& says) {
    bad("{\"kernel\":\"k\",\"stream\":\"7\"," + members + "}", says);
  };
  const std::string extents = "\"queries\":8,\"keys\":8,\"width\":8,\"batch\":6";
  attention("\"attention\":{\"class\":\"gemm\"," + extents + "}",
            "'class' must be one of flash_forward, flash_backward");
  attention("\"attention\":{\"class\":\"flash_forward\",\"queries\":8}", "'keys'");
  attention("\"attention\":{\"class\":\"flash_forward\"," + extents + ",\"key_batch\":4}", "a multiple of 'key_batch'");
  attention("\"gemm\":[1,1,1,1],\"attention\":{\"class\":\"flash_forward\"," + extents + "}", "not both");
  attention("\"dtype\":\"fp8\",\"attention\":{\"class\":\"flash_forward\"," + extents + "}", "stands in 'attention'");
  bad("{\"program\":\"x\",\"ranks\":\"0\"}", "rank 0 has two programs");
  bad("[1]", "every line must be an object");
  bad("{\"kernel\":", "bad JSON");
}

TEST_CASE("members of a group that do not do the same in it are told apart") {
  const std::string reduce = "{\"collective\":\"all_reduce\",\"in\":\"all\",\"bytes\":4096,\"stream\":\"7\"}\n";
  const std::string larger = "{\"collective\":\"all_reduce\",\"in\":\"all\",\"bytes\":4097,\"stream\":\"7\"}\n";
  const std::string other = "{\"program\":\"second\",\"ranks\":\"1\",\"streams\":[\"7\"]}\n";
  CHECK(refusal_of(kHead + reduce + other + reduce) == "no error");
  CHECK(refusal_of(kHead + reduce + reduce + other + reduce) ==
        "p.jsonl:4: ranks 0 and 1 do not do the same in their group of dimension 'all': the one has 2 operations there "
        "and the other 1");
  CHECK(
      refusal_of(kHead + reduce + other + larger).find("all_reduce of 4096 bytes of the one and all_reduce of 4097") !=
      std::string::npos);
  const std::string send = "{\"send\":\"next\",\"bytes\":1,\"stream\":\"7\"}\n";
  CHECK(refusal_of(kHead + send + other) ==
        "p.jsonl:5: rank 0 does not send what rank 1 receives in dimension 'next': there are 1 sends and 0 receives");
  CHECK(refusal_of(kHead + send + other + "{\"receive\":\"next\",\"bytes\":2,\"stream\":\"7\"}\n") ==
        "p.jsonl:5: rank 0 does not send what rank 1 receives in dimension 'next': number 1 is sent with 1 bytes and "
        "received with 2");
  std::string far = kHead + reduce + other + reduce;
  far.replace(far.find("[[0,1]]"), 7, "[[0,5]]");
  CHECK(refusal_of(far) == "p.jsonl:4: rank 5 of a group has no program: ranks are 0 to 1");
  CHECK(refusal_of(kHead + "{\"receive\":\"next\",\"bytes\":1,\"stream\":\"7\"}\n" + other)
            .find("rank 0 receives in dimension 'next', in which it has no group") != std::string::npos);
}

TEST_CASE("100 drawn experiments, written as program files and read back, have their steps to the picosecond") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_configuration(seed);
    step::SimulationContext context;
    const step::CompiledStep compiled = context.compile(configuration);
    const auto given = step::as_given(configuration, compiled.layout());
    const std::string text = program_file_text(as_stream_programs(given, "drawn"));
    const step::Configuration read = with_programs(configuration, text);
    for (const network::Fidelity fidelity : {network::Fidelity::packet, network::Fidelity::analytic}) {
      const step::StepResult one = run_at(configuration, fidelity), other = run_at(read, fidelity);
      require_same_packets(one, other);
      REQUIRE(one.breakdown == other.breakdown);
    }
  }
}
