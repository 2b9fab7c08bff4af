// What the environment says of the capture: the claimed world, the claimed device, and where the record goes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "experiments/capture/runtime_types.hpp"

namespace manyworlds::experiments::capture {

/// A device as its vendor's architecture guide publishes it: what a program can ask before it decides on its launches.
struct ClaimedDevice {
  const char* catalog_name;
  const char* product_name;
  int major, minor, multiprocessors;
  std::int64_t memory_bytes, l2_bytes, shared_per_multiprocessor_bytes, shared_per_block_optin_bytes;
  int memory_bus_bits, clock_khz;
};

struct Settings {
  int rank = 0, world = 1, devices = 1;
  const ClaimedDevice* device = nullptr;
  std::int64_t memory_bytes = 0;  // of each device, that the program may allocate
  std::string folder;
  /// Ranks of the communicators that the rank makes by a split, in their order there, by the communicator's number in
  /// this process.
  std::map<int, std::vector<int>> groups;
};

/// Reads MANYWORLDS_CAPTURE (folder of the record), MANYWORLDS_CAPTURE_GPU, MANYWORLDS_CAPTURE_MEMORY (as "24G"; else
/// all of the device's), MANYWORLDS_CAPTURE_DEVICES (on this host; 1), MANYWORLDS_CAPTURE_GROUPS (as "1:0,1;2:0,2"),
/// MANYWORLDS_RANK (0) and MANYWORLDS_WORLD (1).
/// Throws std::invalid_argument with what is wrong and what would be right.
Settings read_settings();

/// The properties of the claimed device, as CUDA 12 (DeviceProperties12) or 13 (DeviceProperties13) lays them out.
template <class Properties>
Properties device_properties(const Settings& settings);

/// The value of an attribute of cudaDeviceGetAttribute, by its number; false if the capture does not know it.
bool device_attribute(const Settings& settings, int attribute, int& value);

}  // namespace manyworlds::experiments::capture
