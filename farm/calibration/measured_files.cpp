#include "farm/calibration/measured_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "experiments/kernels/kineto_trace.hpp"
#include "experiments/measured/term_table.hpp"
#include "experiments/measured_collectives/published_collectives.hpp"
#include "experiments/measured_collectives/published_tables.hpp"
#include "experiments/nccl/nccl_inspector.hpp"
#include "experiments/nccl/nccl_tests.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::farm {
namespace {

using core::InputError;
using experiments::Catalog;
using experiments::import::CsvHeader;
using experiments::import::CsvRow;
using experiments::import::CsvTable;

/// Returns the table with this text in every row of a column, which it may lack.
CsvTable with_column(const CsvTable& table, const std::string& column, const std::string& text) {
  auto header = std::make_shared<CsvHeader>(*table.header);
  const auto [slot, is_new] = header->column_index.try_emplace(column, header->names.size());
  if (is_new) header->names.push_back(column);
  CsvTable result{header, {}};
  for (const CsvRow& row : table.rows) {
    std::vector<std::string> fields;
    for (const std::string& name : header->names)
      fields.emplace_back(name == column ? text : std::string(row.text(name)));
    result.rows.emplace_back(header, std::move(fields), row.line());
  }
  return result;
}

bool is_gemm_table(const CsvHeader& header) {
  constexpr const char* kColumns[] = {"gemm_dtype", "m", "n", "k", "latency"};
  return std::all_of(std::begin(kColumns), std::end(kColumns), [&](const char* name) { return header.has(name); });
}

template <class Row>
void append(std::vector<Row>& to, std::vector<Row> rows) {
  to.insert(to.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
}

[[noreturn]] void refuse(const std::string& path) {
  throw InputError(
      "tells no constant: it must be what nccl-tests printed, JSON of NCCL Inspector, a trace of the PyTorch profiler "
      "(JSON), or a table of "
      "kernels (level, kind, dtype, time_us, …; script/measure_kernels.py writes one), collectives (id, gpu, op, "
      "ranks, "
      "nodes, bytes, time_us) or training steps (id, source, model, gpu, num_gpus, global_batch, measured_step_s)",
      path, 1);
}

class Reader {
 public:
  Reader(std::string gpu, double nic_gbps, const Catalog& catalog)
      : gpu_(std::move(gpu)), nic_gbps_(nic_gbps), catalog_(catalog) {}

  void read(const std::string& path) {
    const std::string text = experiments::import::read_table_text(path);
    const bool inspector = experiments::import::is_nccl_inspector(text);
    if (!inspector && experiments::import::is_json(text))
      return add_kernels(path, experiments::import::parse_kineto_trace(text, path));
    if (!inspector && !experiments::import::is_nccl_tests(text)) check_header(text, path);
    const CsvTable table = experiments::measured::parse_measurements(text, path);
    if (experiments::measured::is_training_steps_table(*table.header))
      add_steps(path, table);
    else if (experiments::measured::is_collectives_table(*table.header))
      add_collectives(path, table);
    else
      add_kernels(path, experiments::import::read_kernel_samples(table));
  }

  MeasuredFiles take() { return std::move(files_); }

 private:
  /// Refuses a text whose first line names the columns of no known table, before the rest is parsed as one.
  static void check_header(const std::string& text, const std::string& path) {
    experiments::import::check_text(text, path);
    const CsvTable header = [&] {
      try {
        return experiments::measured::parse_measurements(text.substr(0, text.find('\n')), path);
      } catch (const InputError&) {
        refuse(path);
      }
    }();
    if (!experiments::measured::is_training_steps_table(*header.header) &&
        !experiments::measured::is_collectives_table(*header.header) &&
        !experiments::import::is_measured_kernels_table(*header.header) && !is_gemm_table(*header.header))
      refuse(path);
  }

  void add_kernels(const std::string& path, std::vector<experiments::import::KernelSample> samples) {
    for (const auto& sample : samples) note_device(path, sample.device);
    files_.kernel_files.push_back(path);
    append(files_.kernels, std::move(samples));
  }

  void add_steps(const std::string& path, const CsvTable& table) {
    for (const CsvRow& row : table.rows) note_device(path, std::string(row.text("gpu")));
    files_.step_files.push_back(path);
    append(files_.steps, experiments::measured::read_training_steps(with_machine(table), catalog_));
  }

  void add_collectives(const std::string& path, const CsvTable& table) {
    const CsvTable ours = experiments::measured::is_published_collectives(*table.header)
                              ? experiments::measured::as_collectives(table)
                              : table;
    for (const CsvRow& row : ours.rows) note_device(path, std::string(row.text("gpu")));
    files_.collective_files.push_back(path);
    append(files_.collectives, experiments::measured::read_collectives(with_machine(ours), catalog_));
  }

  CsvTable with_machine(const CsvTable& table) const {
    const CsvTable on_gpu = with_column(table, "gpu", gpu_);
    return nic_gbps_ > 0 ? with_column(on_gpu, "inter_bw_GBps_per_gpu", fmt::format("{}", nic_gbps_ / 8)) : on_gpu;
  }

  void note_device(const std::string& path, const std::string& device) {
    if (device.empty() || !noted_.insert({path, device}).second) return;
    const std::string known =
        catalog_.entries("gpus").count(device) > 0 ? device : terms_.meaning("gpu", device).value_or("");
    if (known != gpu_)
      files_.notes.push_back(fmt::format("{} names the device {}, {}; peaks and all that is not fitted are those of {}",
                                         path, device, known.empty() ? "which the catalog lacks" : "which is " + known,
                                         gpu_));
  }

  std::string gpu_;
  double nic_gbps_;
  const Catalog& catalog_;
  experiments::measured::TermTable terms_;
  std::set<std::pair<std::string, std::string>> noted_;
  MeasuredFiles files_;
};

}  // namespace

MeasuredFiles read_measured_files(const std::vector<std::string>& paths, const std::string& gpu, double nic_gbps,
                                  const Catalog& catalog) {
  Reader reader(gpu, nic_gbps, catalog);
  for (const std::string& path : paths) reader.read(path);
  return reader.take();
}

}  // namespace manyworlds::farm
