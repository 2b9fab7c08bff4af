// Shapes of kernels, from what a trace says of the operators that launched them.
#include "experiments/kineto/host_trace.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/experiments/kineto_traces.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::programs;
using namespace manyworlds;

namespace {

constexpr const char* kInputs =
    R"("Input Dims":[{}],"Input type":[{}],"Input Strides":[[],[]],"Concrete Inputs":["","True",{{"odd":[1]}},null,"[\"a, b\"]"])";

/// A kernel of 10 us at a time, which the operator of the same number launched.
void launched(TraceText& text, double at, int number, const std::string& op, const std::string& inputs) {
  text.event("cpu_op", op, at, 20, 1,
             fmt::format(R"("External id":{}{}{})", number, inputs.empty() ? "" : ",", inputs));
  text.launched(op + "_kernel", at + 1, at + 10, 10, 7, number, 1, fmt::format(R"(,"External id":{})", number));
}

std::string inputs(const std::string& dims, const std::string& types) {
  return fmt::format(kInputs, dims, types);
}

KernelShape shape(const Imported& imported, std::size_t number) {
  std::vector<KernelShape> shapes;
  for (const StreamOp& op : imported.programs.programs[0].ops)
    if (const auto* kernel = std::get_if<KernelWork>(&op.work)) shapes.push_back(kernel->shape);
  return shapes.at(number);
}

}  // namespace

TEST_CASE("kernels have the shapes of the operators that launched them") {
  TraceText text;
  const std::string half = R"("c10::BFloat16","c10::BFloat16")";
  launched(text, 0, 1, "aten::mm", inputs("[64,256],[256,512]", half));
  launched(text, 100, 2, "aten::add", inputs("[8,1024],[8,1024]", half));
  launched(text, 200, 3, "aten::mm", inputs("[64,256],[256,512]", R"("double","double")"));  // a type without a rate
  launched(text, 300, 4, "aten::mm", "");                                                    // not recorded
  launched(text, 400, 5, "own::scan", inputs("[64,256],[256,512]", half));                   // not modelled
  launched(text, 500, 6, "aten::_flash_attention_forward",
           inputs("[2,128,8,64],[2,128,4,64],[2,128,4,64]", half + R"(,"c10::BFloat16")"));
  const Imported read = import_text({text.text()});
  CHECK(shape(read, 0) == KernelShape{.gemm = GemmShape{64, 512, 256, 1, compute::Dtype::bf16}});
  CHECK(shape(read, 1) == KernelShape{.bytes = 3 * 8 * 1024 * 2});
  for (const std::size_t unknown : {2, 3, 4}) CHECK_FALSE(shape(read, unknown).is_known());
  CHECK(shape(read, 5).attention == AttentionShape{compute::KernelClass::flash2_forward, 128, 128, 64, 16, 8, false});
  CHECK(std::count(read.account.begin(), read.account.end(),
                   "shapes of 3 of 6 kernels, 50.0 % of their time, follow from their operators") == 1);
}

TEST_CASE("an execution trace of the host tells the inputs of operators that the trace does not") {
  TraceText text;
  text.event("cpu_op", "aten::mm", 0, 20, 1, R"("External id":5,"Record function id":17)");
  text.launched("gemm", 1, 10, 10, 7, 1, 1, R"(,"External id":5)");
  text.event("cpu_op", "aten::mm", 40, 20, 1, R"("External id":6,"Record function id":18)");
  text.launched("gemm", 41, 50, 10, 7, 2, 1, R"(,"External id":6)");
  const auto node = [](const char* name, const char* dims, int function) {
    return fmt::format(
        R"x({{"id":4,"name":"{}","inputs":{{"values":[[1,2,0,64,2,"cuda:0"],true],"shapes":[{},[]],)x"
        R"x("types":["Tensor(c10::BFloat16)","Tensor(c10::BFloat16)"]}},"attrs":[{{"name":"seq_id","value":3}},)x"
        R"x({{"name":"rf_id","type":"uint64","value":{}}}]}})x",
        name, dims, function);
  };
  const auto host_of = [](const std::string& nodes) {
    std::istringstream stream(R"({"schema":"1.1.0-chakra.0.0.4","nodes":[)" + nodes + "]}");
    return kineto::parse_host_trace(stream, "host.json");
  };
  const auto read = [&](const std::string& nodes) {
    const profiler::OperatorInputs host = host_of(nodes);
    std::istringstream stream(text.text());
    return kineto::import_traces({kineto::parse_trace(stream, "rank-0.json", &host)});
  };
  const Imported linked = read(node("aten::mm", "[64,256],[256,512]", 17) + "," + node("aten::add", "[8]", 30));
  CHECK(shape(linked, 0).gemm == GemmShape{64, 512, 256, 1, compute::Dtype::bf16});
  CHECK_FALSE(shape(linked, 1).is_known());  // call 18 is not there
  CHECK(error_of([&] { read(node("aten::add", "[8]", 17)); }) ==
        "rank-0.json: was recorded in another run than the execution trace of its host: call 17 is aten::mm here, and "
        "aten::add there");
  CHECK(error_of([&] { host_of(R"({"name":"aten::mm","inputs":[]})"); }).find("host.json: is no execution trace") == 0);
  CHECK(error_of([&] { host_of(""); }).find("host.json: has no operator whose call is numbered") == 0);
  CHECK(error_of([&] { host_of("[,"); }).find("host.json:") == 0);
}

TEST_CASE("on another GPU kernels of a trace are scaled by their shape, or by what is assumed of those without one") {
  const auto gpu = [&](const char* name) {
    compute::Gpu one = config_of(Cluster(), 1, 1, 1).gpu;
    one.memory_gb_per_s = std::string(name) == "slow" ? 1000 : 3000;
    one.matrix_tflops = std::string(name) == "slow" ? 300 : 900;
    return one;
  };
  const compute::Gpu fast = gpu("fast"), slow = gpu("slow");
  const std::string head =
      "{\"manyworlds_program\":1,\"name\":\"k\"}\n{\"program\":\"p\",\"ranks\":\"0\",\"streams\":[\"s\"]}\n";
  const auto ps = [&](const std::string& members) {
    const StreamPrograms all =
        parse_program_file(head + "{\"kernel\":\"k\",\"us\":1000,\"stream\":\"s\"" + members + "}\n", "p");
    CHECK(program_file_text(parse_program_file(program_file_text(all), "again")) == program_file_text(all));
    CHECK(timed_on(all, fast, &fast, "p").programs.programs[0].ops[0].kernel()->duration_ps == 1'000'000'000);
    return static_cast<double>(timed_on(all, slow, &fast, "p").programs.programs[0].ops[0].kernel()->duration_ps);
  };
  const auto ratio = [&](const compute::Kernel& kernel) {
    return static_cast<double>(compute::modelled_time(kernel, slow)) /
           static_cast<double>(compute::modelled_time(kernel, fast));
  };
  CHECK(ps(R"(,"gemm":[512,512,512,1])") == Approx(1e9 * ratio(compute::gemm("", 512, 512, 512))));
  CHECK(ps(R"(,"scales_with":"memory")") == Approx(3e9));
  CHECK(ps(R"(,"scales_with":"matrix")") == Approx(1e9 * ratio(compute::gemm("", 8192, 8192, 8192))));
}
