// Logs of NCCL's Inspector plugin, a file per process, as programs of communication alone (docs/nccl_inspector.md).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/programs/imported.hpp"

namespace manyworlds::experiments::nccl_logs {

/// Reads logs, each compressed by gzip or not, of all ranks: a file of each process, or several in one. Collectives are
/// those that all ranks of their communicator logged, in the order of their numbers; communicators wait for each other
/// only if the logs are verbose, in the order of their calls. Ranks are those of the communicator that has them all, or
/// else numbered as the logs come. If ranks contradict each other, logs are missing or there are operations that are
/// not simulated, there are no programs and `refused` says why. Throws core::InputError with the line for an object
/// that is torn or lacks a member, and for processes with several GPUs in several communicators.
programs::Imported read_inspector(const std::vector<std::string>& paths);

/// The same of texts with their names.
programs::Imported import_inspector(const std::vector<std::pair<std::string, std::string_view>>& texts);

}  // namespace manyworlds::experiments::nccl_logs
