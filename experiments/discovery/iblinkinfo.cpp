// infiniband-diags, iblinkinfo(8). A block per node, then a line per port; nodes are known by their LIDs:
//   CA: node01 mlx5_0:
//         0xe09d730300859464    429    1[  ] ==( 4X      106.25 Gbps Active/  LinkUp)==>      71    1[  ]
//         "MF0;leaf-1:…" ( )
//   Switch: 0x2c5eab0300c26540 MF0;leaf-1:MQM9701/U1:
//             71    1[  ] ==( 4X      106.25 Gbps Active/  LinkUp)==>     429    1[  ] "node01 mlx5_0" ( )
//             71    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
#include <optional>

#include "core/base/error.hpp"
#include "experiments/discovery/ibnetdiscover.hpp"
#include "experiments/discovery/infiniband.hpp"
#include "experiments/discovery/lines.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::clusters {
namespace {

using core::InputError;

/// Returns the data rate of a lane from the rate of its signal in Gb/s.
std::optional<std::string_view> speed_of_lane(double signal) {
  constexpr std::pair<double, std::string_view> kSpeeds[] = {
      {2.5, "SDR"}, {5, "DDR"},      {10, "QDR"},  {10.3125, "FDR10"}, {14.0625, "FDR"}, {25.78125, "EDR"},
      {50, "HDR"},  {53.125, "HDR"}, {100, "NDR"}, {106.25, "NDR"},    {200, "XDR"},     {212.5, "XDR"}};
  for (const auto& [rate, name] : kSpeeds)
    if (signal > rate * 0.999 && signal < rate * 1.001) return name;
  return std::nullopt;
}

class LinkReader {
 public:
  explicit LinkReader(const std::string& file) : file_(file) {}

  void read_line(std::string_view line, int number) {
    line_ = number;
    const auto words = words_of(line);
    if (words.empty() || words.front().starts_with('#')) return;
    if (words.front() == "Switch:" || words.front() == "Switch" || words.front() == "CA:" || words.front() == "RT:")
      return begin_node(line, words.front());
    if (line.find("==(") == line.npos) fail("is no line of iblinkinfo");
    read_port(line);
  }

  Subnet take() {
    if (subnet_.cables.empty()) fail("has no cable");
    for (const auto& [key, line] : named_by_cables_)
      if (subnet_.nodes.count(key) == 0) {
        line_ = line;
        fail(fmt::format("names the node of LID {}, of which the file has no block; print all of the fabric", key));
      }
    return std::move(subnet_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(what, file_, line_); }

  void begin_node(std::string_view line, std::string_view kind) {
    node_ = {};
    node_.is_switch = kind != "CA:";
    current_.clear();
    std::string_view rest = line.substr(line.find(kind) + kind.size());
    rest = import::trimmed(rest, " \t");
    if (rest.starts_with("0x")) rest.remove_prefix(std::min(rest.find(' '), rest.size()));
    rest = import::trimmed(rest, " \t");
    if (rest.ends_with(':')) rest.remove_suffix(1);
    node_.description = std::string(rest);
    has_block_ = true;
  }

  /// Returns LID and port of "0xe09d…  429  1[  ]" or "71 1[  ]"; nothing if they are absent, as behind a port that
  /// is down.
  std::optional<SubnetPort> end_in(std::string_view text) const {
    const std::size_t bracket = text.find('[');
    if (bracket == text.npos) return std::nullopt;
    auto words = words_of(text.substr(0, bracket));
    if (!words.empty() && words.front().starts_with("0x")) words.erase(words.begin());
    if (words.size() != 2) return std::nullopt;
    const std::int64_t lid = number_in<std::int64_t>(words[0]).value_or(-1);
    const std::int64_t port = number_in<std::int64_t>(words[1]).value_or(-1);
    if (lid < 0 || port < 0) return std::nullopt;
    return SubnetPort{std::to_string(lid), port};
  }

  void read_port(std::string_view line) {
    if (!has_block_) fail("is a port before the first node");
    const std::size_t open = line.find("==("), close = line.find(")==>");
    if (close == line.npos || close < open) fail("must have ==( rate )==> between the two ends of a cable");
    const auto from = end_in(line.substr(0, open));
    if (!from) fail("must begin with the LID and the number of a port");
    if (current_.empty()) {
      current_ = from->node;
      if (!subnet_.nodes.emplace(current_, node_).second) fail(fmt::format("is in a second block of LID {}", current_));
    }
    if (from->node != current_) fail(fmt::format("has LID {} in the block of LID {}", from->node, current_));
    SubnetNode& node = subnet_.nodes.at(current_);
    ++node.ports;
    const std::string_view state = line.substr(open + 3, close - open - 3);
    if (state.find("LinkUp") == state.npos) {
      ++node.down_ports;
      return;
    }
    const auto to = end_in(line.substr(close + 4));
    if (!to) fail("must say LID and port at the other end of a cable that is up");
    subnet_.add(*from, *to, rate_in(state), file_, line_);
    named_by_cables_.emplace(to->node, line_);
  }

  double rate_in(std::string_view state) const {
    const auto words = words_of(state);
    if (words.size() >= 3 && (words[0].ends_with('X') || words[0].ends_with('x')) && words[2].starts_with("Gbps")) {
      const auto lanes = number_in<std::int64_t>(words[0].substr(0, words[0].size() - 1));
      const auto signal = number_in<double>(words[1]);
      const auto speed = signal ? speed_of_lane(*signal) : std::nullopt;
      const auto gbps = lanes && speed ? link_gbps(*lanes, *speed) : std::nullopt;
      if (gbps) return *gbps;
    }
    fail(fmt::format("has the rate '{}'; it must be as in 4X 106.25 Gbps, the signal of a lane",
                     import::trimmed(state, " ")));
  }

  std::string file_;
  int line_ = 1;
  bool has_block_ = false;
  SubnetNode node_;      // of the block, until its first port tells the LID
  std::string current_;  // LID
  Subnet subnet_;
  std::map<std::string, int> named_by_cables_;
};

}  // namespace

bool is_iblinkinfo(std::string_view text) {
  return text.find("==(") != text.npos && text.find(")==>") != text.npos;
}

Fabric parse_iblinkinfo(std::string_view text, const std::string& name) {
  import::check_text(text, name);
  LinkReader reader(name);
  for_each_line(text, [&](std::string_view line, int number) { reader.read_line(line, number); });
  return fabric_of(reader.take(), "iblinkinfo");
}

}  // namespace manyworlds::experiments::clusters
