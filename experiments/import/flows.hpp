// Flows of a network-only simulation as people write them: a CSV table with the header src,dst,bytes,start_ps.
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

/// Flows in the order of their lines; `gpus` is how many there are. `name` stands for the file in messages. Throws
/// InputError with file and line: another header, a row of another form, a GPU that is not there, a flow to itself.
std::vector<Flow> parse_flows(std::string_view text, const std::string& name, std::uint32_t gpus);

/// The same from a file.
std::vector<Flow> read_flows(const std::string& path, std::uint32_t gpus);

}  // namespace manyworlds::experiments::import
