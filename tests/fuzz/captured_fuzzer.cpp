// Any text as the record of a rank, and of two ranks: it is refused on one line with the file's name, or is programs in
// which every operation comes after what it waits for.
#include "experiments/captured/read_captured.hpp"
#include "tests/fuzz/checked_programs.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

constexpr const char* kTable =
    "gpu: h100_sxm\nkernels:\n  - {kernel: 'a*', us: blocks + argument_1}\n  - {kernel: '*b', bytes: 4 * threads}\n"
    "  - {kernel: 'c', gemm: [grid_x, block_x, argument_2], dtype: fp32}\n";

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
    fuzz::require_programs(captured::import_records(std::move(records), words,
                                                    captured::KernelTable(kTable, "record.jsonl"), options,
                                                    R"({"0": [[0, 1], [2, 3]], "1": [[0, 2], [1, 3]]})", "record.jsonl")
                               .programs);
  } catch (const core::InputError& error) {
    fuzz::require_refusal(error, "record.jsonl");
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
