// A fabric as the tools of a cluster describe it: hosts with their NICs, switches, and cables with their rates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace manyworlds::experiments::clusters {

/// One port of a network adapter, plugged into a switch.
struct Nic {
  std::string name;               // "mlx5_0", "HCA-1", "ens1f0"; empty if the file has none
  std::uint32_t attached_to = 0;  // a switch
  std::int64_t switch_port = 0;   // 0: not known
  double gbps = 0;                // 0: the file has no rates
};

struct Host {
  std::string name;
  std::vector<Nic> nics;  // by name, as people count: mlx5_2 before mlx5_10
};

struct Switch {
  std::string name;
  std::int64_t ports = 0;       // 0: not known
  std::int64_t down_ports = 0;  // ports that the file lists without a cable
};

/// A cable between two switches.
struct Cable {
  std::uint32_t a = 0, b = 0;
  double gbps = 0;  // 0: the file has no rates
};

struct Fabric {
  std::string format;            // "ibnetdiscover", …
  std::vector<Host> hosts;       // by the leaf of the first NIC, then by name
  std::vector<Switch> switches;  // by name
  std::vector<Cable> cables;
  bool counts_cables = true;         // false: the file has one cable for any number of them
  std::int64_t nics_per_host = 0;    // of complete hosts, which alone can be computed on; the usual number
  std::int64_t unnamed_nics = 0;     // NICs that no rule gives to a host
  std::int64_t switch_internal = 0;  // adapters inside switches, which reduce (SHARP)
  std::vector<std::string> notes;    // what was assumed, is missing or contradicts itself; one sentence each
  /// Returns the rate of most NICs of complete hosts; 0 if the file has no rates.
  double usual_nic_gbps() const;
};

/// Compares names as people count: "c9" before "c10".
bool natural_less(const std::string& a, const std::string& b);

/// Orders switches, NICs and hosts as Fabric says, numbers anew what refers to them, and counts the NICs of a host.
void put_in_order(Fabric& fabric);

/// Gives NICs and cables without a rate this one. In a fabric that does not count cables, hosts get so many NICs each,
/// and switches as many cables up as NICs below over `oversubscription`; both are noted. Returns how many had no rate.
std::int64_t assume_rates(Fabric& fabric, double gbps, std::int64_t nics_per_host, double oversubscription);

/// Returns the most frequent value, the largest of those that are equally frequent; 0 for none.
std::int64_t usual_value(const std::vector<std::int64_t>& values);

/// Returns whether a host has as many NICs as hosts of the cluster have.
bool is_complete(const Fabric& fabric, const Host& host);

/// Limits of what is read: beyond any existing cluster.
inline constexpr std::size_t kMaxHosts = 131'072, kMaxSwitches = 65'536, kMaxLinks = 4'194'304;

}  // namespace manyworlds::experiments::clusters
