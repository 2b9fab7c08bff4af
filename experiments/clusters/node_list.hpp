// Lists of nodes as Slurm writes them: "a[01-08,12],b3", also with several brackets in a name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::clusters {

/// Returns the names in the order of the list; an empty list has none. Throws InputError, which quotes the part that is
/// wrong, for a list that does not parse, for a name that is listed twice, and for more names than any cluster has.
std::vector<std::string> expand_node_list(std::string_view list);

}  // namespace manyworlds::experiments::clusters
