// Merges runs of parts of a sweep into one run directory: copies the records of their journals and, once the sweep is
// complete, writes the results as if one run had computed them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace manyworlds::farm {

/// Merges the results of `runs` into `into`, which is begun or resumed as an ordinary run of the whole sweep. The runs
/// may be shards or the whole sweep, complete or not, still running or not: their journals are only read. Prints what
/// is missing and how to resume. Returns the exit code: done, some experiments failed, or (75) incomplete. Throws
/// InputError for runs of another sweep or another build, naming them, and like RunDirectory::begin().
int merge_runs(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& into, bool json);

}  // namespace manyworlds::farm
