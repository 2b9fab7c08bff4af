#include "experiments/clusters/fabric_file.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/base/options.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::clusters {
namespace {

using import::Entry;
using import::Node;

constexpr std::int64_t kMaxParallel = 4'096, kMaxNics = 4'096;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

std::int64_t integer_of(const Node& node, const std::string& key, std::int64_t low, std::int64_t high) {
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::integer;
  info.minimum = static_cast<double>(low), info.maximum = static_cast<double>(high);
  return std::get<std::int64_t>(import::read_value(node, info, key));
}

double gbps_of(const Node& node) {
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::real;
  info.minimum = 0.001, info.maximum = 1e6;
  info.unit = "Gb/s";
  return std::get<double>(import::read_value(node, info, "the rate of a cable"));
}

const Node& list_of(const Node& node, const char* what, std::size_t least) {
  if (node.kind != Node::Kind::sequence || node.items.size() < least)
    node.fail(fmt::format("{}, not {}", what, import::describe(node)));
  return node;
}

class SectionReader {
 public:
  Fabric read(const Node& section) {
    if (section.kind != Node::Kind::mapping) section.fail("'fabric' must be a mapping");
    for (const Entry& entry : section.entries) check_key(entry);
    if (const Node* format = section.find("format")) fabric_.format = import::read_line(*format, "format");
    for (const Node& item : need(section, "switches").items) add_switch(item);
    for (const Node& item : need(section, "cables").items) add_cables(item);
    for (const Node& item : need(section, "hosts").items) add_host(item);
    put_in_order_of_file();
    if (const Node* count = section.find("nics_per_host"))
      fabric_.nics_per_host = integer_of(*count, "nics_per_host", 1, kMaxNics);
    return std::move(fabric_);
  }

 private:
  static void check_key(const Entry& entry) {
    const std::vector<std::string> known{"format", "switches", "cables", "hosts", "nics_per_host"};
    if (std::find(known.begin(), known.end(), entry.key) == known.end())
      throw core::InputError(fmt::format("unknown key '{}'{}", entry.key, suggestion(entry.key, known)),
                             *entry.value.file, entry.line);
  }

  static const Node& need(const Node& section, const char* key) {
    const Node* found = section.find(key);
    if (!found) section.fail(fmt::format("'fabric' lacks '{}', a list", key));
    return list_of(*found, "must be a list", 0);
  }

  void add_switch(const Node& node) {
    if (fabric_.switches.size() == kMaxSwitches) node.fail("is one more switch than any cluster has");
    const std::string name = import::read_line(node, "the name of a switch");
    if (!number_.emplace(name, static_cast<std::uint32_t>(fabric_.switches.size())).second)
      node.fail(fmt::format("switch '{}' is listed twice", name));
    fabric_.switches.push_back({name});
  }

  std::uint32_t switch_named(const Node& node) const {
    const auto found = number_.find(import::read_line(node, "the name of a switch"));
    if (found == number_.end()) node.fail(fmt::format("'{}' is not among the switches", node.text));
    return found->second;
  }

  void add_cables(const Node& node) {
    list_of(node, "must be [switch, switch, number of cables, Gb/s of each]", 4);
    const std::uint32_t a = switch_named(node.items[0]), b = switch_named(node.items[1]);
    const std::int64_t count = integer_of(node.items[2], "the number of cables", 1, kMaxParallel);
    if (a == b) node.fail(fmt::format("cables lead from '{}' to itself", node.items[0].text));
    if (fabric_.cables.size() + static_cast<std::size_t>(count) > kMaxLinks)
      node.fail("are more cables than any cluster has");
    fabric_.cables.insert(fabric_.cables.end(), static_cast<std::size_t>(count), Cable{a, b, gbps_of(node.items[3])});
  }

  void add_host(const Node& node) {
    list_of(node, "must be [host, [switch, Gb/s] of each NIC …]", 1);
    if (fabric_.hosts.size() == kMaxHosts) node.fail("is one more host than any cluster has");
    Host host;
    host.name = import::read_line(node.items[0], "the name of a host");
    if (!host_names_.insert(host.name).second) node.fail(fmt::format("host '{}' is listed twice", host.name));
    if (node.items.size() > kMaxNics) node.fail("has more NICs than any host");
    for (std::size_t i = 1; i < node.items.size(); ++i) {
      const Node& nic = list_of(node.items[i], "a NIC must be [switch, Gb/s]", 2);
      host.nics.push_back({"", switch_named(nic.items[0]), 0, gbps_of(nic.items[1])});
    }
    fabric_.hosts.push_back(std::move(host));
  }

  /// The order of the file is kept; only the number of NICs is counted.
  void put_in_order_of_file() {
    std::vector<std::int64_t> nics;
    for (const Host& host : fabric_.hosts) nics.push_back(static_cast<std::int64_t>(host.nics.size()));
    fabric_.nics_per_host = usual_value(nics);
  }

  Fabric fabric_;
  std::map<std::string, std::uint32_t> number_;
  std::set<std::string> host_names_;
};

}  // namespace

std::string fabric_yaml(const Fabric& fabric) {
  const auto name = [&](std::uint32_t number) { return quoted(fabric.switches[number].name); };
  std::string text =
      fmt::format("fabric:\n  format: {}\n  nics_per_host: {}\n  switches:\n", fabric.format, fabric.nics_per_host);
  for (const Switch& one : fabric.switches) text += fmt::format("    - {}\n", quoted(one.name));
  text += fabric.cables.empty() ? "  cables: []\n" : "  cables:  # both ends, how many, Gb/s of each\n";
  std::map<std::tuple<std::uint32_t, std::uint32_t, double>, std::int64_t> count;
  for (const Cable& cable : fabric.cables) ++count[{cable.a, cable.b, cable.gbps}];
  for (const auto& [cable, times] : count)
    text += fmt::format("    - [{}, {}, {}, {}]\n", name(std::get<0>(cable)), name(std::get<1>(cable)), times,
                        std::get<2>(cable));
  text += "  hosts:  # in the order in which they are used; of each NIC its switch and Gb/s\n";
  for (const Host& host : fabric.hosts) {
    text += fmt::format("    - [{}", quoted(host.name));
    for (const Nic& nic : host.nics) text += fmt::format(", [{}, {}]", name(nic.attached_to), nic.gbps);
    text += "]\n";
  }
  return text;
}

Fabric read_fabric(const Node& section) {
  return SectionReader().read(section);
}

bool has_fabric(std::string_view text) {
  return text.starts_with("fabric:") || text.find("\nfabric:") != text.npos;
}

Fabric parse_fabric_file(std::string_view text, const std::string& name) {
  const Node root = import::parse_yaml(text, name);
  const Node* section = root.find("fabric");
  if (section == nullptr) root.fail("has no section 'fabric'; `manyworlds cluster` writes one");
  return read_fabric(*section);
}

}  // namespace manyworlds::experiments::clusters
