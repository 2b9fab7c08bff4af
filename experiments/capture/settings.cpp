#include "experiments/capture/settings.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace manyworlds::experiments::capture {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;

// Names and memory (what the driver leaves) as in experiments/catalog/gpus; NVIDIA A100 and H100 Tensor Core GPU
// Architecture white papers; shared memory and blocks from the CUDA C++ Programming Guide, table "Technical
// Specifications per Compute Capability" (8.0: 164 KB per SM, 163 KB per block; 9.0: 228 and 227).
// Clocks of multiprocessors are those of the catalog (clock_ghz).
constexpr ClaimedDevice kDevices[] = {
    {"a100_40", "NVIDIA A100-SXM4-40GB", 8, 0, 108, 40346 * kMiB, 40 * kMiB, 164 * kKiB, 163 * kKiB, 5120, 1410000},
    {"a100_80", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 81050 * kMiB, 40 * kMiB, 164 * kKiB, 163 * kKiB, 5120, 1410000},
    {"h100_sxm", "NVIDIA H100 80GB HBM3", 9, 0, 132, 81008 * kMiB, 50 * kMiB, 228 * kKiB, 227 * kKiB, 5120, 1830000},
    {"h200_sxm", "NVIDIA H200", 9, 0, 132, 143155 * kMiB, 50 * kMiB, 228 * kKiB, 227 * kKiB, 6144, 1830000},
};

constexpr int kWarp = 32, kThreadsPerBlock = 1024, kThreadsPerMultiprocessor = 2048, kBlocksPerMultiprocessor = 32,
              kRegisters = 65536, kSharedPerBlock = 48 * kKiB,
              kReservedShared = 1 * kKiB;  // the same guide, for 8.0 and 9.0

std::int64_t whole_number(const char* variable, std::int64_t otherwise, std::int64_t least) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  std::int64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, failure] = std::from_chars(text, end, value);
  if (failure != std::errc() || stop != end || value < least)
    throw std::invalid_argument(std::string(variable) + ": '" + text + "' is not a whole number of at least " +
                                std::to_string(least));
  return value;
}

std::int64_t memory_size(const char* text) {
  std::int64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, failure] = std::from_chars(text, end, value);
  const std::string unit(stop, end);
  const std::int64_t scale = unit.empty() ? 1 : unit == "M" ? kMiB : unit == "G" ? kGiB : 0;
  if (failure != std::errc() || value <= 0 || scale == 0 || value > (std::int64_t{1} << 45) / scale)
    throw std::invalid_argument(std::string("MANYWORLDS_CAPTURE_MEMORY: '") + text +
                                "' is not a number of bytes, or one of MiB or GiB with M or G, such as 80G");
  return value * scale;
}

/// Groups as "1:0,1;2:0,2": of each communicator the ranks, all of them below `world`, and this one among them.
std::map<int, std::vector<int>> groups_of(const char* text, int rank, int world) {
  std::map<int, std::vector<int>> groups;
  const char* at = text;
  const char* end = text + std::strlen(text);
  const auto fail = [&] {
    throw std::invalid_argument(std::string("MANYWORLDS_CAPTURE_GROUPS: '") + text + "' is not the groups of rank " +
                                std::to_string(rank) + ", such as 1:0,1;2:0,2");
  };
  const auto number = [&](char behind) {
    int value = 0;
    const auto [stop, failure] = std::from_chars(at, end, value);
    if (failure != std::errc() || value < 0) fail();
    at = stop;
    if (behind != '\0' && (at == end || *at++ != behind)) fail();
    return value;
  };
  while (at != end) {
    std::vector<int>& ranks = groups[number(':')];
    bool has_rank = false;
    do {
      ranks.push_back(number('\0'));
      has_rank = has_rank || ranks.back() == rank;
      if (ranks.back() >= world) fail();
    } while (at != end && *at == ',' && ++at != end);
    if (!has_rank || (at != end && *at++ != ';')) fail();
  }
  return groups;
}

const ClaimedDevice* claimed_device(const char* name) {
  std::string known;
  for (const ClaimedDevice& device : kDevices) {
    if (name != nullptr && std::strcmp(name, device.catalog_name) == 0) return &device;
    known += (known.empty() ? "" : ", ") + std::string(device.catalog_name);
  }
  throw std::invalid_argument(
      "MANYWORLDS_CAPTURE_GPU: " + (name ? "'" + std::string(name) + "' is not known" : "not set") +
      "; the devices known here are " + known);
}

}  // namespace

Settings read_settings() {
  Settings settings;
  const char* folder = std::getenv("MANYWORLDS_CAPTURE");
  if (folder == nullptr || *folder == '\0')
    throw std::invalid_argument("MANYWORLDS_CAPTURE: not set; it names the folder that the record is written to");
  settings.folder = folder;
  settings.device = claimed_device(std::getenv("MANYWORLDS_CAPTURE_GPU"));
  const char* memory = std::getenv("MANYWORLDS_CAPTURE_MEMORY");
  settings.memory_bytes = memory ? memory_size(memory) : settings.device->memory_bytes;
  settings.devices = static_cast<int>(whole_number("MANYWORLDS_CAPTURE_DEVICES", 1, 1));
  settings.world = static_cast<int>(whole_number("MANYWORLDS_WORLD", 1, 1));
  settings.rank = static_cast<int>(whole_number("MANYWORLDS_RANK", 0, 0));
  if (settings.rank >= settings.world)
    throw std::invalid_argument("MANYWORLDS_RANK: " + std::to_string(settings.rank) +
                                " is not below MANYWORLDS_WORLD, " + std::to_string(settings.world));
  if (const char* groups = std::getenv("MANYWORLDS_CAPTURE_GROUPS"))
    settings.groups = groups_of(groups, settings.rank, settings.world);
  return settings;
}

template <class Properties>
Properties device_properties(const Settings& settings) {
  const ClaimedDevice& device = *settings.device;
  Properties properties{};
  std::strncpy(properties.name, device.product_name, sizeof properties.name - 1);
  properties.total_memory_bytes = static_cast<std::size_t>(settings.memory_bytes);
  properties.shared_per_block_bytes = kSharedPerBlock;
  properties.registers_per_block = properties.registers_per_multiprocessor = kRegisters;
  properties.warp_size = kWarp;
  properties.pitch_bytes = 2147483647;
  properties.max_threads_per_block = kThreadsPerBlock;
  properties.max_block[0] = properties.max_block[1] = 1024, properties.max_block[2] = 64;
  properties.max_grid[0] = 2147483647, properties.max_grid[1] = properties.max_grid[2] = 65535;
  properties.constant_bytes = 64 * kKiB;
  properties.major = device.major, properties.minor = device.minor;
  properties.multiprocessors = device.multiprocessors;
  properties.concurrent_kernels = properties.ecc_enabled = properties.unified_addressing = 1;
  properties.async_engines = 3;
  properties.can_map_host_memory = properties.stream_priorities = 1;
  properties.globals_in_l1 = properties.locals_in_l1 = 1;
  properties.concurrent_managed_access = properties.preemption = properties.host_pointers = 1;
  properties.managed_memory = properties.cooperative_launch = 1;
  properties.memory_bus_bits = device.memory_bus_bits;
  properties.l2_bytes = static_cast<int>(device.l2_bytes);
  properties.max_threads_per_multiprocessor = kThreadsPerMultiprocessor;
  properties.shared_per_multiprocessor_bytes = static_cast<std::size_t>(device.shared_per_multiprocessor_bytes);
  properties.shared_per_block_optin_bytes = static_cast<std::size_t>(device.shared_per_block_optin_bytes);
  properties.max_blocks_per_multiprocessor = kBlocksPerMultiprocessor;
  properties.reserved_shared_per_block_bytes = kReservedShared;
  if constexpr (requires { properties.device_overlap; }) properties.device_overlap = 1;  // CUDA 13 dropped it
  if constexpr (requires { properties.clock_khz; }) properties.clock_khz = device.clock_khz;
  return properties;
}
template DeviceProperties12 device_properties(const Settings&);
template DeviceProperties13 device_properties(const Settings&);

bool device_attribute(const Settings& settings, int attribute, int& value) {
  const auto of = device_properties<DeviceProperties13>(settings);
  const struct {
    int number, value;
  } known[] = {{1, of.max_threads_per_block},
               {2, of.max_block[0]},
               {3, of.max_block[1]},
               {4, of.max_block[2]},
               {5, of.max_grid[0]},
               {6, of.max_grid[1]},
               {7, of.max_grid[2]},
               {8, static_cast<int>(of.shared_per_block_bytes)},
               {9, static_cast<int>(of.constant_bytes)},
               {10, of.warp_size},
               {11, static_cast<int>(of.pitch_bytes)},
               {12, of.registers_per_block},
               {13, settings.device->clock_khz},
               {15, 1},  // copies and kernels at once
               {16, of.multiprocessors},
               {17, 0},                       // no limit to the time of kernels
               {18, 0},                       // not integrated with the host
               {19, of.can_map_host_memory},  // maps memory of the host
               {20, 0},                       // the default compute mode
               {31, of.concurrent_kernels},
               {32, of.ecc_enabled},
               {35, 0},  // not Windows' driver for computing
               {37, of.memory_bus_bits},
               {38, of.l2_bytes},
               {39, of.max_threads_per_multiprocessor},
               {40, of.async_engines},
               {41, of.unified_addressing},
               {75, of.major},
               {76, of.minor},
               {78, of.stream_priorities},  // priorities of streams
               {79, of.globals_in_l1},      // globals in L1
               {80, of.locals_in_l1},       // and locals
               {81, static_cast<int>(of.shared_per_multiprocessor_bytes)},
               {82, of.registers_per_multiprocessor},
               {83, of.managed_memory},
               {84, 0},                             // not on a board with others
               {86, 0},                             // no atomics over PCI Express
               {88, 0},                             // pageable memory of the host is out of reach
               {89, of.concurrent_managed_access},  // host and device use managed memory at once
               {90, of.preemption},                 // preemption
               {91, of.host_pointers},              // memory of the host has one address
               {95, of.cooperative_launch},
               {97, static_cast<int>(of.shared_per_block_optin_bytes)},
               {99, 1},   // cudaHostRegister
               {100, 0},  // page tables of its own
               {101, 0},  // the host does not reach managed memory on the device
               {106, of.max_blocks_per_multiprocessor},
               {111, static_cast<int>(of.reserved_shared_per_block_bytes)},
               {115, 1},                       // pools of memory
               {120, of.major >= 9 ? 1 : 0}};  // clusters of blocks
  for (const auto& each : known)
    if (each.number == attribute) return value = each.value, true;
  return false;
}

}  // namespace manyworlds::experiments::capture
