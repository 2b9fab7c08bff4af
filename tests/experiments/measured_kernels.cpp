// Tables of measured kernels: what is read, what is refused, and how a sweep carries one.
#include "experiments/kernels/measured_kernels.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "core/workload/build/measurement_coverage.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::core::compute;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

namespace {

const std::string kTable =
    "level,name,pass,kind,dtype,m,n,k,batch,bytes,flops,time_us,source\n"
    "kernel,qkv,,gemm,bf16,2048,4608,1536,1,,,31.25,mine\n"
    "kernel,gelu,,memory_bound,bf16,,,,,1048576,,4.000001,mine\n"
    "submodule,attention,backward,cudnn_backward,bf16,2048,2048,1536,1,,,120,\n"
    "layer,expert_layer,forward,gemm,fp8,2048,2048,1536,2,100,200,999,\n";

std::string refusal(const std::string& text) {
  try {
    import::parse_measured_kernels(text, "k.csv");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

/// Kernels of the sweep's first experiment at that level, with the model's times.
std::string modelled_table(const Sweep& sweep, CostLevel level) {
  const auto configuration = sweep.experiments.front().config().configuration;
  std::vector<import::KernelRow> rows;
  for (const auto& [what, sources] :
       core::workload::measurement_coverage(configuration.model, configuration.strategy, configuration.gpu).costs)
    if (what.level == level) rows.push_back({what, sources.ps(), "modelled"});
  return import::measured_kernels_csv(rows);
}

struct TableFolder : TemporaryFolder {
  explicit TableFolder(const std::string& table) { put("k.csv", table); }
  std::string set() const { return "cluster.gpu.measured_kernels=" + (path / "k.csv").string(); }
};

}  // namespace

TEST_CASE("a table of measured kernels is found by level, name, pass and size, in picoseconds") {
  const MeasuredTimes table = import::parse_measured_kernels(kTable, "k.csv");
  CHECK(table.size() == 4);
  const Kernel qkv = gemm("qkv", 2048, 4608, 1536);
  REQUIRE(table.find(measurement_key(qkv)));
  CHECK(table.find(measurement_key(qkv))->time_ps == 31'250'000);
  CHECK(table.find(measurement_key(qkv))->row == 2);
  CHECK(table.find(measurement_key(gemm("qkv", 2048, 4608, 1537))) == nullptr);
  CHECK(table.find(measurement_key(gemm("mlp_up", 2048, 4608, 1536))) == nullptr);
  CHECK(table.find(measurement_key(gemm("qkv", 2048, 4608, 1536, Dtype::fp8))) == nullptr);
  REQUIRE(table.find(measurement_key(memory_bound("gelu", 1048576))));
  CHECK(table.find(measurement_key(memory_bound("gelu", 1048576)))->time_ps == 4'000'001);
  MeasurementKey layer{CostLevel::layer,
                       "expert_layer",
                       Direction::forward,
                       KernelClass::gemm,
                       Dtype::fp8,
                       2048,
                       2048,
                       1536,
                       2,
                       100,
                       200};
  REQUIRE(table.find(layer));
  layer.flops = 201;
  CHECK(table.find(layer) == nullptr);
}

TEST_CASE("what is no table of measured kernels is refused by line, saying what would be right") {
  using Catch::Contains;
  using Catch::StartsWith;
  CHECK(refusal(kTable) == "(no error)");
  CHECK_THAT(refusal(""), StartsWith("k.csv:1: "));
  CHECK_THAT(refusal(with(kTable, "flops", "flop")),
             StartsWith("k.csv:1: unknown column 'flop'") && Contains("'flops'"));
  CHECK_THAT(refusal("level,name,kind,dtype\n"), StartsWith("k.csv:1: ") && Contains("'time_us' is missing"));
  CHECK_THAT(refusal("level,name,kind,dtype,time_us\n"), StartsWith("k.csv:1: the table has no row"));
  CHECK_THAT(refusal(with(kTable, "kernel,qkv", "model,qkv")),
             StartsWith("k.csv:2: level must be one of kernel, submodule, layer"));
  CHECK_THAT(refusal(with(kTable, ",gemm,bf16", ",gem,bf16")), StartsWith("k.csv:2: kind must be one of gemm"));
  CHECK_THAT(refusal(with(kTable, "gemm,bf16", "gemm,fp64")), StartsWith("k.csv:2: dtype must be one of bf16"));
  CHECK_THAT(refusal(with(kTable, "qkv,,", "qkv,forward,")), StartsWith("k.csv:2: pass must be empty"));
  CHECK_THAT(refusal(with(kTable, "2048,4608", ",4608")), StartsWith("k.csv:2: ") && Contains("needs m"));
  CHECK_THAT(refusal(with(kTable, "2048,4608", "0,4608")), StartsWith("k.csv:2: m must be from 1"));
  CHECK_THAT(refusal(with(kTable, "2048,4608", "2048.5,4608")), StartsWith("k.csv:2: m must be an integer"));
  CHECK_THAT(refusal(with(kTable, ",31.25", ",")), StartsWith("k.csv:2: time_us is missing"));
  CHECK_THAT(refusal(with(kTable, ",31.25", ",0")), StartsWith("k.csv:2: time_us must be from"));
  CHECK_THAT(refusal(with(kTable, ",31.25", ",-3")), StartsWith("k.csv:2: time_us must be from"));
  CHECK_THAT(refusal(with(kTable, "1048576", "")), StartsWith("k.csv:3: a memory_bound kernel needs bytes"));
  CHECK_THAT(refusal(with(kTable, "bf16,,,,,1048576", "bf16,7,,,,1048576")), StartsWith("k.csv:3: m must be empty"));
  CHECK_THAT(refusal(with(kTable, "memory_bound", "delta_rule")),
             StartsWith("k.csv:3: a kernel of a scan needs flops"));
  CHECK_THAT(refusal(with(kTable, "memory_bound,bf16,,,,,1048576,", "delta_rule,bf16,,7,,,1048576,1")),
             StartsWith("k.csv:3: n must be empty or 0: kernels of scans are known by"));
  CHECK_THAT(refusal(with(kTable, "attention,backward", "attention,")), StartsWith("k.csv:4: pass must be one of"));
  CHECK_THAT(refusal(with(kTable, "submodule,attention", "submodule,")), StartsWith("k.csv:4: ") && Contains("a name"));
  CHECK_THAT(refusal(kTable + "kernel,qkv,,gemm,bf16,2048,4608,1536,1,,,31.5,\n"),
             StartsWith("k.csv:6: qkv gemm bf16 2048x4608x1536 batch 1 has another time in line 2"));
  CHECK(refusal(kTable + "kernel,qkv,,gemm,bf16,2048,4608,1536,1,,,31.25,twice\n") == "(no error)");
}

TEST_CASE("mutated tables of measured kernels are read or refused with the file's name") {
  std::mt19937_64 random(11);
  std::size_t refused = 0;
  for (int i = 0; i < 3'000; ++i) {
    const std::string bent = mutated(kTable, random);
    CAPTURE(bent);
    try {
      const std::size_t rows = import::parse_measured_kernels(bent, "k.csv").size();
      REQUIRE(rows > 0);
    } catch (const core::InputError& error) {
      ++refused;
      REQUIRE(std::string(error.what()).rfind("k.csv:", 0) == 0);
    }
  }
  CHECK(refused > 1'000);
  CHECK(refused < 3'000);
}

TEST_CASE("what is written as a table is read to the same times, to the picosecond") {
  std::vector<import::KernelRow> rows;
  for (const core::Time time_ps : std::initializer_list<core::Time>{1, 999'999, 1'000'000, 123'456'789'012})
    rows.push_back({measurement_key(memory_bound("gelu", time_ps)), time_ps, "modelled"});
  rows.push_back(
      {measurement_key(fused_attention("attention", KernelClass::cudnn_forward, {64, 64, 2080, 32, 32, 4, 4, 0})), 7,
       ""});
  rows.push_back({measurement_key(chunked_scan("scan", KernelClass::state_space, 100, 0)), 8, ""});
  rows.push_back({measurement_key(chunked_scan("scan", KernelClass::delta_rule, 100, 200, 3)), 9, ""});
  const MeasuredTimes back = import::parse_measured_kernels(import::measured_kernels_csv(rows), "k.csv");
  CHECK(back.size() == rows.size());
  for (const auto& row : rows) {
    REQUIRE(back.find(row.item));
    CHECK(back.find(row.item)->time_ps == row.time_ps);
  }
}

TEST_CASE("a sweep carries its table of measured kernels: read back far from the file it has the same times") {
  std::string serialized;
  {
    const TableFolder folder(kTable);
    serialized = serialize(read(kSingle, {folder.set()}));
  }
  const Sweep back = deserialize(serialized);
  CHECK(serialize(back) == serialized);
  GraphCache graphs;
  const auto gpu = configure(back.experiments.front(), graphs).gpu;
  REQUIRE(gpu.measured);
  CHECK(gpu.measured->find(measurement_key(gemm("qkv", 2048, 4608, 1536)))->time_ps == 31'250'000);
  CHECK(configure(read(kSingle).experiments.front(), graphs).gpu.measured == nullptr);
  CHECK_THROWS_WITH(deserialize(with(serialized, "k.csv\":\"level", "x.csv\":\"level")),
                    Catch::Contains("resolved sweep: the file of 'cluster.gpu.measured_kernels'"));
}

TEST_CASE("a table that cannot be read, or holds nonsense, ends the reading of its sweep") {
  CHECK_THAT(error_of(kSingle, {"cluster.gpu.measured_kernels=/nowhere/k.csv"}),
             Catch::Contains("'cluster.gpu.measured_kernels': /nowhere/k.csv: cannot be read"));
  const TableFolder folder(with(kTable, "31.25", "long"));
  CHECK_THAT(error_of(kSingle, {folder.set()}), Catch::Contains("k.csv:2: time_us must be a number"));
}

TEST_CASE("measured_only refuses a sweep whose kernels are not all measured, and names them") {
  const std::string only = "cluster.gpu.measured_only=true";
  CHECK_THAT(error_of(kSingle, {only}),
             Catch::Contains("'cluster.gpu.measured_only': ") &&
                 Catch::Contains(" kernels are in no row of 'cluster.gpu.measured_kernels'"));
  const Sweep sweep = read(kSingle);
  const std::string all = modelled_table(sweep, CostLevel::kernel);
  {
    const TableFolder folder(all);
    CHECK(error_of(kSingle, {folder.set(), only}) == "(no error)");
  }
  const auto configuration = sweep.experiments.front().config().configuration;
  const auto shapes = core::workload::rank_shapes(configuration.model, configuration.strategy);
  const std::string first = fmt::format("kernel,vocabulary,,gemm,bf16,{},", shapes.tokens);
  const auto at = all.find(first);
  REQUIRE(at != std::string::npos);
  const TableFolder folder(std::string(all).erase(at, all.find('\n', at) + 1 - at));
  CHECK_THAT(error_of(kSingle, {folder.set(), only}),
             Catch::Contains(": 1 kernels are in no row of") &&
                 Catch::Contains(fmt::format("vocabulary gemm bf16 {}x", shapes.tokens)) &&
                 Catch::Contains("--kernels"));
  CHECK(error_of(kSingle, {folder.set()}) == "(no error)");
}
