// The topology graph of NVIDIA NetQ: devices in tiers, and cables as LLDP found them. It has no rates.
#pragma once

#include <string>
#include <string_view>

#include "experiments/clusters/fabric.hpp"

namespace manyworlds::experiments::clusters {

bool is_netq_topology(std::string_view text);

/// Returns the fabric; `name` is the file name in messages. Throws InputError for a document of another form, and for a
/// cable to a device that is not listed.
Fabric parse_netq_topology(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::clusters
