// infiniband-diags, ibnetdiscover(8). A block per node, then a line per cable:
//   Switch  65 "S-2c5e…"     # "MF0;leaf-1:MQM9701/U1" enhanced port 0 lid 73 lmc 0
//   [1]     "H-e09d…"[1](e09d…)    # "node01 mlx5_5" lid 647 4xNDR
//   Ca      1 "H-e09d…"      # "node01 mlx5_5"
//   [1](e09d…)  "S-2c5e…"[17]      # lid 657 lmc 0 "MF0;leaf-1:MQM9701/U1" lid 73 4xNDR
#include "experiments/discovery/ibnetdiscover.hpp"

#include <optional>

#include "core/base/error.hpp"
#include "experiments/discovery/infiniband.hpp"
#include "experiments/discovery/lines.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::clusters {
namespace {

using core::InputError;

constexpr std::int64_t kMaxPort = 4'096;

class DiscoveryReader {
 public:
  explicit DiscoveryReader(const std::string& file) : file_(file) {}

  void read_line(std::string_view line, int number) {
    line_ = number;
    if (line.starts_with("Switch") || line.starts_with("Ca\t") || line.starts_with("Ca ") || line.starts_with("Rt"))
      return read_node(line);
    if (line.starts_with('[')) return read_port(line);
    const bool known = line.empty() || line.starts_with('#') || line.starts_with("vendid=") ||
                       line.starts_with("devid=") || line.starts_with("sysimgguid=") ||
                       line.starts_with("switchguid=") || line.starts_with("caguid=") || line.starts_with("rtguid=") ||
                       line.starts_with("chassis") || line.starts_with("Chassis") || line.starts_with("DDR") ||
                       line.starts_with("port");
    if (!known && !words_of(line).empty()) fail("is no line of ibnetdiscover");
  }

  Subnet take() {
    for (const auto& [key, line] : named_by_cables_)
      if (subnet_.nodes.count(key) == 0) {
        line_ = line;
        fail(fmt::format("names {}, of which the file has no block; it may be cut off", key));
      }
    if (subnet_.nodes.empty()) fail("has no node");
    return std::move(subnet_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(what, file_, line_); }

  /// Returns the number in the brackets at the beginning and removes them.
  std::int64_t take_port(std::string_view& rest) const {
    const std::size_t end = rest.find(']');
    const std::int64_t port =
        end == std::string_view::npos ? -1 : number_in<std::int64_t>(rest.substr(1, end - 1)).value_or(-1);
    if (!rest.starts_with('[') || port < 0 || port > kMaxPort) fail("lacks the number of a port in brackets");
    rest.remove_prefix(end + 1);
    return port;
  }

  void read_node(std::string_view line) {
    const auto key = quoted_in(line);
    const auto words = words_of(line);
    const std::int64_t ports = words.size() < 3 ? -1 : number_in<std::int64_t>(words[1]).value_or(-1);
    if (!key || key->empty() || ports < 0 || ports > kMaxPort)
      fail("must be a node: its kind, its number of ports and its name in quotes");
    SubnetNode node;
    node.is_switch = !line.starts_with("Ca");
    node.ports = ports;
    if (const std::size_t hash = line.find('#'); hash != std::string_view::npos)
      node.description = std::string(quoted_in(line.substr(hash)).value_or(""));
    current_ = std::string(*key);
    if (!subnet_.nodes.emplace(current_, std::move(node)).second)
      fail(fmt::format("is the second block of {}", current_));
    if (subnet_.nodes.size() > 8 * kMaxHosts) fail("is one more node than any cluster has");
  }

  void read_port(std::string_view line) {
    if (current_.empty()) fail("is a port before the first node");
    std::string_view rest = line;
    const std::int64_t from = take_port(rest);
    const auto other = quoted_in(rest);
    if (!other || other->empty()) fail("must say in quotes what the port is cabled to");
    rest.remove_prefix(rest.find(*other) + other->size() + 1);
    const std::int64_t to = take_port(rest);
    subnet_.add({current_, from}, {std::string(*other), to}, rate_in(line), file_, line_);
    named_by_cables_.emplace(std::string(*other), line_);
  }

  /// Returns the rate of "4xNDR", the last word of that form.
  double rate_in(std::string_view line) const {
    const auto words = words_of(line);
    for (auto word = words.rbegin(); word != words.rend(); ++word) {
      const std::size_t x = word->find('x');
      if (x == std::string_view::npos || x == 0 || x > 2) continue;
      const auto lanes = number_in<std::int64_t>(word->substr(0, x));
      if (!lanes) continue;
      if (const auto gbps = link_gbps(*lanes, word->substr(x + 1))) return *gbps;
      fail(
          fmt::format("has the rate '{}'; known are lanes x SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR and XDR, such as "
                      "4xNDR",
                      *word));
    }
    fail("has no rate such as 4xNDR");
  }

  std::string file_;
  int line_ = 1;
  std::string current_;
  Subnet subnet_;
  std::map<std::string, int> named_by_cables_;
};

}  // namespace

bool is_ibnetdiscover(std::string_view text) {
  return text.find("switchguid=") != text.npos || text.find("caguid=") != text.npos;
}

Fabric parse_ibnetdiscover(std::string_view text, const std::string& name) {
  import::check_text(text, name);
  DiscoveryReader reader(name);
  for_each_line(text, [&](std::string_view line, int number) { reader.read_line(line, number); });
  return fabric_of(reader.take(), "ibnetdiscover");
}

}  // namespace manyworlds::experiments::clusters
