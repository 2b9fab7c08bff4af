#include "experiments/measured_collectives/published_exchanges.hpp"

#include <fmt/format.h>

#include "experiments/measured_collectives/published_collectives.hpp"

namespace manyworlds::experiments::measured {
namespace {

using import::CsvHeader;
using import::CsvRow;
using import::CsvTable;

const std::vector<std::string> kColumns{"id",    "system",  "gpu",    "op",      "ranks",     "nodes",
                                        "bytes", "time_us", "source", "family",  "kernels",   "tokens",
                                        "top_k", "experts", "units",  "routing", "row_bytes", "node_limit"};

// The tables are of nodes of eight GPUs. DeepEP's test of several nodes limits the nodes of a token, as DeepSeek-V3
// does.
constexpr std::int64_t kGpusPerNode = 8;
constexpr const char* kNodeLimit = "4";
constexpr std::int64_t kMaxHidden = 1 << 20;
constexpr std::int64_t kTokenHeader = 16;  // bytes of a row beside its values: where it came from

bool is_deepep(const CsvHeader& header) {
  return has_all(header, {"device", "node_num", "hidden_size", "num_token", "num_topk", "num_experts"}) &&
         (has_all(header, {"dispatch_sms", "dispatch_transmit_us", "combine_sms", "combine_transmit_us"}) ||
          has_all(header, {"dispatch_avg_t_us", "combine_avg_t_us"}));
}

bool is_trtllm(const CsvHeader& header) {
  return has_all(header, {"device", "op_name", "kernel_source", "moe_dtype", "num_tokens", "hidden_size", "topk",
                          "num_experts", "moe_ep_size", "latency"}) &&
         !header.has("inter_size");
}

/// Returns the bytes of a row of `hidden` values in a format; empty if either is not known.
std::string row_bytes(const CsvRow& row, std::string_view format, std::int64_t header) {
  const auto hidden = row.integer("hidden_size");
  if (!hidden || *hidden < 1 || *hidden > kMaxHidden) return {};
  // 8-bit rows have a scale of four bytes for 128 values with DeepEP, 4-bit ones of one byte for 16.
  if (format == "fp8_block") return std::to_string(*hidden + *hidden / 32 + header);
  if (format == "fp8") return std::to_string(*hidden + header);
  if (format == "nvfp4") return std::to_string(*hidden / 2 + *hidden / 16 + header);
  return format == "bfloat16" ? std::to_string(2 * *hidden + header) : std::string();
}

/// Returns one direction of a row of DeepEP, whose kernels send fp8 and return bf16.
std::vector<std::string> from_deepep(const CsvRow& row, bool combine) {
  const bool low_latency = row.header().has("dispatch_avg_t_us");
  const std::string direction = combine ? "combine" : "dispatch", device(row.text("device"));
  const auto nodes = row.integer("node_num");
  return {fmt::format("{}_{}_{}", low_latency ? "deepep_ll" : "deepep", direction, row.line()),
          "aiconfigurator",
          device,
          "moe_" + direction,
          nodes && *nodes > 0 && *nodes < 1'000 ? std::to_string(*nodes * kGpusPerNode) : "",
          std::string(row.text("node_num")),
          "",
          std::string(row.text(direction + (low_latency ? "_avg_t_us" : "_transmit_us"))),
          "ai-dynamo/aiconfigurator",
          fmt::format("DeepEP{} {} {}", low_latency ? " low latency" : "", chip_of(device), direction),
          low_latency ? "low_latency" : "deepep",
          std::string(row.text("num_token")),
          std::string(row.text("num_topk")),
          std::string(row.text("num_experts")),
          low_latency ? "" : std::string(row.text(direction + "_sms")),
          "",
          row_bytes(row, combine ? "bfloat16" : "fp8_block", low_latency && combine ? 0 : kTokenHeader),
          low_latency ? "" : kNodeLimit};
}

/// Returns a row of TensorRT-LLM's all-to-all, in ms. Its kernels fill the GPU, so that the table has no compute units.
std::vector<std::string> from_trtllm(const CsvRow& row) {
  const std::string op(row.text("op_name")), device(row.text("device"));
  const bool combine = op == "alltoall_combine", one_sided = row.text("kernel_source") == "NVLinkOneSided";
  const bool known = combine || op == "alltoall_dispatch";
  const auto ms = row.real("latency");
  return {fmt::format("trtllm_{}_{}", op, row.line()),
          "aiconfigurator",
          device,
          known ? (combine ? "moe_combine" : "moe_dispatch") : op,
          std::string(row.text("moe_ep_size")),
          "1",
          "",
          ms ? fmt::format("{}", *ms * 1e3) : std::string(row.text("latency")),
          "ai-dynamo/aiconfigurator",
          fmt::format("TensorRT-LLM {} {} {}", one_sided ? "one-sided" : "two-sided", chip_of(device),
                      combine ? "combine" : "dispatch"),
          one_sided ? "trtllm_one_sided" : "trtllm_two_sided",
          std::string(row.text("num_tokens")),
          std::string(row.text("topk")),
          std::string(row.text("num_experts")),
          "1",
          std::string(row.text("distribution")),
          row_bytes(row, combine ? "bfloat16" : row.text("moe_dtype"), 0),
          ""};
}

}  // namespace

bool is_published_exchanges(const CsvHeader& header) {
  return is_deepep(header) || is_trtllm(header);
}

CsvTable exchanges_as_collectives(const CsvTable& table) {
  auto header = std::make_shared<CsvHeader>();
  header->names = kColumns;
  header->file = table.header->file;
  for (std::size_t i = 0; i < kColumns.size(); ++i) header->column_index[kColumns[i]] = i;
  CsvTable result{header, {}};
  for (const CsvRow& row : table.rows) {
    if (is_trtllm(*table.header)) {
      result.rows.emplace_back(header, from_trtllm(row), row.line());
      continue;
    }
    for (const bool combine : {false, true}) result.rows.emplace_back(header, from_deepep(row, combine), row.line());
  }
  return result;
}

}  // namespace manyworlds::experiments::measured
