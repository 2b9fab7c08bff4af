// Records of a captured program's ranks as stream programs (docs/capture.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/captured/kernel_table.hpp"
#include "experiments/captured/step_range.hpp"
#include "experiments/programs/imported.hpp"
#include "experiments/records/rank_record.hpp"

namespace manyworlds::experiments::captured {

struct ReadOptions {
  StepChoice steps;
  double host_us = 0;        // that a call takes on its thread of the host; 0: the host takes no time
  bool alike = false;        // a rank without a record does what the nearest one below it with a record did
  std::string kernels_path;  // a table of kernels; empty: none
  std::string groups_path;   // of `alike`: which ranks communicators have; empty: those of all ranks alone
};

/// Returns whether a path is a folder with records, or a text begins as a record does.
bool is_captured(const std::string& path, std::string_view head);

/// Reads records, or all of those in folders, each compressed by gzip or not. Throws core::InputError, with file and
/// line, for what parse_record(), join_communicators(), check_calls(), find_steps() and step_program() refuse; for two
/// records of one rank, and worlds that differ; for ranks without records unless they are `alike`, and then for
/// communicators whose members nothing tells.
programs::Imported read_captured(const std::vector<std::string>& paths, const ReadOptions& options);

/// The same of records that have been parsed. `groups` is the text of the file of groups.
programs::Imported import_records(std::vector<RankRecord> records, const Words& words, const KernelTable& table,
                                  const ReadOptions& options, std::string_view groups, const std::string& name);

}  // namespace manyworlds::experiments::captured
