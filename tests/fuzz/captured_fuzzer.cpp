// Any text as the record of a rank, and of two ranks: it is refused on one line with the file's name, or is programs in
// which every operation comes after what it waits for.
#include <cmath>

#include "core/base/error.hpp"
#include "experiments/captured/read_captured.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

constexpr const char* kTable =
    "gpu: h100_sxm\nkernels:\n  - {kernel: 'a*', us: blocks + argument_1}\n  - {kernel: '*b', bytes: 4 * threads}\n"
    "  - {kernel: 'c', gemm: [grid_x, block_x, argument_2], dtype: fp32}\n";

void check(const programs::StreamPrograms& all) {
  core::workload::check_ranks(all.ranks, all.programs.size(), "programs");
  for (const programs::RankProgram& program : all.programs) {
    fuzz::require(!program.ops.empty());
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const programs::StreamOp& op = program.ops[i];
      fuzz::require(op.stream < program.streams.size() && op.name < all.names.size());
      for (const std::uint32_t before : op.after) fuzz::require(before < i);
      const bool is_host = program.streams[op.stream].kind == programs::StreamKind::host;
      fuzz::require(is_host == std::holds_alternative<programs::HostWork>(op.work));
      if (const auto* kernel = std::get_if<programs::KernelWork>(&op.work))
        fuzz::require(kernel->bytes >= 0 && std::isfinite(kernel->measured_us.value_or(0)));
      if (const auto* call = std::get_if<programs::Communication>(&op.work))
        fuzz::require(call->dimension < all.ranks.dimensions.size() && call->bytes > 0);
    }
    for (const programs::Allocation& one : program.allocations) fuzz::require(one.op <= program.ops.size());
  }
}

/// The text with the numbers of rank 0 as those of rank 1.
std::string of_next_rank(std::string text) {
  for (const std::string member : {"\"rank\":", "\"in_rank\":"})
    for (std::size_t at = 0; (at = text.find(member + "0", at)) != std::string::npos; at += member.size())
      text[at + member.size()] = '1';
  return text;
}

void read_ranks(const std::string& text, std::size_t ranks, const captured::ReadOptions& options) {
  try {
    captured::Words words;
    std::vector<captured::RankRecord> records;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      records.push_back(captured::parse_record(rank == 0 ? text : of_next_rank(text), "record.jsonl", words));
    if (records[0].world > 64) return;  // lawful, and slow
    check(captured::import_records(std::move(records), words, captured::KernelTable(kTable, "record.jsonl"), options,
                                   R"({"0": [[0, 1], [2, 3]], "1": [[0, 2], [1, 3]]})", "record.jsonl")
              .programs);
  } catch (const core::InputError& error) {
    const std::string said = error.what();
    fuzz::require(said.rfind("record.jsonl", 0) == 0 && said.find('\n') == std::string::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  captured::is_record(text);
  captured::ReadOptions options;
  options.groups_path = "record.jsonl";
  options.alike = true;
  read_ranks(text, 1, options);
  read_ranks(text, 2, options);
  options.steps.by = captured::StepChoice::By::all;
  options.host_us = 1;
  read_ranks(text, 1, options);
  read_ranks(text, 2, options);
  return 0;
}
