#include "experiments/clusters/fabric.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace manyworlds::experiments::clusters {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Returns where the run of digits at `at` ends.
std::size_t end_of_digits(const std::string& text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

/// Returns the digits from `at` to `end` without leading zeros.
std::string_view number_at(const std::string& text, std::size_t at, std::size_t end) {
  while (at + 1 < end && text[at] == '0') ++at;
  return std::string_view(text).substr(at, end - at);
}

}  // namespace

bool natural_less(const std::string& a, const std::string& b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::size_t end_a = end_of_digits(a, i), end_b = end_of_digits(b, j);
      const std::string_view left = number_at(a, i, end_a), right = number_at(b, j, end_b);
      if (left != right) return left.size() != right.size() ? left.size() < right.size() : left < right;
      i = end_a, j = end_b;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  const std::size_t rest_a = a.size() - i, rest_b = b.size() - j;
  return rest_a != rest_b ? rest_a < rest_b : a < b;
}

void put_in_order(Fabric& fabric) {
  std::vector<std::uint32_t> order(fabric.switches.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return natural_less(fabric.switches[a].name, fabric.switches[b].name);
  });
  std::vector<std::uint32_t> number(order.size());
  std::vector<Switch> switches;
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    number[order[i]] = i;
    switches.push_back(std::move(fabric.switches[order[i]]));
  }
  fabric.switches = std::move(switches);
  for (Cable& cable : fabric.cables) {
    cable.a = number[cable.a], cable.b = number[cable.b];
    if (cable.a > cable.b) std::swap(cable.a, cable.b);
  }
  std::sort(fabric.cables.begin(), fabric.cables.end(),
            [](const Cable& x, const Cable& y) { return std::tie(x.a, x.b, x.gbps) < std::tie(y.a, y.b, y.gbps); });
  for (Host& host : fabric.hosts) {
    for (Nic& nic : host.nics) nic.attached_to = number[nic.attached_to];
    std::stable_sort(host.nics.begin(), host.nics.end(), [](const Nic& x, const Nic& y) {
      return x.name != y.name ? natural_less(x.name, y.name)
                              : std::tie(x.attached_to, x.switch_port) < std::tie(y.attached_to, y.switch_port);
    });
  }
  const auto leaf = [](const Host& host) { return host.nics.empty() ? UINT32_MAX : host.nics.front().attached_to; };
  std::stable_sort(fabric.hosts.begin(), fabric.hosts.end(), [&](const Host& x, const Host& y) {
    return leaf(x) != leaf(y) ? leaf(x) < leaf(y) : natural_less(x.name, y.name);
  });
  std::vector<std::int64_t> nics;
  for (const Host& host : fabric.hosts) nics.push_back(static_cast<std::int64_t>(host.nics.size()));
  fabric.nics_per_host = usual_value(nics);
}

bool is_complete(const Fabric& fabric, const Host& host) {
  return !host.nics.empty() && static_cast<std::int64_t>(host.nics.size()) == fabric.nics_per_host;
}

double Fabric::usual_nic_gbps() const {
  std::vector<std::int64_t> rates;  // in Mb/s
  for (const Host& host : hosts)
    if (is_complete(*this, host))
      for (const Nic& nic : host.nics) rates.push_back(static_cast<std::int64_t>(nic.gbps * 1e3 + 0.5));
  return static_cast<double>(usual_value(rates)) * 1e-3;
}

std::int64_t usual_value(const std::vector<std::int64_t>& values) {
  std::map<std::int64_t, std::int64_t> count;
  for (const std::int64_t value : values) ++count[value];
  std::int64_t usual = 0, most = 0;
  for (const auto& [value, times] : count)
    if (times >= most) usual = value, most = times;
  return usual;
}

}  // namespace manyworlds::experiments::clusters
