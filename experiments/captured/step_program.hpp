// The step of one rank as a program, before its communicators are known by the ranks that are in them.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "experiments/captured/kernel_table.hpp"
#include "experiments/captured/step_range.hpp"
#include "experiments/programs/stream_program.hpp"
#include "experiments/records/rank_record.hpp"

namespace manyworlds::experiments::captured {

/// What users are told of the steps of all ranks.
struct Tally {
  std::map<std::uint32_t, std::int64_t> without_time;  // launches by kernel, of which nothing is known
  std::map<std::uint32_t, std::int64_t>
      other_products;                // by type as recorded: those that are timed as bf16, or not at all
  std::int64_t alone = 0;            // collectives of communicators of one rank
  std::int64_t with_themselves = 0;  // transfers of ranks with themselves
  std::int64_t of_host = 0;          // copies within the host, and its functions on streams
  bool has_threads = false;          // more than one of a process
};

struct StepProgram {
  programs::RankProgram program;  // names are words; communications are not filled in
  std::vector<std::pair<std::uint32_t, std::uint32_t>> communications;  // operation and call
};

/// Builds the program of a range. `host_us` above 0: each call takes that long on a stream of its thread of the host.
/// Throws InputError for work on several devices, for a range that ends inside of a group of NCCL's, and as
/// KernelTable::work_of().
StepProgram step_program(const RankRecord& record, const StepRange& range, const KernelTable& table, const Words& words,
                         double host_us, Tally& tally);

/// Returns whether two programs are the same but for sizes of kernels and copies that differ by up to 5 %: in what
/// their data decide, and in nothing else.
bool are_alike(const StepProgram& one, const StepProgram& other);

/// Gives each operation of a program the larger of its and another's sizes; returns how many differ. They must be
/// alike.
std::int64_t take_larger(StepProgram& to, const StepProgram& other);

}  // namespace manyworlds::experiments::captured
