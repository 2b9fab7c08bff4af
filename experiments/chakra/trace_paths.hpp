// Where the traces of a job lie: PREFIX.0.et, PREFIX.1.et, ..., a file for each rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace manyworlds::experiments::chakra {

/// Returns the path of the trace of a rank.
std::string path_of(const std::string& prefix, std::uint32_t rank);

/// Returns the path of the groups' file that is written beside traces: PREFIX.groups.json.
std::string groups_path_of(const std::string& prefix);

/// Returns how many traces there are at a prefix, from PREFIX.0.et on. Throws InputError if there is none, and if there
/// is one of a later rank behind one that is missing.
std::uint32_t count_traces(const std::string& prefix);

/// Returns the prefix of what a user names: the prefix itself, its first trace, or all of its traces in any order.
/// Throws InputError for traces of several prefixes, for some of a prefix that are neither the first alone nor all, and
/// for files that are not named so.
std::string prefix_of(const std::vector<std::string>& paths);

}  // namespace manyworlds::experiments::chakra
