#include "experiments/discovery/infiniband.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "core/base/error.hpp"
#include "core/sharing/union_find.hpp"
#include "experiments/discovery/lines.hpp"

namespace manyworlds::experiments::clusters {
namespace {

/// An adapter's port on a switch, with what its description tells.
struct Adapter {
  std::string host, device;  // empty host: not named
  Nic nic;
};

/// Returns whether a word names a device of a host: mlx5_0, HCA-1, ibp12s0, hfi1_0.
bool is_device(std::string_view word) {
  constexpr std::array<std::string_view, 9> kPrefixes{"mlx5_", "mlx4_", "HCA-", "hfi1_",  "qib",
                                                      "ibp",   "ibs",   "ib",   "bnxt_re"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view prefix) {
    return word.starts_with(prefix) && word.size() > prefix.size() && word.find_first_of("0123456789") != word.npos;
  });
}

/// Returns whether a description is that of a product, as adapters have it until a host gives them its name.
bool is_product(std::string_view description) {
  return description.empty() || description.find("Mellanox") != description.npos ||
         description.find("ConnectX") != description.npos || description.find("Technologies") != description.npos;
}

bool is_inside_switch(std::string_view description) {
  return description.find("Aggregation Node") != description.npos;
}

/// Returns host and device of "node01 mlx5_0"; the device may be missing, both are for a product's name.
std::pair<std::string, std::string> host_and_device(const std::string& description) {
  const auto words = words_of(description);
  if (words.size() >= 2 && is_device(words.back()) && !is_product(description))
    return {std::string(words.front()), std::string(words.back())};
  return {is_product(description) || words.empty() ? "" : std::string(words.front()), ""};
}

/// Returns what people call a switch: "leaf-1" of "MF0;leaf-1:MQM9701/U1".
std::string short_name(const std::string& description) {
  const std::size_t begin = description.find(';');
  if (begin == std::string::npos) return description;
  return description.substr(begin + 1, description.find(':', begin) - begin - 1);
}

/// Names each switch as short as it can be told from the others.
std::map<std::string, std::string> switch_names(const Subnet& subnet) {
  std::map<std::string, int> times;
  for (const auto& [key, node] : subnet.nodes)
    if (node.is_switch) ++times[short_name(node.description)], ++times[node.description];
  std::map<std::string, std::string> names;
  for (const auto& [key, node] : subnet.nodes) {
    if (!node.is_switch) continue;
    const std::string brief = short_name(node.description);
    const bool same = brief == node.description;
    if (!brief.empty() && times[brief] == (same ? 2 : 1))
      names[key] = brief;
    else
      names[key] = !same && times[node.description] == 1 ? node.description : brief + (brief.empty() ? "" : " ") + key;
  }
  return names;
}

/// Collects the adapters of a subnet, and adds its switches and their cables to the fabric.
std::vector<Adapter> add_switches(Fabric& fabric, const Subnet& subnet) {
  std::map<std::string, std::uint32_t> number;
  for (const auto& [key, name] : switch_names(subnet)) {
    const SubnetNode& node = subnet.nodes.at(key);
    number[key] = static_cast<std::uint32_t>(fabric.switches.size());
    fabric.switches.push_back({name, node.ports, node.down_ports});
  }
  std::vector<Adapter> adapters;
  std::int64_t between_hosts = 0;
  for (const auto& [ends, cable] : subnet.cables) {
    const SubnetNode &first = subnet.nodes.at(ends.first.node), &second = subnet.nodes.at(ends.second.node);
    if (first.is_switch && second.is_switch) {
      fabric.cables.push_back({number.at(ends.first.node), number.at(ends.second.node), cable.gbps});
      continue;
    }
    between_hosts += !first.is_switch && !second.is_switch;
    if (!first.is_switch && !second.is_switch) continue;
    const SubnetPort &inner = first.is_switch ? ends.first : ends.second,
                     &outer = first.is_switch ? ends.second : ends.first;
    const SubnetNode& adapter = first.is_switch ? second : first;
    fabric.switch_internal += is_inside_switch(adapter.description);
    if (is_inside_switch(adapter.description)) continue;
    auto [host, device] = host_and_device(adapter.description);
    if (!device.empty() && adapter.ports > 1) device += fmt::format("/{}", outer.port);
    adapters.push_back({host, device, {device, number.at(inner.node), inner.port, cable.gbps}});
  }
  if (between_hosts > 0)
    fabric.notes.push_back(
        fmt::format("{} cables go from adapter to adapter, without a switch; they are left out", between_hosts));
  return adapters;
}

/// Takes the name from adapters of hosts of which several have one name.
void drop_shared_names(std::vector<Adapter>& adapters, Fabric& fabric) {
  std::map<std::pair<std::string, std::string>, int> times;
  for (const Adapter& one : adapters) ++times[{one.host, one.device}];
  std::set<std::string> shared;
  for (const auto& [name, count] : times)
    if (!name.first.empty() && !name.second.empty() && count > 1) shared.insert(name.first);
  for (Adapter& one : adapters)
    if (shared.count(one.host) > 0) one.host.clear();
  for (const std::string& name : shared)
    fabric.notes.push_back(fmt::format("several hosts are called {}; their adapters count as unnamed", name));
}

/// A port number on the leaves of a group.
using Slot = std::pair<std::uint32_t, std::int64_t>;

/// The rule of slots: hosts are plugged into one port number of all leaves of their group.
class Slots {
 public:
  Slots(const std::map<std::string, Host>& hosts, std::size_t switches) : groups_(switches) {
    for (const auto& [name, host] : hosts) {
      if (host.nics.size() < 2) continue;
      ++with_several_;
      const auto same = [&, &host = host](const Nic& nic) { return nic.switch_port == host.nics.front().switch_port; };
      if (!std::all_of(host.nics.begin(), host.nics.end(), same)) continue;
      ++in_one_slot_;
      for (const Nic& nic : host.nics) groups_.join(nic.attached_to, host.nics.front().attached_to);
    }
  }
  bool hold() const { return with_several_ > 0 && in_one_slot_ * 10 >= with_several_ * 9; }
  std::string share() const { return fmt::format("{} of {}", in_one_slot_, with_several_); }
  Slot of(const Nic& nic) { return {static_cast<std::uint32_t>(groups_.root(nic.attached_to)), nic.switch_port}; }

 private:
  core::sharing::UnionFind groups_;
  std::int64_t with_several_ = 0, in_one_slot_ = 0;
};

/// Returns the device name that most NICs on each switch have.
std::map<std::uint32_t, std::string> usual_devices(const std::map<std::string, Host>& hosts) {
  std::map<std::uint32_t, std::map<std::string, int>> times;
  for (const auto& [name, host] : hosts)
    for (const Nic& nic : host.nics) ++times[nic.attached_to][nic.name];
  std::map<std::uint32_t, std::string> usual;
  for (const auto& [leaf, names] : times)
    usual[leaf] = std::max_element(names.begin(), names.end(), [](const auto& a, const auto& b) {
                    return a.second < b.second;
                  })->first;
  return usual;
}

bool has_nic_on(const Host& host, std::uint32_t leaf) {
  return std::any_of(host.nics.begin(), host.nics.end(), [&](const Nic& nic) { return nic.attached_to == leaf; });
}

/// Gives unnamed adapters to hosts by the rule of slots, and one whose slot is taken on its leaf to the only host of
/// the group that lacks an adapter there: two hosts' cables are crossed.
class UnnamedAdapters {
 public:
  UnnamedAdapters(std::map<std::string, Host>& hosts, Slots& slots, Fabric& fabric)
      : hosts_(hosts), slots_(slots), fabric_(fabric), devices_(usual_devices(hosts)) {
    for (const auto& [name, host] : hosts) {
      std::vector<std::int64_t> ports;
      for (const Nic& nic : host.nics) ports.push_back(nic.switch_port);
      owner_.emplace(Slot{slots.of(host.nics.front()).first, usual_value(ports)}, name);
      if (usual_value(ports) != ports.front() ||
          std::count(ports.begin(), ports.end(), ports.front()) < std::ssize(ports))
        fabric.notes.push_back(
            fmt::format("{} is on several port numbers of its leaves: {}", name, fmt::join(ports, ", ")));
    }
  }

  void place(const std::vector<Nic>& unnamed) {
    std::vector<Nic> left;
    for (const Nic& nic : unnamed) {
      const std::string fresh =
          fmt::format("unnamed-{}-port{}", fabric_.switches[nic.attached_to].name, nic.switch_port);
      const std::string& name = owner_.emplace(slots_.of(nic), fresh).first->second;
      if (has_nic_on(hosts_[name], nic.attached_to))
        left.push_back(nic);
      else
        add(name, nic);
    }
    for (const Nic& nic : left) {
      const std::string name = only_host_without(nic);
      if (name.empty())
        ++fabric_.unnamed_nics;
      else
        add(name, nic);
    }
  }
  std::size_t new_hosts() const { return new_hosts_.size(); }
  std::int64_t joined() const { return joined_; }

 private:
  void add(const std::string& name, const Nic& nic) {
    Host& host = hosts_[name];
    if (host.name.empty()) new_hosts_.insert(name);
    joined_ += new_hosts_.count(name) == 0;
    host.name = name;
    host.nics.push_back(nic);
    if (const auto device = devices_.find(nic.attached_to); device != devices_.end())
      host.nics.back().name = device->second;
  }

  /// Returns the only host in the adapter's group that has a slot there and no NIC on its leaf; empty if it is not one.
  std::string only_host_without(const Nic& nic) {
    std::string found;
    for (const auto& [slot, name] : owner_) {
      if (slot.first != slots_.of(nic).first || has_nic_on(hosts_.at(name), nic.attached_to)) continue;
      if (!found.empty()) return "";
      found = name;
    }
    return found;
  }

  std::map<std::string, Host>& hosts_;
  Slots& slots_;
  Fabric& fabric_;
  std::map<std::uint32_t, std::string> devices_;
  std::map<Slot, std::string> owner_;
  std::set<std::string> new_hosts_;
  std::int64_t joined_ = 0;
};

/// Gives unnamed adapters to the hosts of their slots, if the rule of slots holds.
void place_unnamed(std::map<std::string, Host>& hosts, const std::vector<Nic>& unnamed, Fabric& fabric) {
  if (unnamed.empty()) return;
  Slots slots(hosts, fabric.switches.size());
  if (!slots.hold()) {
    fabric.unnamed_nics = static_cast<std::int64_t>(unnamed.size());
    fabric.notes.push_back(
        fmt::format("{} adapters have no host's name, and no rule tells it: they are left out", unnamed.size()));
    return;
  }
  fabric.notes.push_back("");  // what was done goes before what is odd
  const std::size_t at = fabric.notes.size() - 1;
  UnnamedAdapters adapters(hosts, slots, fabric);
  adapters.place(unnamed);
  fabric.notes[at] = fmt::format(
      "{} adapters have no host's name; {} named hosts are on one port number of all their leaves, so by port number "
      "they "
      "are {} more hosts{}",
      unnamed.size(), slots.share(), adapters.new_hosts(),
      adapters.joined() > 0 ? fmt::format(" and {} adapters of named ones", adapters.joined()) : "");
}

void add_hosts(Fabric& fabric, std::vector<Adapter> adapters) {
  drop_shared_names(adapters, fabric);
  std::map<std::string, Host> hosts;
  std::vector<Nic> unnamed;
  for (Adapter& one : adapters) {
    if (one.host.empty()) {
      unnamed.push_back(std::move(one.nic));
      continue;
    }
    hosts[one.host].name = one.host;
    hosts[one.host].nics.push_back(std::move(one.nic));
  }
  place_unnamed(hosts, unnamed, fabric);
  for (auto& [name, host] : hosts) fabric.hosts.push_back(std::move(host));
}

}  // namespace

void Subnet::add(const SubnetPort& from, const SubnetPort& to, double gbps, const std::string& file, int line) {
  for (const auto& [end, other] : {std::pair(from, to), std::pair(to, from)}) {
    const auto [known, is_new] = other_end_.emplace(end, other);
    if (!is_new && known->second != other)
      throw core::InputError(
          fmt::format("port {} of {} has a cable to port {} of {} here and to port {} of {} before", end.port, end.node,
                      other.port, other.node, known->second.port, known->second.node),
          file, line);
  }
  const auto [cable, is_new] = cables.emplace(std::minmax(from, to), SubnetCable{gbps, line, false});
  if (is_new) {
    if (cables.size() > kMaxLinks) throw core::InputError("lists more cables than any cluster has", file, line);
    return;
  }
  cable->second.seen_from_both = true;
  if (gbps != cable->second.gbps)
    notes.push_back(fmt::format("line {} says {} Gb/s of a cable of which line {} says {}; the slower is taken", line,
                                gbps, cable->second.line, cable->second.gbps));
  cable->second.gbps = std::min(cable->second.gbps, gbps);
}

std::optional<double> link_gbps(std::int64_t lanes, std::string_view speed) {
  // Data rates of a lane: SDR to QDR lose a fifth to 8b/10b, FDR a 33rd to 64b/66b; later ones are named by it.
  constexpr std::pair<std::string_view, double> kLanes[] = {{"SDR", 2},    {"DDR", 4},        {"QDR", 8},
                                                            {"FDR10", 10}, {"FDR", 13.63636}, {"EDR", 25},
                                                            {"HDR", 50},   {"NDR", 100},      {"XDR", 200}};
  for (const auto& [name, gbps] : kLanes)
    if (name == speed && lanes >= 1 && lanes <= 12) return static_cast<double>(lanes) * gbps;
  return std::nullopt;
}

Fabric fabric_of(const Subnet& subnet, const std::string& format) {
  Fabric fabric;
  fabric.format = format;
  fabric.notes = subnet.notes;
  add_hosts(fabric, add_switches(fabric, subnet));
  const auto one_sided = std::count_if(subnet.cables.begin(), subnet.cables.end(),
                                       [](const auto& one) { return !one.second.seen_from_both; });
  if (one_sided > 0)
    fabric.notes.push_back(
        fmt::format("{} of {} cables are listed at one of their ends only", one_sided, subnet.cables.size()));
  put_in_order(fabric);
  return fabric;
}

}  // namespace manyworlds::experiments::clusters
