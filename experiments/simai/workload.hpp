// SimAI's workload as programs: what its simulator runs, on streams (aliyun/SimAI, Workload::iterate_* and Layer).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::simai {

/// Ranks of a group of tensor, expert and pipeline parallelism; 0: not said.
struct GroupSizes {
  std::uint32_t tp = 0, ep = 0, pp = 0;
};

/// Reads "tp=2,ep=8,pp=4", each of which may be missing. Throws InputError at `option` for another name or number.
GroupSizes parse_group_sizes(std::string_view text, const std::string& option);

/// What the file may leave to whoever runs it.
struct RunOptions {
  std::optional<std::uint32_t> gpus;  // instead of the header's all_gpus, as SimAI's -g
  GroupSizes groups = {};             // of a table of AICB alone, where no row says them
};

/// Returns one pass over the workload as the program of every rank. Kernels run on one stream in SimAI's order: forward
/// passes of all layers, then from the last layer to the first its input gradients and its weight gradients (weight
/// gradients first where the policy is DATA). Communication of forward passes and input gradients is waited for, with
/// the layer's process time behind it; that of weight gradients runs beside kernels, and is waited for at the end. A
/// layer of checkpoint_initiates has the forward passes from the last layer of checkpoints at or before it run again
/// before its input gradients. Groups: tp neighbours, ep of these, and the replicas of one stage. All ranks have this
/// program: SimAI simulates one stage, and so does this; the account says what its report adds for the pipeline.
/// Throws InputError for what parse_workload_file() refuses, for a number of GPUs that nobody says or that the groups
/// do not divide, and for checkpoints from which SimAI would not return.
programs::Imported parse_workload(std::string_view text, const std::string& name, const RunOptions& options = {});

/// Reads the same from a file, which may be compressed by gzip.
programs::Imported read_workload(const std::string& path, const RunOptions& options = {});

}  // namespace manyworlds::experiments::simai
