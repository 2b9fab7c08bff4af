#include "experiments/measured_collectives/published_collectives.hpp"

#include <algorithm>

#include "experiments/measured_collectives/published_exchanges.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::measured {
namespace {

using import::CsvHeader;
using import::CsvRow;
using import::CsvTable;

const std::vector<std::string> kColumns{"id",        "system",
                                        "gpu",       "op",
                                        "ranks",     "nodes",
                                        "bytes",     "time_us",
                                        "algorithm", "inter_bw_GBps_per_gpu",
                                        "version",   "source",
                                        "family",    "ll128_between_nodes"};

bool is_nccl_perf(const CsvHeader& header) {
  return has_all(header, {"op_name", "nccl_dtype", "num_gpus", "message_size", "latency"});
}

bool is_mare_nostrum(const CsvHeader& header) {
  return has_all(header, {"nodes", "gpus", "bytes", "algorithm", "median_ns"});
}

/// Returns the number times `factor`, or the text as it is if it is no number: the reader of collectives says so.
std::string scaled_integer(const CsvRow& row, const char* column, std::int64_t factor) try {
  const auto value = row.integer(column);
  constexpr std::int64_t kMax = std::int64_t{1} << 50;
  if (!value || *value < 0 || *value > kMax / factor) return std::string(row.text(column));
  return std::to_string(*value * factor);
} catch (const core::InputError&) {
  return std::string(row.text(column));
}

std::string scaled_real(const CsvRow& row, const char* column, double factor) try {
  const auto value = row.real(column);
  return value ? fmt::format("{}", *value * factor) : std::string(row.text(column));
} catch (const core::InputError&) {
  return std::string(row.text(column));
}

/// The device and the version of the library that a row was measured with. Tables that lack these columns have them in
/// their file's name: h100_sxm_comm_nccl_2.23_nccl_perf.csv.
struct Measured {
  std::string device, version;
};

Measured measured_with(const CsvRow& row) {
  if (row.given("device")) return {std::string(row.text("device")), std::string(row.text("version"))};
  constexpr std::string_view kBefore = "_nccl_", kAfter = "_nccl_perf";
  const std::string& path = row.header().file;
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::size_t version = name.find(kBefore), end = name.rfind(kAfter);
  if (version == std::string::npos || version + kBefore.size() > end) return {};
  std::string device = name.substr(0, name.find('_'));
  std::transform(device.begin(), device.end(), device.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return {device, name.substr(version + kBefore.size(), end - version - kBefore.size())};
}

/// One row of aiconfigurator's tables: sizes are in elements, times in milliseconds. Switches do not reduce 8-bit
/// integers.
std::vector<std::string> from_nccl_perf(const CsvRow& row) {
  const Measured with = measured_with(row);
  const std::string chip = chip_of(with.device);
  std::string op(row.text("op_name"));
  const bool is_int8 = row.text("nccl_dtype") == "int8";
  const std::string algorithm = is_int8 && op == "all_reduce" ? "ring" : "";
  if (op == "alltoall") op = "all_to_all";
  return {fmt::format("nccl_{}_{}_{}_{}_{}", chip, with.version, op, row.text("num_gpus"), row.line()),
          "aiconfigurator",
          with.device,
          op,
          std::string(row.text("num_gpus")),
          "1",
          scaled_integer(row, "message_size", is_int8 ? 1 : 2),
          scaled_real(row, "latency", 1e3),
          algorithm,
          "",
          with.version,
          "ai-dynamo/aiconfigurator",
          fmt::format("NCCL {} {}", chip, op),
          ""};
}

/// One row of PICO's all-reduces: four H100 and four NICs of 200 Gb/s a node, which are not behind the GPUs' switches.
/// All algorithms but ring and tree fall back to these there.
std::vector<std::string> from_mare_nostrum(const CsvRow& row) {
  const std::string_view algorithm = row.text("algorithm");
  const bool known = algorithm == "allreduce_nccl_ring" || algorithm == "allreduce_nccl_tree";
  return {fmt::format("mn5_{}_{}_{}", row.text("gpus"), algorithm, row.line()),
          "MareNostrum 5",
          "h100_sxm",
          known ? "all_reduce" : std::string(algorithm),
          std::string(row.text("gpus")),
          std::string(row.text("nodes")),
          std::string(row.text("bytes")),
          scaled_real(row, "median_ns", 1e-3),
          known ? std::string(algorithm.substr(algorithm.rfind('_') + 1)) : "",
          "25",
          "",
          "HLC-Lab/pico",
          "NCCL MareNostrum 5 all_reduce",
          "0"};
}

}  // namespace

bool has_all(const CsvHeader& header, std::initializer_list<const char*> columns) {
  return std::all_of(columns.begin(), columns.end(), [&](const char* name) { return header.has(name); });
}

std::string chip_of(std::string_view device) {
  constexpr std::string_view kMaker = "NVIDIA ";
  if (device.starts_with(kMaker)) device.remove_prefix(kMaker.size());
  return std::string(device.substr(0, device.find_first_of(" -")));
}

bool is_published_collectives(const CsvHeader& header) {
  return is_nccl_perf(header) || is_mare_nostrum(header) || is_published_exchanges(header);
}

namespace {

std::shared_ptr<const CsvHeader> header_of_collectives(const std::string& file) {
  auto header = std::make_shared<CsvHeader>();
  header->names = kColumns;
  header->file = file;
  for (std::size_t i = 0; i < kColumns.size(); ++i) header->column_index[kColumns[i]] = i;
  return header;
}

}  // namespace

CsvTable as_collectives(const std::vector<import::NcclTestRow>& rows, const std::string& file) {
  CsvTable result{header_of_collectives(file), {}};
  for (const import::NcclTestRow& row : rows) {
    const std::string op = row.operation == "alltoall" ? "all_to_all" : row.operation;
    const bool one_byte = row.type.ends_with("int8");  // switches do not reduce these
    std::vector<std::string> fields{fmt::format("nccl_tests_{}_{}_{}", op, row.ranks, row.line),
                                    "nccl-tests",
                                    row.device,
                                    op,
                                    std::to_string(row.ranks),
                                    std::to_string(row.nodes),
                                    row.bytes,
                                    row.time_us,
                                    one_byte && op == "all_reduce" ? "ring" : "",
                                    "",
                                    row.version,
                                    "nccl-tests",
                                    fmt::format("nccl-tests {}", op),
                                    ""};
    result.rows.emplace_back(result.header, std::move(fields), row.line);
  }
  return result;
}

CsvTable as_collectives(const CsvTable& table) {
  if (is_published_exchanges(*table.header)) return exchanges_as_collectives(table);
  const auto header = header_of_collectives(table.header->file);
  const bool nccl_perf = is_nccl_perf(*table.header);
  CsvTable result{header, {}};
  for (const CsvRow& row : table.rows)
    result.rows.emplace_back(header, nccl_perf ? from_nccl_perf(row) : from_mare_nostrum(row), row.line());
  return result;
}

}  // namespace manyworlds::experiments::measured
