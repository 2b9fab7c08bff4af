// Runs the ranks of a program that is captured.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace manyworlds::farm {

struct CaptureOptions {
  std::vector<std::string> command;  // the program and its arguments, in which {rank} and {world} stand for numbers
  std::string gpu;                   // of those that the library claims
  std::int64_t memory_bytes = 0;     // of each device; 0: what the catalog says of it
  std::uint32_t world = 1;
  std::vector<std::uint32_t> ranks;
  std::uint32_t devices = 1;  // of the host of a rank
  int cuda = 0;               // major version of CUDA; 0: that of the program, and kNewestCuda if it names none
  /// The groups of ranks that communicators made by a split have, by their number in a rank.
  std::map<std::size_t, std::vector<std::vector<std::uint32_t>>> groups;
  std::string folder;  // of the records and outputs: rank0.jsonl, rank0.log and on
  std::size_t at_once = 1;
};

/// How a rank ended. `what` is empty if it reached its end, exit code 0.
struct CapturedRank {
  std::uint32_t rank = 0;
  std::string what;
  std::int64_t calls = 0;
  double seconds = 0;
};

/// What programs are given that do not name CUDA's libraries themselves, such as scripts.
inline constexpr int kNewestCuda = 13;

/// Returns the folder of the libraries that stand in for those of a major version of CUDA, beside this program in the
/// tree where it was built or installed. Throws core::InputError if there is none.
std::string capture_libraries(int major);

/// Runs ranks in their order, up to `at_once` together, and tells of each when it ends. Makes the folder. Throws
/// core::InputError if it has records, for a program that cannot be found or captured or needs another version of CUDA
/// than was asked for, and if the first rank ends before its record begins, with its last words.
std::vector<CapturedRank> capture_ranks(const CaptureOptions& options,
                                        const std::function<void(const CapturedRank&)>& tell);

}  // namespace manyworlds::farm
