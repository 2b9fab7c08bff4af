// The record of one captured process: its calls, a line each (experiments/capture/README.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/records/call.hpp"

namespace manyworlds::experiments::captured {

struct RankRecord {
  std::string file;
  std::int32_t rank = 0, world = 1;
  std::string gpu;
  std::vector<Call> calls;  // in the order of the file
  std::vector<Launch> launches;
  std::vector<double> arguments;
  std::vector<Product> products;
  std::vector<LibraryKernel> library_kernels;
  std::vector<Copy> copies;
  std::vector<Created> streams;
  std::vector<Communication> communications;
  std::vector<OpenedCommunicator> communicators;            // by their number in this rank
  std::map<std::uint32_t, std::int64_t> occupancy_queries;  // that were answered by assumption, by kernel
  std::int64_t failed = 0;                                  // calls that returned an error
  std::int64_t beyond = 0;                                  // calls that reach beyond an allocation
  bool has_end = false;
  std::string stopped;  // why, if the capture ended it
};

/// Returns whether a text begins as such a record does.
bool is_record(std::string_view head);

/// Parses a record; `file` is its name in messages. Throws InputError with the line for what is no JSON, for a call
/// that is unknown or lacks a member or has one of another type, for a stream or communicator that was not created, and
/// for a first line that is not that of a capture.
RankRecord parse_record(std::string_view text, const std::string& file, Words& words);

}  // namespace manyworlds::experiments::captured
