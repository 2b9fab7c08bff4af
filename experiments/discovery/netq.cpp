#include "experiments/discovery/netq.hpp"

#include <map>
#include <set>

#include "core/base/error.hpp"
#include "experiments/text/json.hpp"

namespace manyworlds::experiments::clusters {
namespace {

using core::InputError;
using import::JsonView;

struct Device {
  std::string name;
  bool is_switch = false;
  std::uint32_t number = 0;  // among switches or hosts
};

class GraphReader {
 public:
  Fabric read(const JsonView& document) {
    document.for_each(
        [&](const JsonView& graph) { graph.at("nodes").for_each([&](const JsonView& one) { add_devices(one); }); });
    document.for_each(
        [&](const JsonView& graph) { graph.at("links").for_each([&](const JsonView& one) { add_links(one); }); });
    fabric_.format = "netq";
    if (alone_ > 0) fabric_.notes.push_back(fmt::format("{} cables go from host to host; they are left out", alone_));
    std::erase_if(fabric_.hosts, [](const Host& host) { return host.nics.empty(); });
    if (fabric_.hosts.empty()) throw InputError("has no host with a cable to a switch");
    put_in_order(fabric_);
    return std::move(fabric_);
  }

 private:
  /// Adds a device, or those of a tier.
  void add_devices(const JsonView& node) {
    if (const auto inside = node.find("compounded_nodes"))
      return inside->for_each([&](const JsonView& one) { add_devices(one); });
    const std::string& id = node.at("id").text();
    Device device{node.at("name").text(), node.at("device_type").text() == "switch", 0};
    if (device.is_switch) {
      if (fabric_.switches.size() == kMaxSwitches) throw InputError("lists more switches than any cluster has");
      device.number = static_cast<std::uint32_t>(fabric_.switches.size());
      fabric_.switches.push_back({device.name});
    } else {
      if (fabric_.hosts.size() == kMaxHosts) throw InputError("lists more hosts than any cluster has");
      device.number = static_cast<std::uint32_t>(fabric_.hosts.size());
      fabric_.hosts.push_back({device.name, {}});
    }
    if (!names_.insert(device.name).second) throw InputError(fmt::format("lists two devices called '{}'", device.name));
    if (!devices_.emplace(id, std::move(device)).second) throw InputError(fmt::format("lists device '{}' twice", id));
  }

  void add_links(const JsonView& link) {
    if (const auto inside = link.find("compounded_links"))
      return inside->for_each([&](const JsonView& one) { add_links(one); });
    std::vector<std::pair<const Device*, std::string>> ends;
    link.at("interfaces").for_each([&](const JsonView& end) {
      const std::string& id = end.at("node").text();
      const auto device = devices_.find(id);
      if (device == devices_.end())
        throw InputError(fmt::format("has a cable to '{}', which is not among its nodes", id));
      const auto interface = end.find("interface");
      ends.emplace_back(&device->second, interface ? interface->text() : std::string());
    });
    if (ends.size() != 2) throw InputError(fmt::format("has a link of {} interfaces; a cable has two", ends.size()));
    if (++cables_ > kMaxLinks) throw InputError("lists more cables than any cluster has");
    if (!ends[0].first->is_switch) std::swap(ends[0], ends[1]);
    const auto& [upper, port] = ends[0];
    const auto& [lower, nic] = ends[1];
    if (!upper->is_switch)
      ++alone_;
    else if (lower->is_switch)
      fabric_.cables.push_back({lower->number, upper->number, 0});
    else
      fabric_.hosts[lower->number].nics.push_back({nic, upper->number, 0, 0});
  }

  Fabric fabric_;
  std::map<std::string, Device> devices_;
  std::set<std::string> names_;
  std::size_t cables_ = 0;
  std::int64_t alone_ = 0;
};

}  // namespace

bool is_netq_topology(std::string_view text) {
  return text.find("\"compounded_links\"") != text.npos || text.find("\"compounded_nodes\"") != text.npos;
}

Fabric parse_netq_topology(std::string_view text, const std::string& name) {
  const nlohmann::json document = import::parse_json(text, name);
  try {
    return GraphReader().read(JsonView(document));
  } catch (const InputError& error) {
    throw InputError(error.what(), name, 1);
  }
}

}  // namespace manyworlds::experiments::clusters
