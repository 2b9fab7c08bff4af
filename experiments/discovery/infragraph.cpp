#include "experiments/discovery/infragraph.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "experiments/discovery/lines.hpp"
#include "experiments/tree/scalar.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::clusters {
namespace {

using core::InputError;
using import::Node;

constexpr std::int64_t kMaxIndex = 1'000'000;

struct Device {
  std::set<std::string> gpu_components;
  std::set<std::string> gpus;  // "xpu.3", of its connections
};

/// One end of a connection between instances: "server.0.nic.1".
struct End {
  std::string instance;
  std::int64_t index = 0;
  std::string port;  // "nic.1"
};

const std::string& text_at(const Node& node, const char* key) {
  const Node* found = node.find(key);
  if (found == nullptr || found->kind != Node::Kind::scalar) node.fail(fmt::format("lacks '{}', a name", key));
  return found->text;
}

/// Calls `visit` with each item of a list below `node`, which may be absent.
template <class Visit>
void for_each_in(const Node& node, const char* key, Visit visit) {
  const Node* list = node.find(key);
  if (list == nullptr || list->kind == Node::Kind::null) return;
  if (list->kind != Node::Kind::sequence) list->fail(fmt::format("'{}' must be a list", key));
  for (const Node& item : list->items) visit(item);
}

std::vector<std::string> parts_of(const Node& connection) {
  if (connection.kind != Node::Kind::scalar)
    connection.fail("a connection must be text, such as server.0.nic.0.eth.leaf.0.port.0");
  std::vector<std::string> parts{""};
  for (const char c : connection.text) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

class InfraReader {
 public:
  void add_definitions(const Node& infrastructure) {
    for_each_in(infrastructure, "devices", [&](const Node& device) { add_device(device); });
    for_each_in(infrastructure, "links", [&](const Node& link) { gbps_[text_at(link, "name")] = bandwidth_of(link); });
    for_each_in(infrastructure, "instances", [&](const Node& instance) {
      if (!device_of_.emplace(text_at(instance, "name"), text_at(instance, "device")).second)
        instance.fail(fmt::format("instance '{}' is listed twice", text_at(instance, "name")));
    });
  }
  void add_connections(const Node& infrastructure) {
    for_each_in(infrastructure, "connections", [&](const Node& connection) { add_connection(connection); });
  }
  bool has_instances() const { return !device_of_.empty(); }
  InfraGraph take();

 private:
  void add_device(const Node& node);
  void add_connection(const Node& connection);
  static double bandwidth_of(const Node& link);
  End end_of(const std::vector<std::string>& parts, std::size_t at, const Node& place) const;
  const Device& device_of(const End& end, const Node& place) const;
  std::uint32_t switch_of(const End& end);

  std::map<std::string, Device> devices_;
  std::map<std::string, std::string> device_of_;  // by instance
  std::map<std::string, double> gbps_;            // by link
  std::map<std::string, std::uint32_t> switches_;
  std::map<std::string, Host> hosts_;
  std::set<std::string> used_ports_;
  std::int64_t gpus_per_host_ = 0;
  Fabric fabric_;
};

void InfraReader::add_device(const Node& node) {
  const std::string& name = text_at(node, "name");
  Device device;
  for_each_in(node, "components", [&](const Node& component) {
    const Node* type = component.find("type");
    if (type != nullptr && type->text == "xpu") device.gpu_components.insert(text_at(component, "name"));
  });
  for_each_in(node, "connections", [&](const Node& connection) {
    const auto parts = parts_of(connection);
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (device.gpu_components.count(parts[i]) > 0) device.gpus.insert(parts[i] + "." + parts[i + 1]);
  });
  if (!devices_.emplace(name, std::move(device)).second) node.fail(fmt::format("device '{}' is described twice", name));
}

/// Returns the rate of a link in Gb/s; 0 if it has none.
double InfraReader::bandwidth_of(const Node& link) {
  const Node* bandwidth = link.find("bandwidth");
  if (bandwidth == nullptr) return 0;
  for (const auto& [key, factor] : {std::pair("gigabits_per_second", 1.0), std::pair("gigabytes_per_second", 8.0)}) {
    const Node* value = bandwidth->find(key);
    if (value == nullptr) continue;
    core::OptionInfo info;
    info.kind = core::OptionInfo::Kind::real;
    info.minimum = 0.001, info.maximum = 1e6;
    return factor * std::get<double>(import::read_value(*value, info, key));
  }
  bandwidth->fail("must give gigabits_per_second or gigabytes_per_second");
}

End InfraReader::end_of(const std::vector<std::string>& parts, std::size_t at, const Node& place) const {
  const std::int64_t index = number_in<std::int64_t>(parts[at + 1]).value_or(-1);
  if (index < 0 || index > kMaxIndex) place.fail(fmt::format("'{}' must be the number of an instance", parts[at + 1]));
  if (device_of_.count(parts[at]) == 0)
    place.fail(fmt::format("names instance '{}', which is not among 'instances'", parts[at]));
  return {parts[at], index, parts[at + 2] + "." + parts[at + 3]};
}

const Device& InfraReader::device_of(const End& end, const Node& place) const {
  const std::string& name = device_of_.at(end.instance);
  const auto found = devices_.find(name);
  if (found == devices_.end())
    place.fail(fmt::format("instance '{}' is of device '{}', which no file describes; give that file too", end.instance,
                           name));
  return found->second;
}

std::uint32_t InfraReader::switch_of(const End& end) {
  const auto [found, is_new] = switches_.emplace(fmt::format("{}.{}", end.instance, end.index),
                                                 static_cast<std::uint32_t>(fabric_.switches.size()));
  if (is_new) fabric_.switches.push_back({found->first});
  return found->second;
}

void InfraReader::add_connection(const Node& connection) {
  const auto parts = parts_of(connection);
  if (parts.size() != 9)
    connection.fail(fmt::format(
        "has {} parts; between instances it must be instance.N.component.N.link.instance.N.component.N", parts.size()));
  End a = end_of(parts, 0, connection), b = end_of(parts, 5, connection);
  if (gbps_.count(parts[4]) == 0) connection.fail(fmt::format("link '{}' is not among 'links'", parts[4]));
  if (used_ports_.size() > kMaxLinks) connection.fail("is one more cable than any cluster has");
  for (const End& end : {a, b})
    if (!used_ports_.insert(fmt::format("{}.{}.{}", end.instance, end.index, end.port)).second)
      connection.fail(fmt::format("{}.{}.{} has a cable already", end.instance, end.index, end.port));
  const auto gpus = [&](const End& end) { return static_cast<std::int64_t>(device_of(end, connection).gpus.size()); };
  const auto is_host = [&](const End& end) { return !device_of(end, connection).gpu_components.empty(); };
  if (is_host(b)) std::swap(a, b);
  if (is_host(b)) connection.fail("joins two hosts; a NIC must be on a switch");
  if (!is_host(a)) {
    const std::uint32_t lower = switch_of(a), upper = switch_of(b);
    fabric_.cables.push_back({lower, upper, gbps_.at(parts[4])});
    return;
  }
  if (gpus_per_host_ > 0 && gpus(a) != gpus_per_host_)
    connection.fail(
        fmt::format("a host of {} GPUs beside hosts of {}; a cluster has one number", gpus(a), gpus_per_host_));
  gpus_per_host_ = gpus(a);
  const std::string name = fmt::format("{}.{}", a.instance, a.index);
  hosts_[name].name = name;
  hosts_[name].nics.push_back({a.port, switch_of(b), 0, gbps_.at(parts[4])});
}

InfraGraph InfraReader::take() {
  fabric_.format = "infragraph";
  for (auto& [name, host] : hosts_) fabric_.hosts.push_back(std::move(host));
  put_in_order(fabric_);
  return {std::move(fabric_), gpus_per_host_};
}

}  // namespace

bool is_infragraph(std::string_view text) {
  return text.starts_with("infrastructure:") || text.find("\ninfrastructure:") != text.npos;
}

InfraGraph parse_infragraph(const std::vector<std::pair<std::string, std::string>>& files) {
  InfraReader reader;
  std::vector<Node> roots;
  for (const auto& [name, text] : files) {
    roots.push_back(import::parse_yaml(text, name));
    const Node* infrastructure = roots.back().find("infrastructure");
    if (infrastructure == nullptr || infrastructure->kind != Node::Kind::mapping)
      roots.back().fail("must be a mapping 'infrastructure'");
    reader.add_definitions(*infrastructure);
  }
  if (!reader.has_instances())
    roots.front().fail("describes devices and no 'instances' of them; give the file of the infrastructure too");
  for (const Node& root : roots) reader.add_connections(*root.find("infrastructure"));
  InfraGraph result = reader.take();
  if (result.fabric.hosts.empty()) roots.front().fail("has no connection of a host with components of type xpu");
  return result;
}

}  // namespace manyworlds::experiments::clusters
