// Flows of a network-only simulation: a CSV table with the header src,dst,bytes,start_ps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.hpp"

namespace manyworlds::experiments::import {

struct Flow {
  std::uint32_t source = 0, destination = 0;  // GPUs, numbered node by node
  std::int64_t bytes = 0;
  core::Time start_ps = 0;
};

/// Returns the flows in file order for a machine of `gpus` GPUs; `name` is the file name in messages. Throws InputError
/// with file and line for another header, a malformed row, a GPU that does not exist, and a flow to itself.
std::vector<Flow> parse_flows(std::string_view text, const std::string& name, std::uint32_t gpus);

/// Reads and parses the file at `path`.
std::vector<Flow> read_flows(const std::string& path, std::uint32_t gpus);

}  // namespace manyworlds::experiments::import
