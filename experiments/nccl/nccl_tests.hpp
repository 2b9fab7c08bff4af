// The text that nccl-tests prints (all_reduce_perf and the others, also under mpirun and srun, and as an excerpt in
// other text): its tables become rows, whatever is printed around them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::import {

/// One size of one test. `bytes` is the printed size, which is defined as that of core::collective::Kind.
struct NcclTestRow {
  int line = 0;
  std::string operation;  // all_reduce, all_gather, reduce_scatter, alltoall, broadcast, …
  std::string device;     // of the first rank, as printed
  std::string version;    // of the library; empty if it is not printed
  std::string type;       // of the elements
  std::int64_t ranks = 0, nodes = 0;
  // As printed; empty in a row that is torn. The time is the shorter of the two, out of place and in place: noise only
  // adds.
  std::string bytes, time_us;
};

/// Returns whether the text has the header of such a table.
bool is_nccl_tests(std::string_view text);

/// Returns the rows of all tables in order; `name` is the file name in messages, and tells all_gather from alltoall
/// where nothing else does. Throws InputError, with file and line, for a table without ranks or rows, and for one whose
/// operation cannot be told.
std::vector<NcclTestRow> parse_nccl_tests(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
