// Joins runs of parts of a sweep in one run directory: what their journals hold is copied there, and when that is
// everything, the results are written as if one run had computed them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace manyworlds::farm {

/// Takes what `runs` have computed into `into`, which is begun or gone on with as an ordinary run of the whole sweep.
/// The runs may be parts or all of the sweep, complete or not, still running or not: their journals are only read.
/// Says what is missing and how to go on. Returns the exit code: done, some experiments failed, or (75) not all is
/// there. Throws InputError for runs of another sweep or another build, naming them, and as RunDirectory::begin().
int merge_runs(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& into, bool json);

}  // namespace manyworlds::farm
