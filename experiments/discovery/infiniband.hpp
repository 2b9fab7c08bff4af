// An InfiniBand subnet as its tools list it, by adapters and ports, and the fabric of hosts that it is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "experiments/clusters/fabric.hpp"

namespace manyworlds::experiments::clusters {

/// One end of a cable: a node of the subnet, by a key that the tool gives it, and the number of its port.
struct SubnetPort {
  std::string node;
  std::int64_t port = 0;
  auto operator<=>(const SubnetPort&) const = default;
};

struct SubnetNode {
  bool is_switch = false;
  std::string description;  // "MF0;leaf-1:MQM9701/U1", "node01 mlx5_0"
  std::int64_t ports = 0, down_ports = 0;
};

struct SubnetCable {
  double gbps = 0;
  int line = 0;
  bool seen_from_both = false;
};

struct Subnet {
  std::map<std::string, SubnetNode> nodes;
  std::map<std::pair<SubnetPort, SubnetPort>, SubnetCable> cables;  // the smaller end first
  std::vector<std::string> notes;

  /// Adds what `from` says of its cable. Throws InputError at the line if it says another end than before.
  void add(const SubnetPort& from, const SubnetPort& to, double gbps, const std::string& file, int line);

 private:
  std::map<SubnetPort, SubnetPort> other_end_;
};

/// Returns the data rate of a link in Gb/s, such as of 4 lanes of "NDR"; nothing for an unknown speed.
std::optional<double> link_gbps(std::int64_t lanes, std::string_view speed);

/// Returns the hosts, switches and cables of a subnet. Adapters are called by their host and device; of adapters
/// without a name, those with one port number on the leaves of a group belong to one host, where named ones do too.
Fabric fabric_of(const Subnet& subnet, const std::string& format);

}  // namespace manyworlds::experiments::clusters
