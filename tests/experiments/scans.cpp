// The measured scans of docs/facts/scans.csv against our own kernels with the catalog's constants.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/workload/mixers/scan_kernels.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/text/csv.hpp"
#include "experiments/text/text.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::core::workload;
using namespace manyworlds::experiments;

namespace {

using core::compute::Gpu;
using core::compute::KernelClass;
using import::CsvRow;

std::int64_t size(const CsvRow& row, const char* column) {
  const auto value = row.integer(column);
  REQUIRE(value.has_value());
  return *value;
}

std::int64_t chunks_of(std::int64_t tokens, std::int64_t chunk) {
  return (tokens + chunk - 1) / chunk;
}

/// Kernels of one pass: of Mamba-2's scan, with the convolution before it where the row has that, or of the delta rule.
OpList kernels_of_pass(const CsvRow& row, bool backward) {
  const std::int64_t tokens = size(row, "batch") * size(row, "sequence"), chunk = size(row, "chunk");
  if (row.text("family") != "ssd") {
    DeltaRuleSizes rule;
    rule.tokens = tokens, rule.chunk = chunk, rule.chunks = chunks_of(tokens, chunk);
    rule.serial_chunks = chunks_of(row.integer("longest").value_or(0), chunk);  // not stated of every row
    rule.value_heads = size(row, "heads"), rule.key_heads = size(row, "groups");
    rule.key_dim = size(row, "key_dim"), rule.value_dim = size(row, "value_dim");
    return backward ? delta_rule_backward(rule) : delta_rule_forward(rule);
  }
  StateSpaceSizes scan;
  scan.tokens = tokens, scan.chunk = chunk, scan.chunks = chunks_of(tokens, chunk);
  scan.heads = size(row, "heads"), scan.groups = size(row, "groups");
  scan.state = size(row, "key_dim"), scan.head_dim = size(row, "value_dim");
  return backward ? state_space_backward(scan) : state_space_forward(scan);
}

/// Picoseconds without launches: rows are sums of kernels, or of long kernels.
double modelled_ps(const core::compute::Kernel& kernel, Gpu gpu) {
  gpu.launch_us = 0;
  return static_cast<double>(core::compute::modelled_time(kernel, gpu));
}

double modelled_us(const CsvRow& row, const Gpu& gpu) {
  const std::map<std::string, std::vector<bool>> passes{
      {"fwd", {false}}, {"bwd", {true}}, {"fwd+bwd", {false, true}}, {"fwd twice+bwd", {false, false, true}}};
  const bool only_scan = row.text("kernel") == "_chunk_scan_fwd";
  const bool convolves =
      row.text("kernel") == "convolution and all SSD kernels" || row.text("kernel") == "all SSM kernels";
  double ps = 0;
  for (const bool backward : passes.at(std::string(row.text("pass")))) {
    for (const WorkItem& work : kernels_of_pass(row, backward))
      if (!only_scan || work.kernel()->shape.name == "mixer_chunk_scan") ps += modelled_ps(work.kernel()->shape, gpu);
    if (!convolves) continue;
    // Read and written once, in the backward pass again before its gradient, which reads two and writes one.
    const std::int64_t elements = size(row, "sequence") * (size(row, "heads") * size(row, "value_dim") +
                                                           2 * size(row, "groups") * size(row, "key_dim"));
    ps += modelled_ps(
        core::compute::chunked_scan("convolution", KernelClass::state_space, (backward ? 10 : 4) * elements, 0), gpu);
  }
  return ps * 1e-6;
}

struct Residuals {
  double low = 1e9, high = -1e9;
  int rows = 0;
};

}  // namespace

TEST_CASE("measured scans lie within the residuals that docs/facts/scans.md states") {
  const std::string file = source_folder() + "/docs/facts/scans.csv";
  const import::CsvTable table = import::parse_csv(import::read_text(file), file);
  const Catalog catalog;
  const std::map<std::string, std::string> names{{"A100", "a100_80"},  {"H100", "h100_sxm"}, {"H800", "h800_sxm"},
                                                 {"H200", "h200_sxm"}, {"B200", "b200_hgx"}, {"GB200", "gb200_nvl72"}};
  std::map<std::string, Residuals> by_kind;
  for (const CsvRow& row : table.rows) {
    const std::string fit(row.text("fit")), family(row.text("family"));
    if (fit.empty() || family == "linear") continue;
    const std::string gpu = names.at(std::string(row.text("gpu")));
    const std::string kind = family == "ssd" ? "scan " : size(row, "heads") >= 32 ? "rule " : "few heads ";
    const std::string generation = gpu[0] == 'a' ? "Ampere" : gpu[0] == 'h' ? "Hopper" : "Blackwell";
    const double residual = modelled_us(row, gpu_of(catalog.entries("gpus").at(gpu))) / *row.real("time_us") - 1;
    Residuals& all = by_kind[kind + generation];
    all.low = std::min(all.low, residual), all.high = std::max(all.high, residual), ++all.rows;
  }
  const auto within = [&](const std::string& kind, int rows, double low, double high) {
    CAPTURE(kind, by_kind[kind].low, by_kind[kind].high);
    CHECK(by_kind[kind].rows == rows);
    CHECK(by_kind[kind].low > low - 0.01);
    CHECK(by_kind[kind].high < high + 0.01);
  };
  // Section 3, but for constants of two digits and the catalog's peaks; delta rules with the bound of chunks that wait
  // for each other.
  within("scan Hopper", 18, -0.11, 0.16);
  within("scan Blackwell", 1, -0.01, 0.01);
  within("rule Ampere", 4, 0, 0.12);
  within("rule Hopper", 93, -0.07, 0.26);
  within("rule Blackwell", 99, -0.22, 0.36);
  within("few heads Hopper", 92, -0.68, 0.33);
  within("few heads Blackwell", 94, -0.77, 0.14);
}
